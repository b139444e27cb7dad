# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All kinds of rules that the tables in ``roles/*/tasks/validate.yml`` use. Private to this collection.

Those that any variable may have are in module_utils/_common/rules.py; here are those that ask a subject.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common import rules
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.rules import Rule, sentence_of, shown
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as dataset
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import checks as lustre
from ansible_collections.trainium.cluster.plugins.module_utils._hardware import eks_images, sdk
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import family
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage import mounts
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import PRESETS as ARCHITECTURES
from ansible_collections.trainium.cluster.plugins.module_utils._training import needs
from ansible_collections.trainium.cluster.plugins.module_utils._training.presets import PRESETS

_SCRIPT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")


class Example(NamedTuple):
    """A value that is refused: ``condition`` says what is wrong with it, ``more`` is what the rule says beside."""

    condition: str
    value: Any
    more: Mapping[str, Any] = {}


class Subject(NamedTuple):
    """``refusal`` gives or raises the sentence, '' is none; docs/refusals.md shows it for the ``examples``."""

    refusal: Callable[[Any, Rule], str]
    examples: tuple[Example, ...]
    keys: frozenset[str] = frozenset()


def _mounts(value: Any, rule: Rule) -> str:
    mounts.plan_mounts(list(value), str(rule.get("region") or ""))
    return ""


def _scratch(value: Any, rule: Rule) -> str:
    mounts.plan_mounts([{"type": "bind", "source": "/", "path": value, "mode": rule.get("mode")}])
    if _PLAIN_PATH.fullmatch(str(value)):
        return ""
    return (
        f"{rule['variable']} {shown(value)} has other characters than letters, digits and /._-; choose a simpler one, "
        "as /scratch."
    )


def _lustre_capacity(value: Any, rule: Rule) -> str:
    """GiB on SSD, of which all is that the roles make."""
    try:
        lustre.check_capacity("", "SSD", None, int(rules.number_of(value) or 0))
    except TrainiumError:
        sizes = f"{lustre.SMALLEST} or a multiple of {lustre.SSD_STEP}"
        return f"{rule['variable']} is no size of FSx for Lustre; give {sizes}, in GiB."
    return ""


def _lustre_throughput(value: Any, rule: Rule) -> str:
    """MB/s for each TiB on SSD against ``deployment_type``; 0 where that has one throughput only."""
    kind = str(rule.get("deployment_type"))
    valid = lustre.THROUGHPUT.get((kind, "SSD"), ()) or (0,)
    if str(value) in map(str, valid):
        return ""
    if valid == (0,):
        return f"{rule['variable']} is '{shown(value)}', and {kind} has one throughput only; leave it out."
    choices = ", ".join(map(str, valid))
    return f"{rule['variable']} is '{shown(value)}'; with {kind} give one of {choices}, MB/s for each TiB."


def _scripts(value: Any, rule: Rule) -> str:
    wrong = sorted(
        str(name)
        for name, text in (value.items() if isinstance(value, Mapping) else [])
        if not _SCRIPT_NAME.fullmatch(str(name)) or not isinstance(text, str) or not text.startswith("#!")
    )
    if not wrong:
        return ""
    return (
        f"{rule['variable']} maps file names (letters, digits, dot, dash, underscore) to texts of scripts that begin "
        f"with #!, but {shown(', '.join(wrong))} is not like that; correct it."
    )


def _system(value: Any, rule: Rule) -> str:
    """The operating system against ``systems``, distribution to versions, or with ``newer`` to the first version."""
    name, version = _system_of(value)
    if not name:
        return ""
    known = rule["systems"].get(name, [])
    if known and not version:
        return ""
    fits = any(
        version == one
        or version.startswith(f"{one}.")
        or (rule.get("newer") and sdk.numbers(version) >= sdk.numbers(str(one)))
        for one in map(str, known)
    )
    return "" if fits else sentence_of(rule, "", f"{name} {version}".rstrip(), str(rule.get("host", "")))


def _system_of(value: Any) -> tuple[str, str]:
    facts = value if isinstance(value, Mapping) else {}
    return str(facts.get("distribution") or ""), str(facts.get("distribution_version") or facts.get("version") or "")


def _sdk(value: Any, rule: Rule) -> str:
    name, version = _system_of(rule.get("system"))
    name = name if version else ""
    # As far as it can be told without a node: Ubuntu 24.04 runs whatever any system runs.
    request = sdk.Request(
        str(value),
        name or "Ubuntu",
        version or "24.04",
        str(rule.get("torch", "latest")),
        "",
        dict(rule.get("versions") or {}),
        bool(rule.get("mirror")) or not name,
        family(str(rule.get("instance_type") or "")) or "trn1",
    )
    if (name, version) == ("Amazon", "2") and rule.get("dnf"):
        return "Amazon Linux 2 has no dnf, which Ansible needs to install packages; use an image with Ubuntu 24.04."
    sdk.plan(request)
    return ""


