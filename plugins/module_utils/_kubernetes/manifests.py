# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Manifests of a release made fit for one cluster, as its kustomization or chart would do it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Kinds that are in no namespace, of those that manifests of add-ons have.
CLUSTER_WIDE = frozenset(
    {
        *("APIService", "CSIDriver", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        *("PersistentVolume", "PriorityClass", "Queue", "StorageClass"),
    }
)


def mirrored(text: str, mirrors: Mapping[str, str]) -> str:
    """A text with what addresses and names of images begin with replaced."""
    for begins, instead in mirrors.items():
        text = text.replace(begins, instead)
    return text


def in_namespace(found: Iterable[Any], namespace: str) -> list[dict[str, Any]]:
    """Objects with a namespace where they name none, service accounts of bindings as well; without values of null."""
    return [_placed(_filled(one), namespace) for one in found if one]


def _filled(value: Any) -> Any:
    """Without null, which what a template left empty is."""
    if isinstance(value, Mapping):
        return {name: _filled(part) for name, part in value.items() if part is not None}
    return [_filled(part) for part in value] if isinstance(value, list) else value


def _placed(found: dict[str, Any], namespace: str) -> dict[str, Any]:
    if namespace and found.get("kind") not in CLUSTER_WIDE:
        found = {**found, "metadata": {"namespace": namespace, **found["metadata"]}}
    if namespace and found.get("kind") in ("ClusterRoleBinding", "RoleBinding"):
        subjects = [
            {"namespace": namespace, **one} if one["kind"] == "ServiceAccount" else one for one in found["subjects"]
        ]
        found = {**found, "subjects": subjects}
    return found
