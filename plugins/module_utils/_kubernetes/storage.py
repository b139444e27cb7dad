# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file system of FSx for Lustre as pods see it: its volume and its claim. Pure.

Fields as the driver's README and its example for static provisioning have them
(https://github.com/kubernetes-sigs/aws-fsx-csi-driver, v1.9.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.names import MANAGED_BY, MANAGER

DRIVER = "fsx.csi.aws.com"
# What whoever is root of a pod puts there makes nobody root of another. The last that names one of a pair counts.
_SAFE = ("nosuid", "nodev")
# Of a claim that is bound only what the driver has made can grow: a file system that grows is its volume's affair.
_REQUEST = "1Gi"

Object = dict[str, Any]


def _object(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, "labels": {MANAGED_BY: MANAGER}, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def volume_name(site: Mapping[str, Any]) -> str:
    """Volumes are in no namespace, and cannot be given another file system.

    Neither namespaces nor these claims have dots in their names, so that no two claims come to one volume.
    """
    return f"{site['namespace']}.{site['claim']}.{site['file_system_id']}"


def static(site: Mapping[str, Any]) -> list[Object]:
    """The volume of a file system that is there, which stays when the claim goes, and the claim that it is kept for.

    ``site``: ``namespace``, ``claim``, ``capacity`` (GiB), ``mount_options``, ``file_system_id``, ``dns_name`` and
    ``mount_name``.
    """
    name = volume_name(site)
    attributes = {"dnsname": site["dns_name"], "mountname": site["mount_name"]}
    wanted = [option for option in site["mount_options"] if option not in _SAFE]
    spec = {
        "capacity": {"storage": f"{int(site['capacity'])}Gi"},
        "accessModes": ["ReadWriteMany"],
        "mountOptions": [*wanted, *_SAFE],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "volumeMode": "Filesystem",
        "claimRef": {"namespace": site["namespace"], "name": site["claim"]},
        "csi": {"driver": DRIVER, "volumeHandle": site["file_system_id"], "volumeAttributes": attributes},
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        # Else the default class would make another.
        "storageClassName": "",
        "volumeName": name,
        "resources": {"requests": {"storage": _REQUEST}},
    }
    return [
        _object("v1", "PersistentVolume", name, spec=spec),
        _object("v1", "PersistentVolumeClaim", site["claim"], site["namespace"], spec=claim),
    ]


def refusal(site: Mapping[str, Any], volume: Mapping[str, Any] | None, claim: Mapping[str, Any] | None) -> str:
    """Why volume and claim that are there are left alone; '' where they are ours or there are none."""
    name, wanted = volume_name(site), f"{site['namespace']}/{site['claim']}"
    the_claim = f"The claim {site['claim']} in the namespace {site['namespace']}"
    remedy = "or give another training_job_claim."
    if claim:
        spec = claim.get("spec") or {}
        has = spec.get("volumeName") or f"the class {spec.get('storageClassName') or 'by default'}"
        if has != name:
            return f"{the_claim} is for {has}, not for {name}; delete it, {remedy}"
        if claim["metadata"].get("deletionTimestamp"):
            return f"{the_claim} is being deleted; end the pods that use it, and run again."
    if volume:
        of = (volume.get("spec") or {}).get("claimRef") or {}
        has = f"{of.get('namespace', '')}/{of.get('name', '')}"
        if (volume["metadata"].get("labels") or {}).get(MANAGED_BY) != MANAGER:
            return f"The volume {name} is not ours; delete it, which leaves its data, {remedy}"
        if has != wanted:
            return f"The volume {name} is for the claim {has}; delete it, which leaves its data, {remedy}"
    return ""


def is_left(volume: Mapping[str, Any] | None, claim: Mapping[str, Any] | None) -> bool:
    """Whether a volume still waits for a claim that is gone, by whose uid no other gets it."""
    uid = (((volume or {}).get("spec") or {}).get("claimRef") or {}).get("uid")
    return bool(uid) and uid != ((claim or {}).get("metadata") or {}).get("uid")