def _eks_release(value: Any, rule: Rule) -> str:
    """A release of EKS's Neuron image against ``sdk`` and ``kubernetes``; an empty one is chosen."""
    asked = str(rule.get("sdk") or ""), str(rule.get("kubernetes") or "")
    if value:
        eks_images.check_release(str(value), *asked)
    else:
        eks_images.release_for(*asked)
    return ""


def _dataset(value: Any, rule: Rule) -> str:
    dataset.source_kind(str(value))
    return ""


def _dataset_name(value: Any, rule: Rule) -> str:
    dataset.checked_name(str(value))
    return ""


def _checksums(value: Any, rule: Rule) -> str:
    if not isinstance(value, Mapping):
        return f"{rule['variable']} is '{shown(value)}'; use paths with their SHA-256."
    for path, text in value.items():
        dataset.file_path(str(path))
        try:
            found = dataset.checksum(str(text))
        except ValueError:
            return f"{rule['variable']} has '{shown(text)}' for {shown(path)}; give sha256: and 64 hexadecimal digits."
        if not found:
            return f"{rule['variable']} has no checksum for {shown(path)}; give its SHA-256."
    return ""


def _file(value: Any, rule: Rule) -> str:
    path = os.path.expanduser(str(value))
    if os.path.isfile(path) and os.access(path, os.R_OK):
        return ""
    return sentence_of(
        {"sentence": "{variable} is '{value}', which is no file that can be read here; name another.", **rule},
        "",
        shown(value),
    )


def _lacking(program: str, least: str) -> str:
    """What there must be, '' where it is there; ``least`` is the lowest version that will do."""
    path = shutil.which(program)
    if not path or not least:
        return "" if path else program
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    there, wanted = ([int(part) for part in re.findall(r"\d+", text)] for text in (said, least))
    return f"{program} {least} or newer" if there < wanted else ""


def _programs(_value: Any, rule: Rule) -> str:
    least = rule.get("least") or {}
    missing = [text for program in rule.get("programs") or () if (text := _lacking(program, least.get(program, "")))]
    usual = "{variable} needs {value} on this machine, which is not installed here; install it."
    return sentence_of({"sentence": usual, **rule}, "", " and ".join(missing)) if missing else ""


def _architecture(value: Any, rule: Rule) -> str:
    if value in ARCHITECTURES:
        return ""
    return f"{rule['variable']} is '{shown(value)}'; use one of {', '.join(sorted(ARCHITECTURES))}, or nothing."


def _job_needs(value: Any, rule: Rule) -> str:
    name, version = _system_of(rule.get("system"))
    system = {"distribution": name, "distribution_version": version} if name else {}
    return needs.problem(value if isinstance(value, Mapping) else {}, PRESETS, {**rule, "system": system})


