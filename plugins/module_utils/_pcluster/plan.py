# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is to be done with a cluster of ParallelCluster in the state that it is in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    OWNER_TAG,
    check_ours,
    own_tags,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import numbers

# What a cluster's name may be: facts of ParallelCluster 3.
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{0,59}\Z")
# Before this version an update may not change the tags of a cluster (Tags section in AWS's user guide).
_TAGS_CHANGE = "3.15"
# States of the fleet in which there may be compute nodes, or soon will be.
STARTED = ("START_REQUESTED", "STARTING", "RUNNING", "PROTECTED")
# How the library says that an update needs the compute nodes gone, and what else it may want that stopping them is no
# cure for.
_STOP_CURES = re.compile(r"compute nodes must be stopped|stop the compute fleet", re.IGNORECASE)
_STOP_IS_NO_CURE = re.compile(r"head node must be|login nodes", re.IGNORECASE)


def check_owner(stack: Mapping[str, Any] | None, name: str, owner: str | None) -> None:
    """Refuse the cluster of another owner, and with an ``owner`` one that nobody has marked as this cluster's.

    ``stack`` is that of the name, None for none. Raises TrainiumError.
    """
    if stack is None:
        return
    tags = tags_of(stack)
    if owner:
        check_ours(tags, {"cluster_name": name, "owner": owner}, "the cluster")
    elif OWNER_TAG in tags:
        raise TrainiumError(
            f"the cluster belongs to {tags[OWNER_TAG]}; take another name, or give owner to act for them"
        )


def with_owner(configuration: dict[str, Any], name: str, owner: str | None) -> dict[str, Any]:
    """A configuration with the tags by which its cluster is known; as it is where there is no ``owner``."""
    if not owner:
        return configuration
    tags = {**tags_of(configuration), **own_tags({"cluster_name": name, "owner": owner})}
    return {**configuration, "Tags": tag_list(tags)}


def without_new_owner(configuration: dict[str, Any], current: Any, version: str) -> dict[str, Any]:
    """What a cluster shall have whose configuration is ``current``: no owner's tag that it cannot be given any more."""
    tags = tags_of(configuration)
    if numbers(version) >= numbers(_TAGS_CHANGE) or OWNER_TAG in tags_of(current or {}) or OWNER_TAG not in tags:
        return configuration
    return {**configuration, "Tags": tag_list({key: value for key, value in tags.items() if key != OWNER_TAG})}


class Step(NamedTuple):
    """``action`` is what to do next, ``text`` the sentence where that is to refuse.

    ``create``, ``update``, ``delete``, ``nothing``, ``refuse``; ``wait_create`` and ``wait_update`` wait for what is
    under way and look again, ``wait_delete`` waits and is done.
    """

    action: str
    text: str = ""


def next_step(wanted: str, status: str | None, same: bool, wait: bool) -> Step:
    """``wanted`` is ``present`` or ``absent``, ``status`` the CloudFormation status of the stack (None: no stack).

    ``same`` says whether the cluster's configuration is the wanted one.
    """
    if wanted == "absent":
        return _towards_absent(status, wait)
    if status is None:
        return Step("create")
    if status.startswith("DELETE_IN_PROGRESS"):
        return Step("refuse", "the cluster is being deleted; wait until it is gone, then create it")
    if status.startswith("DELETE_"):
        return Step("refuse", "the deletion of the cluster failed; delete it again with state=absent")
    if status in ("CREATE_FAILED", "REVIEW_IN_PROGRESS") or status.startswith("ROLLBACK_"):
        return Step("refuse", "the creation of the cluster failed; delete it with state=absent, then create it again")
    if status == "UPDATE_ROLLBACK_FAILED":
        return Step(
            "refuse",
            "an update of the cluster failed and so did taking it back; "
            "continue the rollback of its stack in CloudFormation, or delete the cluster with state=absent",
        )
    if status.endswith("_IN_PROGRESS"):
        return _under_way(status, same, wait)
    return Step("nothing" if same else "update")


def _under_way(status: str, same: bool, wait: bool) -> Step:
    creating = status.startswith("CREATE_")
    if wait:
        return Step("wait_create" if creating else "wait_update")
    if same:
        return Step("nothing")
    what = "created" if creating else "updated"
    return Step("refuse", f"the cluster is just being {what} with another configuration; wait until that is done")


