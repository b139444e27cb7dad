# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the events of a CloudFormation stack say about the operation that is under way. Pure.

An event is an item of DescribeStackEvents: ``LogicalResourceId``, ``ResourceType``, ``ResourceStatus``, perhaps
``ResourceStatusReason``; newest first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Event = Mapping[str, Any]

STACK_TYPE = "AWS::CloudFormation::Stack"
# Followers of another's failure say nothing.
_FOLLOWER = re.compile(r"cancelled|canceled|The following resource\(s\) failed", re.IGNORECASE)
_SHOWN = 3


class Ends(NamedTuple):
    """How an operation ends: the stack's status when it is done, and when it can no longer be."""

    done: tuple[str, ...]
    failed: tuple[str, ...]
    verb: str


# A failed update is over when it has been taken back: only then can the fleet be started again.
ENDS = {
    "create": Ends(
        ("CREATE_COMPLETE", "UPDATE_COMPLETE"),
        ("CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_IN_PROGRESS"),
        "created",
    ),
    "update": Ends(
        ("UPDATE_COMPLETE", "CREATE_COMPLETE"),
        ("UPDATE_FAILED", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED", "DELETE_IN_PROGRESS"),
        "updated",
    ),
    "delete": Ends(("DELETE_COMPLETE",), ("DELETE_FAILED",), "deleted"),
}


class Progress(NamedTuple):
    """How many resources have succeeded, which are under way, and the newest event as text."""

    done: int
    under_way: list[str]
    last: str


def is_root(event: Event) -> bool:
    """Whether an event is about the stack itself."""
    return event.get("ResourceType") == STACK_TYPE and event.get("PhysicalResourceId") == event.get("StackId")


def begins(event: Event) -> bool:
    """Whether an event is the first of an operation on the stack; a rollback belongs to what it takes back."""
    return is_root(event) and event["ResourceStatus"] in (
        "CREATE_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "DELETE_IN_PROGRESS",
    )


def progress(events: Sequence[Event]) -> Progress:
    """How far the operation is whose events these are."""
    newest: dict[str, str] = {}
    for event in events:
        if not is_root(event):
            newest.setdefault(event["LogicalResourceId"], event["ResourceStatus"])
    done = [name for name, status in newest.items() if status.endswith("_COMPLETE")]
    under_way = [name for name, status in newest.items() if status.endswith("_IN_PROGRESS")]
    last = f"{events[0]['LogicalResourceId']} {events[0]['ResourceStatus']}" if events else "no event yet"
    return Progress(len(done), under_way, last)


def failures(events: Sequence[Event]) -> list[dict[str, str]]:
    """The resources that failed by themselves, in the order of their failures: ``{"resource", "type", "reason"}``."""
    found: dict[str, dict[str, str]] = {}
    for event in reversed(events):
        reason = " ".join(str(event.get("ResourceStatusReason") or "").split())
        if is_root(event) or not event["ResourceStatus"].endswith("_FAILED") or _FOLLOWER.search(reason):
            continue
        found.setdefault(
            event["LogicalResourceId"],
            {
                "resource": event["LogicalResourceId"],
                "type": event["ResourceType"],
                "reason": reason or event["ResourceStatus"],
            },
        )
    return list(found.values())


def root_reason(events: Sequence[Event]) -> str:
    """What CloudFormation says about the stack itself, '' if nothing."""
    for event in events:
        reason = " ".join(str(event.get("ResourceStatusReason") or "").split())
        if is_root(event) and reason and reason != "User Initiated":
            return reason
    return ""


def failure_text(failed: Sequence[Mapping[str, str]], reason: str) -> str:
    """Why an operation failed, as part of a sentence."""
    texts = [f"{item['resource']} ({item['type']}): {item['reason'].rstrip('. ')}" for item in failed[:_SHOWN]]
    if len(failed) > _SHOWN:
        texts.append(f"{len(failed) - _SHOWN} more")
    return "; ".join(texts) or reason.rstrip(". ") or "CloudFormation gave no reason"


def log_groups_of(cluster: str, names: Sequence[str]) -> list[str]:
    """Those of ``names`` that are a cluster's log groups, newest first.

    ParallelCluster calls them ``/aws/parallelcluster/<cluster>-<year month day hour minute>``.
    """
    pattern = re.compile(rf"/aws/parallelcluster/{re.escape(cluster)}-\d{{12}}\Z")
    return sorted((name for name in names if pattern.match(name)), reverse=True)


def function_log_groups(names: Sequence[str], stack_ids: Sequence[str]) -> list[str]:
    """Those of ``names`` that are logs of the functions by which clusters are cleaned up when they are deleted.

    ParallelCluster calls the functions ``pcluster-<what>-<last part of the stack's ARN>``.
    """
    endings = tuple(f"-{identity.rpartition('/')[2]}" for identity in stack_ids)
    return sorted(name for name in names if endings and name.endswith(endings))
