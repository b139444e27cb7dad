# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of what Kubernetes gets, and of what its nodes offer; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import manifests, nodes
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain


@takes(str, "the text of a manifest")
def kubernetes_manifests(value: Any, mirrors: Mapping[str, str] | None = None, namespace: str = "") -> list[Any]:
    """The objects of a manifest."""
    text = manifests.mirrored(value, plain(mirrors or {}))
    try:
        found = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise ValueError(f"the manifest is no YAML ({' '.join(str(error).split())[:200]})") from None
    return manifests.in_namespace(found, namespace)


@takes(str, "an address or the name of an image")
def kubernetes_mirrored(value: Any, mirrors: Mapping[str, str]) -> str:
    """Where to find it."""
    return manifests.mirrored(value, plain(mirrors))


@takes(list, "a list of nodes, as Kubernetes tells of them")
def kubernetes_missing_devices(
    value: Any, groups: Sequence[Mapping[str, Any]], neuron: bool = True, efa: bool = True
) -> list[str]:
    """What is missing of node groups and of what their device plugins offer."""
    return nodes.missing(plain(value), plain(list(groups)), neuron, efa)


@takes(list, "a list of taints, as EKS takes them")
def kubernetes_tolerations(value: Any) -> list[dict[str, str]]:
    """What a pod needs to run on nodes with the taints, each once."""
    return nodes.tolerations_of(plain(value))


FilterModule = filter_module(
    kubernetes_manifests, kubernetes_mirrored, kubernetes_missing_devices, kubernetes_tolerations
)
