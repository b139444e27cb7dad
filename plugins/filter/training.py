# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of trainings; documented in the YAML files beside this one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import report
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import plan as kubernetes
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import tensorboard, volcano
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.names import APP
from ansible_collections.trainium.cluster.plugins.module_utils._training import definition as planner
from ansible_collections.trainium.cluster.plugins.module_utils._training import needs
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import is_text, shown
from ansible_collections.trainium.cluster.plugins.module_utils._training.image import IN_PODS
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import versions_of
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS
from ansible_collections.trainium.cluster.plugins.module_utils._training.unit import decide
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain

BLOCK = 1 << 20


def find_file(path: str, folders: Sequence[str]) -> str:
    """Where on the controller a file of the definition lies. Raises ValueError with one sentence."""
    path = os.path.expanduser(path)
    for candidate in [path] if os.path.isabs(path) else [os.path.join(folder, path) for folder in folders]:
        if os.path.isfile(candidate):
            return os.path.realpath(candidate)
    where = "" if os.path.isabs(path) else f" in {' or '.join(folders)}"
    raise ValueError(f"files of the training job names {shown(path)}, which is no file{where}; name another.")


def checksum(path: str) -> str:
    """SHA-256 of a file, however large. Raises ValueError with one sentence."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                digest.update(block)
    except OSError as error:
        reason = error.strerror
        raise ValueError(f"The file {shown(path)} of the training job cannot be read: {reason}.") from None
    return digest.hexdigest()


def secret(name: str, path: str, folders: Sequence[str]) -> str:
    """The one line of a file that only the job is to know. Raises ValueError with a sentence that does not show it."""
    try:
        with open(find_file(path, folders), encoding="utf-8") as file:
            text = file.read(BLOCK).strip()
    except (OSError, ValueError):
        text = ""
    if not text or not text.isprintable():
        raise ValueError(
            f"secrets.{name} of the training job names no file with one line that is here; give its path, not the "
            "secret."
        )
    return text


@takes(Mapping, "a definition as a dictionary")
def training_job(
    value: Any,
    directory: str,
    venv_path: str,
    launcher: str = "slurm",
    usable: Sequence[str] = (),
    known: int = 0,
    search: Sequence[str] = (),
    active: Sequence[str] = (),
    partition: str = "",
    shared: bool = False,
    block_ends_at: str = "",
    mounts: Sequence[str] = (),
    sdk: str = "",
    site: Mapping[str, Any] | None = None,
    unasked: bool = False,
) -> dict[str, Any]:
    """The definition as planner.resolve completes it with ``sources``; or only ``refused``, the sentence."""
    definition = plain(value)
    try:
        files = planner.complete(definition, PRESETS)["files"]
        names = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
        sources = {name: find_file(name, search) for name in names if is_text(name)}
        context = {
            "directory": directory,
            "venv_path": venv_path,
            "launcher": launcher,
            "usable": list(usable),
            # Text, where Ansible is older than 2.19.
            "known": int(known),
            "active": list(active),
            "partition": plain(partition),
            "shared": shared,
            "block_ends_at": plain(block_ends_at),
            "mounts": plain(list(mounts)),
            "sdk": plain(sdk),
            "unasked": unasked,
            "checksums": {name: checksum(path) for name, path in sources.items()},
        }
        resolved = planner.resolve(definition, PRESETS, context)
        # Not part of the digest: with another token it is the same job.
        if launcher in IN_PODS:
            resolved = kubernetes.completed(resolved, {"directory": directory, **plain(site or {})})
        resolved["env"].update({name: secret(name, path, search) for name, path in resolved["secrets"].items()})
    except ValueError as error:
        return {"refused": str(error)}
    resolved["sources"] = [
        {"src": path, "name": os.path.basename(name), "checksum": f"sha256:{context['checksums'][name]}"}
        for name, path in sources.items()
    ]
    resolved["refused"] = ""
    return resolved


@takes(Mapping, "a job of the filter training_job")
def training_objects(value: Any, scripts: Mapping[str, str], site: Mapping[str, Any]) -> dict[str, Any]:
    """The job's ``parts`` for Kubernetes, each what is submitted at once; or only ``refused``, the sentence.

    ``tensorboard``: the Deployment that shows its events, where the site asks for it.
    """
    job, site = plain(value), plain(site)
    try:
        files = {name: text.encode() for name, text in plain(scripts).items()}
        for source in job["sources"]:
            with open(source["src"], "rb") as file:
                files[source["name"]] = file.read()
        if site.get("launcher") == "torchx":
            found = volcano.parts(job, site, files)
        else:
            found = {"train": kubernetes.objects(job, site, files)}
        board = tensorboard.deployment(job, site) if site.get("tensorboard") else {}
    except (ValueError, OSError) as error:
        return {"parts": [], "tensorboard": {}, "refused": str(error)}
    parts = [
        {
            "part": part,
            **dict(zip(("objects", "secret_data"), kubernetes.without_values(objects))),
            "name": next(one["metadata"]["labels"][APP] for one in objects),
            "success": job["compile"]["success"] if part == "compile" else "",
        }
        for part, objects in found.items()
        if objects
    ]
    return {"parts": parts, "tensorboard": board, "refused": ""}


@takes(Mapping, "a dictionary of states")
def training_units(value: Any, digest: str) -> dict[str, Any]:
    """What to do with a training by the states of its nodes. A node without one is refused."""
    silent = [name for name, state in value.items() if not isinstance(state, Mapping) or "active" not in state]
    if silent:
        raise ValueError(f"it has no state of {', '.join(map(str, silent))}; look whether it can be reached")
    return decide(value, str(digest))


@takes(str, "the text of a log")
def training_report(text: Any) -> dict[str, Any]:
    """Steps, first and last loss, throughput and versions of a training's log."""
    return {**report(text), "versions": versions_of(text)}


def training_packages(value: Any) -> list[str]:
    """What the environment has to have for a definition, for pip; the usual packages where it does not say."""
    return needs.packages_of(plain(value) if isinstance(value, Mapping) else {}, PRESETS)


def training_contents(value: Any) -> dict[str, Any]:
    """What a container image has to have for a definition, beside what its base has."""
    return needs.contents_of(plain(value) if isinstance(value, Mapping) else {}, PRESETS)


def training_enough_nodes(value: Any) -> int:
    """How many of the nodes that would be started for it a definition's preset takes; 0 where it takes all."""
    return planner.enough_nodes(plain(value) if isinstance(value, Mapping) else {}, PRESETS)


def training_dataset(value: Any) -> dict[str, Any]:
    """The dataset that a definition's preset reads, as trainium_dataset takes it; {} where it needs none."""
    return needs.dataset_of(plain(value) if isinstance(value, Mapping) else {}, PRESETS)


FilterModule = filter_module(
    training_job,
    training_packages,
    training_contents,
    training_enough_nodes,
    training_dataset,
    training_objects,
    training_units,
    training_report,
)
