# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a training job takes from its nodes, and whether nodes that are not there yet will have it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import numbers
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import find_system
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import shown
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import TORCH_NEURON, preset_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.image import sdk_of

# The role installs packages with apt.
PACKAGED = ("Debian", "Ubuntu")
# What the environment has where a job does not say more.
USUAL = ("transformers", "tokenizers", "h5py")
# What the collection's own scripts read data with, in versions that go together; a base may have others, which stay.
IN_IMAGES = {"h5py": "3.16.0", "tokenizers": "0.23.3"}
_ALONE = numbers(TORCH_NEURON)
_DATA = re.compile(r"\{directory\}(/data/[^\],]+)")
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Definition = Mapping[str, Any]
Presets = Mapping[str, Definition]


def data_of(definition: Definition, presets: Presets, directory: str) -> dict[str, str]:
    """Argument -> path of the data that a preset looks for and does not make by itself."""
    preset = preset_of(definition, presets)
    own = definition.get("args") if isinstance(definition.get("args"), Mapping) else {}
    made = set(map(str, (preset.get("prepare") or {}).get("args", {}).values()))
    found = {}
    for name, value in (preset.get("args") or {}).items():
        match = (
            _DATA.search(value) if isinstance(value, str) and value not in made and name not in (own or {}) else None
        )
        if match:
            found[name] = directory + match.group(1)
    return found


def dataset_of(definition: Definition, presets: Presets) -> dict[str, Any]:
    """The dataset of the preset; {} where there is none, or where the definition reads its data elsewhere."""
    return dict(preset_of(definition, presets).get("dataset") or {}) if data_of(definition, presets, "") else {}


def _texts(key: str, definition: Definition, presets: Presets) -> list[str]:
    found = definition.get(key, preset_of(definition, presets).get(key))
    return [one for one in found if isinstance(one, str)] if isinstance(found, (list, tuple)) else []


def requirements_of(definition: Definition, presets: Presets) -> list[str]:
    return _texts("requirements", definition, presets)


def packages_of(definition: Definition, presets: Presets) -> list[str]:
    """Requirements for the environment: those of the job, and the usual ones that it does not name."""
    wanted = requirements_of(definition, presets)
    return [*wanted, *(name for name in USUAL if name not in _projects(wanted))]


def contents_of(definition: Definition, presets: Presets) -> dict[str, Any]:
    """``packages`` of the distribution, ``requirements`` of pip, and ``missing``: requirements that are only for a base
    that does not have them in any version."""
    wanted = requirements_of(definition, presets)
    # A script of the user's own names what it needs.
    names = [one for one in wanted if one in IN_IMAGES] if wanted or "script" in definition else list(IN_IMAGES)
    return {
        "packages": _texts("packages", definition, presets),
        "requirements": [one for one in wanted if one not in IN_IMAGES],
        "missing": [f"{name}=={IN_IMAGES[name]}" for name in names],
    }


def _projects(requirements: Sequence[str]) -> list[str]:
    found = (_PROJECT.match(one) for one in requirements)
    return [re.sub(r"[-_.]+", "-", one.group()).lower() for one in found if one]


def covers(folder: str, path: str) -> bool:
    """Whether a path lies in a folder, or the folder below the path."""
    folder, path = folder.rstrip("/") + "/", path.rstrip("/") + "/"
    return path.startswith(folder) or folder.startswith(path)


def problem(definition: Definition, presets: Presets, site: Mapping[str, Any]) -> str:
    """Why nodes cannot have what the job takes; '' where they can, or where that is not known.

    ``site``: ``directory``; ``system`` (distribution and its version), ``sdk`` and ``python`` (version or name of the
    interpreter), each empty where it is not known; ``packages`` of the environment where the user has set them, else
    nothing; ``shared`` (whether all nodes share the directory), ``nodes`` and ``instance_type``; ``brought`` (folders
    that a dataset or a mount fills), ``pyxis`` (why the nodes cannot have it, or ''), ``bursting`` (whether the
    directory is on an EFS in that mode) and ``unknown`` (whether the nodes may have data from elsewhere, an image's or
    what was copied to them).
    """
    preset = preset_of(definition, presets)
    # What runs in an image has the image's, where its name tells.
    inside = {**site, "sdk": sdk_of(definition.get("image")) or site.get("sdk")}
    found = (*_image(definition, site), *_software(preset, inside), *_sizes({**preset, **definition}, preset, site))
    return next((one for one in (*found, *_contents(definition, presets, site)) if one), "")


def image_problem(image: Any, site: Mapping[str, Any]) -> str:
    """Why an image is not for nodes with the driver of ``sdk``; '' where it is, or where that is not known."""
    return next(_image({"image": image}, {"sdk": site.get("sdk")}), "")