def _towards_absent(status: str | None, wait: bool) -> Step:
    if status is None:
        return Step("nothing")
    if status == "DELETE_IN_PROGRESS":
        return Step("wait_delete" if wait else "nothing")
    if status.startswith("UPDATE_") and status.endswith("_IN_PROGRESS"):
        # CloudFormation finishes an update before it deletes.
        if wait:
            return Step("wait_update")
        return Step("refuse", "the cluster is just being updated; wait until that is done")
    return Step("delete")


def version_refusal(made_by: str | None, installed: str) -> str:
    """Why this ParallelCluster may not update the cluster; '' where it may."""
    if made_by == installed:
        return ""
    if not made_by:
        return "the stack of this name was not made by ParallelCluster; choose another name"
    return (
        f"the cluster was made by ParallelCluster {made_by} and {installed} is installed; only the same version can "
        f"update it: name an interpreter with aws-parallelcluster=={made_by} (pcluster_python)"
    )


def same_configuration(one: Any, other: Any) -> bool:
    """Whether two configurations mean the same: order of keys and empty values do not count."""
    return _meaning(one) == _meaning(other)


def _meaning(value: Any) -> Any:
    if isinstance(value, Mapping):
        told = {str(key): _meaning(item) for key, item in value.items()}
        return {key: item for key, item in told.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_meaning(item) for item in value]
    # In Python True equals 1; in a configuration it does not.
    return ("bool", value) if isinstance(value, bool) else value


def stop_would_help(content: Mapping[str, Any]) -> bool:
    """Whether a refused update would be accepted with the fleet stopped; ``content`` is the library's refusal."""
    messages = [str(item.get("message", "")) for item in content.get("updateValidationErrors") or ()]
    return bool(messages) and all(_STOP_CURES.search(text) and not _STOP_IS_NO_CURE.search(text) for text in messages)


def nothing_to_update(message: str) -> bool:
    """Whether the library refused an update because it found no change that it applies."""
    return "no changes found" in message.lower()


def change_set(content: Mapping[str, Any]) -> list[dict[str, str]]:
    """The library's changes as ``[{"parameter", "current_value", "requested_value"}]``."""
    return [
        {
            "parameter": str(item.get("parameter", "")),
            "current_value": str(item.get("currentValue", "-")),
            "requested_value": str(item.get("requestedValue", "-")),
        }
        for item in content.get("changeSet") or ()
    ]


def real_changes(changes: list[dict[str, str]], current: Any, wanted: Any) -> list[dict[str, str]]:
    """A change set without what it says of S3Access that stays as it is.

    The library compares entries by their bucket, and each with the first of that name (config_patch.py, _compare_list).
    """
    was, becomes = _access(current), _access(wanted)
    same = tuple(f"{node}.Iam.S3Access[" for node in becomes if _meaning(becomes[node]) == _meaning(was.get(node)))
    return [item for item in changes if not item["parameter"].startswith(same)]


def _access(configuration: Any) -> dict[str, Any]:
    """S3Access of the head node and of each queue, by the names that a change set has for these."""
    whole = configuration if isinstance(configuration, Mapping) else {}
    queues = (whole.get("Scheduling") or {}).get("SlurmQueues") or ()
    nodes = {f"Scheduling.SlurmQueues[{queue.get('Name')}]": queue for queue in queues}
    nodes["HeadNode"] = whole.get("HeadNode") or {}
    return {name: (node.get("Iam") or {}).get("S3Access") for name, node in nodes.items()}


def validation_messages(content: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the library remarked, as ``[{"level", "type", "message"}]``."""
    remarks = content.get("validationMessages") or content.get("configurationValidationErrors") or ()
    return [{key: str(item.get(key, "")) for key in ("level", "type", "message")} for item in remarks]


def changes_shown(changes: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """A change set as the ``before`` and ``after`` of diff mode."""
    return {
        "before": {item["parameter"]: item["current_value"] for item in changes},
        "after": {item["parameter"]: item["requested_value"] for item in changes},
    }
