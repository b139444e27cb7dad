# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The container image of a training, as Pyxis and Enroot take it. Pure.

Enroot imports ``docker://[USER@][REGISTRY#]IMAGE[:TAG]`` (its doc/cmd/import.md), where a digest stands in the place of
a tag: 3.5 knows no ``@`` before one (src/docker.sh, _parse_uri). Credentials are looked up for a named user only, which
is AWS for Elastic Container Registry. Pyxis mounts ``SRC:DST[,SRC:DST...]`` (its README).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import RefusedError, check_path

_USER = re.compile(r"([A-Za-z0-9._$-]+)@([^@#]+#.*)", re.DOTALL)
_REGISTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?")
_IMAGE = re.compile(
    r"([a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*)(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?"
)
_ECR = re.compile(r"[0-9]{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
# In the tags of Neuron's images, as in 2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04.
_SDK = re.compile(r"-sdk([0-9]+\.[0-9]+\.[0-9]+)(?:-|@|$)")
# Launchers whose nodes are pods.
IN_PODS = ("kubernetes", "torchx")
# More than a path where Pyxis reads a list of mounts.
_PARTED = re.compile(r"[\s,:]")
_FORM = "write it as public.ecr.aws/neuron/pytorch-training-neuronx:TAG, or the absolute path of a squashfs file"


def container(definition: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """What scripts need of a checked definition's image: ``uri`` ('' for a file that is there), ``file`` on the nodes,
    ``registry`` and ``region`` where that is Amazon's, and ``mounts``; {} without an image. Raises ValueError.
    """
    image = definition["image"]
    # Pods have it by themselves.
    if image == "" or context["launcher"] in IN_PODS:
        return {}
    if not isinstance(image, str):
        raise RefusedError("image", image, _FORM)
    if context["launcher"] != "slurm":
        raise RefusedError("image", image, "set training_job_launcher to slurm, whose plugin Pyxis starts it")
    for key in ("packages", "requirements"):
        if definition[key]:
            wanted = ", ".join(definition[key])
            raise RefusedError(key, wanted, f"take an image that has it, and set {key} to []")
    made = {"uri": "", "file": image, "registry": "", "region": ""}
    if image.startswith("/"):
        _check_mount("image", image)
    else:
        made.update(_reference(image))
        made["file"] = f"{context['directory']}/images/{sha256(made['uri'].encode()).hexdigest()[:16]}.sqsh"
    return {**made, "mounts": _mounts(definition, context)}


def sdk_of(image: Any) -> str:
    """Neuron's SDK in an image, where its tag names it; else ''."""
    found = _SDK.search(image) if isinstance(image, str) else None
    return found.group(1) if found else ""


def _reference(image: str) -> dict[str, str]:
    text = image[len("docker://") :] if image.startswith("docker://") else image
    named = _USER.fullmatch(text)
    user, text = (named.group(1), named.group(2)) if named else ("", text)
    registry, sign, name = text.partition("#")
    if not sign:
        registry, sign, name = text.partition("/")
        # As Docker tells a registry from the first part of a name.
        if not sign or (not re.search(r"[.:]", registry) and registry != "localhost"):
            registry, name = "", text
    found = _IMAGE.fullmatch(name)
    if found is None or (registry and not _REGISTRY.fullmatch(registry)):
        raise RefusedError("image", image, _FORM)
    version = found.group(3) or found.group(2) or "latest"
    if version == "latest":
        raise RefusedError(
            "image", image, "name a tag other than latest, or a digest, since another may be there later"
        )
    amazon = _ECR.fullmatch(registry)
    user = user or ("AWS" if amazon else "")
    uri = f"docker://{user}{'@' if user else ''}{registry}{'#' if registry else ''}{found.group(1)}:{version}"
    return {"uri": uri, "registry": registry, "region": amazon.group(1) if amazon else ""}


def _mounts(definition: Mapping[str, Any], context: Mapping[str, Any]) -> list[str]:
    """The folders that the container sees, each at its place: jobs, the cache, data, and those that are asked for."""
    asked = definition["mounts"]
    if not isinstance(asked, list):
        raise RefusedError("mounts", asked, "use a list of folders on the nodes")
    cache = definition["cache"]["directory"]
    found: Sequence[str] = [
        context["directory"],
        *([] if cache.startswith("s3://") else [cache]),
        *(context.get("mounts") or ()),
        *asked,
    ]
    for path in found:
        _check_mount("mounts", path)
    return list(dict.fromkeys(found))


def _check_mount(key: str, path: Any) -> None:
    check_path(key, path)
    if _PARTED.search(path):
        raise RefusedError(key, path, "use a path without blanks, commas and colons, which would end it for Pyxis")