def _image(definition: Definition, site: Mapping[str, Any]) -> Iterator[str]:
    """Drivers serve runtimes that are older, newer ones may need a newer driver (nrt-troubleshoot.rst of Neuron's
    documentation); the driver of SDK 2.33 serves none before (its release notes).
    """
    image = definition.get("image") or ""
    if image and site.get("pyxis"):
        yield f"image of the training job is {shown(image)}, and {site['pyxis']}."
    has, node = sdk_of(image), str(site.get("sdk") or "")
    if has and node and (numbers(has) > numbers(node) or numbers(has) < _ALONE <= numbers(node)):
        yield (
            f"image of the training job is {shown(image)}, whose Neuron SDK {has} does not run with the driver of SDK "
            f"{node}; take another image, or set neuron_sdk_version."
        )


def _software(preset: Definition, site: Mapping[str, Any]) -> Iterator[str]:
    """All of it in one sentence, since a release, a system and a Python go together."""
    needs, system = preset.get("needs") or {}, site.get("system") or {}
    name = f"{system['distribution']} {system['distribution_version']}" if system else ""
    known = find_system(system["distribution"], system["distribution_version"]) if system else None
    python = str(site.get("python") or "")
    numbered = re.search(r"python(3\.[0-9]+)", python)
    # Without a number it is the system's own.
    python = numbered.group(1) if numbered else known.python if known and python.endswith("python3") else ""
    has = (("Neuron SDK", "sdk", site.get("sdk")), ("Python", "python", python))
    wrong = [
        f"{what} {' to '.join(dict.fromkeys(needs[key]))} (not {value})"
        for what, key, value in has
        if needs.get(key) and value and not numbers(needs[key][0]) <= numbers(value) <= numbers(needs[key][1])
    ]
    if needs.get("systems") and name and name not in needs["systems"]:
        wrong.append(f"{' or '.join(needs['systems'])} (not {name})")
    if wrong:
        yield (
            f"The preset {preset['name']} needs {', '.join(wrong)}; set neuron_sdk_version, an image and "
            "neuron_venv_python for it, or take another preset."
        )


def _sizes(whole: Definition, preset: Definition, site: Mapping[str, Any]) -> Iterator[str]:
    nodes = _number(whole.get("nodes")) or _number(site.get("nodes"))
    if (preset.get("needs") or {}).get("shared") and nodes > 1 and not site.get("shared", True):
        yield (
            f"The preset {preset['name']} needs storage that all {nodes} nodes share for data and checkpoints; set "
            "trainium_shared_storage to efs or fsx, or trainium_shared_dir and shared_storage_mounts that mount it."
        )
    own = whole.get("args")
    args = {**(preset.get("args") or {}), **(own if isinstance(own, Mapping) else {})}
    size = (preset.get("needs") or {}).get("checkpoint_gb")
    # At 100 MiB/s, however large it is until it holds more than a TiB (Amazon EFS user guide, Bursting throughput).
    if size and site.get("bursting") and args.get("checkpoint_dir") == (preset.get("args") or {}).get("checkpoint_dir"):
        yield (
            f"The preset {preset['name']} writes checkpoints of {size} GB, each of which takes hours on an EFS in its "
            "mode bursting; take a parallelcluster_preset with FSx for Lustre, or give the EFS a "
            "provisioned_throughput by shared_storage of parallelcluster_configuration."
        )
    known = TYPES.get(str(site.get("instance_type") or ""))
    processes = _number(whole.get("processes_per_node"))
    if known and known.devices and processes > known.devices * max(known.cores):
        yield (
            f"The training job starts {processes} processes on each node, and {site['instance_type']} has "
            f"{known.devices * max(known.cores)} NeuronCores; set trainium_instance_type to trn1.32xlarge."
        )
    divided = args.get("start_keep_batch") or []
    for name in divided if isinstance(divided, list) else [divided]:
        if 0 < _number(args.get(name)) < nodes:
            yield (
                f"{name} of the training job is '{args[name]}', which {nodes} nodes cannot share with the same global "
                f"batch; use at most {args[name]} nodes, or start_keep_batch: false in args of trainium_training."
            )


def _number(value: Any) -> int:
    return int(value) if re.fullmatch(r"[0-9]{1,12}", str(value)) else 0


def _contents(definition: Definition, presets: Presets, site: Mapping[str, Any]) -> Iterator[str]:
    system = site.get("system") or {}
    packages = definition.get("packages", preset_of(definition, presets).get("packages"))
    if packages and system and system["distribution"] not in PACKAGED:
        yield (
            f"The training job needs the packages {shown(', '.join(map(str, packages)))}, which apt installs, and the "
            f"nodes have {system['distribution']} {system['distribution_version']}; use an image with Ubuntu or "
            "Debian, or a definition without packages."
        )
    installed = site.get("packages")
    if installed:
        wanted = requirements_of(definition, presets)
        missing = [one for one in wanted if not {*_projects([one])} <= {*_projects(installed)}]
        if missing:
            yield (
                f"neuron_venv_packages lacks {', '.join(missing)}, which the training job requires; add it, or leave "
                "neuron_venv_packages to the job."
            )
    for name, path in data_of(definition, presets, str(site["directory"])).items():
        if not site.get("unknown") and not any(covers(folder, path) for folder in site.get("brought") or ()):
            yield (
                f"{name} of the training job is {shown(path)}, and nothing brings data there: set trainium_dataset, "
                f"mount storage that has it, or set {name} in args of trainium_training."
            )
