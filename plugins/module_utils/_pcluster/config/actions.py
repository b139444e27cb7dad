# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Custom actions of a ParallelCluster configuration, and the rights that nodes need for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import given
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.storage import nfs_actions
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import partition

Variables = Mapping[str, Any]
Section = dict[str, Any]

EVENTS = {
    "on_node_start": "OnNodeStart",
    "on_node_configured": "OnNodeConfigured",
    "on_node_updated": "OnNodeUpdated",
}
SSM_POLICY = "AmazonSSMManagedInstanceCore"


def actions_and_rights(variables: Variables, node_type: str, node: Variables) -> Section:
    """The sections CustomActions and Iam of a node."""
    actions = node_actions(variables, node_type, node)
    # A login node takes policies only; it has no S3Access of its own.
    rights = iam_section(variables, node, script_buckets(actions), s3=node_type != "login")
    return {"CustomActions": custom_actions(actions), "Iam": rights}


def node_actions(variables: Variables, node_type: str, node: Variables) -> dict[str, Any]:
    """The scripts of a node, by event, in the order in which they run.

    First those that mount NFS directories, then ``setup_actions`` of its type, which nothing replaces, then its own or,
    where it has none for the event, those of ``custom_actions`` of its type.

    ``node_type`` is ``head``, ``compute`` or ``login``.
    """
    of_type = {**((variables.get("custom_actions") or {}).get(node_type) or {}), **(node.get("custom_actions") or {})}
    setup = (variables.get("setup_actions") or {}).get(node_type) or {}
    mounts = nfs_actions(variables.get("shared_storage") or [])
    first = {**setup, "on_node_configured": mounts + list(setup.get("on_node_configured") or [])}
    return {
        **of_type,
        **{event: [*scripts, *(of_type.get(event) or [])] for event, scripts in first.items() if scripts},
    }


def custom_actions(actions: Variables) -> Section:
    """{on_node_configured: [{script, args}]} as ParallelCluster writes it: one script, or a sequence of them."""
    section: Section = {}
    for event, key in EVENTS.items():
        scripts = [
            given(Script=item["script"], Args=[str(value) for value in item.get("args") or ()])
            for item in actions.get(event) or []
        ]
        if len(scripts) == 1:
            section[key] = scripts[0]
        elif scripts:
            section[key] = {"Sequence": scripts}
    return section


def bucket_of(url: str) -> tuple[str, str]:
    """Bucket and key of ``s3://bucket/key``; two empty texts for another URL."""
    scheme, _colon, rest = url.partition("://")
    if scheme != "s3":
        return "", ""
    bucket, _slash, key = rest.partition("/")
    return bucket, key


def script_buckets(actions: Variables) -> list[Section]:
    """Read access to the folders that the scripts lie in; without it the node cannot fetch them."""
    folders: dict[str, set[str]] = {}
    for event in EVENTS:
        for item in actions.get(event) or []:
            bucket, key = bucket_of(str(item.get("script", "")))
            if bucket:
                folders.setdefault(bucket, set()).add(key.rpartition("/")[0])
    sections = []
    for bucket, keys in folders.items():
        folder = next(iter(keys))
        # Scripts in several folders need all of it.
        sections.append(given(BucketName=bucket, KeyName=f"{folder}/*" if len(keys) == 1 and folder else None))
    return sections


def iam_section(variables: Variables, node: Variables, scripts: Iterable[Section], s3: bool = True) -> Section:
    """The Iam section: Session Manager where wanted, further policies, and S3 read access by name of the bucket.

    ``node`` may give ``instance_role`` or ``instance_profile``, which ParallelCluster takes instead of the rest.
    """
    for key, name in (("instance_role", "InstanceRole"), ("instance_profile", "InstanceProfile")):
        if node.get(key):
            return {name: node[key]}
    section: Section = {}
    policies = [*(variables.get("iam_policies") or []), *(node.get("iam_policies") or [])]
    if variables.get("ssm_access"):
        policies.insert(0, f"arn:{partition(str(variables.get('region') or ''))}:iam::aws:policy/{SSM_POLICY}")
    if policies:
        section["AdditionalIamPolicies"] = [{"Policy": policy} for policy in dict.fromkeys(policies)]
    if s3:
        access = [_s3_access(item) for item in [*(variables.get("s3_access") or []), *(node.get("s3_access") or [])]]
        # What a wider entry, or the same one, allows already. The library compares entries by their bucket's name: an
        # update shows changes of two with one name that are none (config_patch.py, update_key of S3Access).
        read = {(item["BucketName"], item.get("KeyName")) for item in access}
        access += [
            item
            for item in scripts
            if not read & {(item["BucketName"], None), (item["BucketName"], item.get("KeyName"))}
        ]
        if access:
            section["S3Access"] = access
    return section


def _s3_access(item: Variables) -> Section:
    return given(
        BucketName=item["bucket"], KeyName=item.get("key") or None, EnableWriteAccess=bool(item.get("write")) or None
    )