_IMAGE = "example.com/own:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
_NFS = {"type": "nfs", "source": "files.example.com:/export", "path": "/data"}
SUBJECTS: dict[str, Subject] = {
    "eks_release": Subject(
        _eks_release,
        (
            Example("a driver that is too new", "1.34.9-20260714", {"sdk": "2.29.1", "kubernetes": "1.34"}),
            Example("an image for another Kubernetes", "1.35.6-20260625", {"sdk": "2.29.1", "kubernetes": "1.34"}),
            Example("no known image for the SDK", "", {"sdk": "2.33.0", "kubernetes": "1.34"}),
        ),
        frozenset({"sdk", "kubernetes"}),
    ),
    "image_sdk": Subject(
        needs.image_problem, (Example("an image for another driver", _IMAGE, {"sdk": "2.29.1"}),), frozenset({"sdk"})
    ),
    "mounts": Subject(
        _mounts,
        (
            Example("a mount at a directory of the system", [{**_NFS, "path": "/etc"}]),
            Example("two mounts at one path", [_NFS, {**_NFS, "path": "/data/"}]),
            Example("a path that is not absolute", [{**_NFS, "path": "data"}]),
            Example("a key that no mount has", [{**_NFS, "sorce": "a:/b"}]),
            Example("NFS without a source", [{"type": "nfs", "path": "/data"}]),
            Example("an id that no file system has", [{"type": "efs", "path": "/data", "file_system_id": "efs-1"}]),
            Example(
                "Lustre without its mount name", [{"type": "lustre", "path": "/fsx", "dns_name": "fsx.example.com"}]
            ),
        ),
        frozenset({"region"}),
    ),
    "scratch": Subject(
        _scratch,
        (
            Example("a directory of the system", "/usr"),
            Example("signs that a command line cannot name", "/scratch disk"),
            Example("a mode that is not octal", "/scratch", {"mode": "rwx"}),
        ),
        frozenset({"mode"}),
    ),
    "mount_point": Subject(
        _scratch,
        (
            Example("a directory of the system", "/usr"),
            Example("a path that is not absolute", "shared"),
            Example("signs that a command line cannot name", "/our data"),
        ),
    ),
    "lustre_capacity": Subject(_lustre_capacity, (Example("neither 1200 nor a multiple of 2400", 3600),)),
    "lustre_throughput": Subject(
        _lustre_throughput,
        (
            Example("a throughput, with SCRATCH_2", 250, {"deployment_type": "SCRATCH_2"}),
            Example("none that the deployment type has", 0, {"deployment_type": "PERSISTENT_2"}),
        ),
        frozenset({"deployment_type"}),
    ),
    "scripts": Subject(
        _scripts,
        (
            Example("a text that is no script", {"10-check": "echo hello"}),
            Example("a name that is a path", {"../check": "#!/bin/sh"}),
        ),
    ),
    "system": Subject(_system, (Example("another system", {}),), frozenset({"systems", "newer", "host"})),
    "sdk": Subject(
        _sdk,
        (
            Example("a release that is not known", "2.0.0"),
            Example("a release without PyTorch", "2.32.0"),
            Example(
                "a system that the release does not support",
                "2.30.0",
                {"instance_type": "inf2.xlarge", "system": {"distribution": "Ubuntu", "distribution_version": "22.04"}},
            ),
            Example("a version of torch-neuronx that the release does not have", "2.29.1", {"torch": "2.5"}),
            Example("a release whose PyTorch does not train on that family of instances", "2.31.1"),
        ),
        frozenset({"system", "torch", "versions", "mirror", "dnf", "instance_type"}),
    ),
    "dataset": Subject(
        _dataset,
        (
            Example("neither a bucket, nor a URL, nor an absolute path", "ftp://example.com/a.tar"),
            Example("a bucket that cannot be one", "s3://My_Bucket/a.tar"),
        ),
    ),
    "dataset_name": Subject(_dataset_name, (Example("other signs than a name has", "../corpus"),)),
    "checksums": Subject(
        _checksums,
        (
            Example("a checksum that is none", {"a.tar": "12"}),
            Example("a path out of the dataset", {"../a.tar": 64 * "0"}),
        ),
    ),
    "file": Subject(_file, (Example("no file on the controller", "/nowhere/file"),)),
    "programs": Subject(
        _programs,
        (Example("a program that is not installed", "ssm", {"programs": ["no-such-program"]}),),
        frozenset({"programs", "least"}),
    ),
    "architecture": Subject(_architecture, (Example("a name that no preset has", "trn1_static"),)),
    "job_needs": Subject(
        _job_needs,
        (
            Example(
                "packages for apt on another system",
                {"preset": "bert"},
                {"directory": "/opt/trainium", "system": {"distribution": "Amazon", "distribution_version": "2023"}},
            ),
            Example(
                "data of a preset that nothing brings", {"preset": "bert-large-phase1"}, {"directory": "/opt/trainium"}
            ),
            Example(
                "a preset for another release, system or Python",
                {"preset": "llama3-8b-lora"},
                {
                    "directory": "/opt/trainium",
                    "system": {"distribution": "Ubuntu", "distribution_version": "24.04"},
                    "sdk": "2.29.1",
                    "python": "python3",
                },
            ),
            Example(
                "an image for another driver",
                {"preset": "none", "image": _IMAGE},
                {"directory": "/opt/trainium", "sdk": "2.29.1"},
            ),
            Example(
                "a preset for storage that the nodes do not have",
                {"preset": "llama2-7b"},
                {"directory": "/opt/trainium", "shared": False},
            ),
            Example(
                "large checkpoints on slow storage",
                {"preset": "llama3-70b"},
                {"directory": "/shared/trainium", "bursting": True},
            ),
            Example(
                "packages that the environment will not have",
                {"preset": "bert-large-phase1"},
                {"directory": "/opt/trainium", "packages": ["transformers", "tensorboard", "datasets", "h5py"]},
            ),
            Example(
                "more processes than the type has NeuronCores",
                {"preset": "none", "processes_per_node": 32},
                {"directory": "/opt/trainium", "instance_type": "trn1.2xlarge"},
            ),
            Example(
                "more nodes than can share the preset's batch",
                {"preset": "bert-large-phase1", "nodes": 64},
                {"directory": "/opt/trainium"},
            ),
        ),
        frozenset(
            {
                *("directory", "system", "sdk", "python", "packages", "shared", "nodes", "instance_type"),
                *("brought", "unknown", "pyxis", "bursting"),
            }
        ),
    ),
}


def refusal(rule: Rule, value: Any, host: str = "") -> str:
    """The sentence that refuses a value; '' where it may be so. Raises ValueError for a rule that is none."""
    kind = rule.get("kind")
    subject = SUBJECTS.get(str(kind))
    known = subject.keys if subject else rules.KINDS[str(kind)].keys if kind in rules.KINDS else None
    if known is None or "variable" not in rule:
        raise ValueError(f"The rule {dict(rule)!r} needs a variable and a kind that there is")
    unknown = sorted(set(rule) - known - rules.COMMON)
    if unknown:
        raise ValueError(f"The rule of {rule['variable']} has the key {unknown[0]}, which {kind} does not take")
    if subject is None:
        return rules.refusal(rule, value, host)
    if rule.get("empty") and rules.is_empty(value):
        return ""
    try:
        return subject.refusal(value, {**rule, "host": host})
    except (TrainiumError, ValueError) as error:
        return f"{str(error).rstrip('.')}."
