# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The log streams of a cluster of ParallelCluster, and how their events are written into files. Pure.

A stream is called ``<host>.<instance id>.<log>``, such as ``ip-192-0-2-10.i-0a1b2c3d4e5f60001.clustermgtd``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

HEAD = "HeadNode"
# Only the head node writes these.
_HEAD_LOGS = ("clustermgtd", "slurmctld", "slurm_resume", "slurm_suspend")
STACK_EVENTS_FILE = "stack-events.log"


def parsed(stream: Mapping[str, Any]) -> dict[str, str]:
    """An item of DescribeLogStreams as ``{"name", "host", "instance_id", "log", "last_event_time"}``.

    Of a stream with another kind of name, ``host`` and ``instance_id`` are empty.
    """
    name = str(stream["logStreamName"])
    match = re.fullmatch(r"(?P<host>[^.]+)\.(?P<instance_id>i-[0-9a-f]+)\.(?P<log>.+)", name)
    parts = match.groupdict() if match else {"host": "", "instance_id": "", "log": name}
    return {"name": name, **parts, "last_event_time": iso(stream.get("lastEventTimestamp"))}


def heads(streams: Iterable[Mapping[str, str]], instance_ids: Iterable[str]) -> set[str]:
    """The head nodes' instance ids: those that EC2 knows, and those that write what only a head node writes."""
    writers = {item["instance_id"] for item in streams if item["log"] in _HEAD_LOGS and item["instance_id"]}
    return writers | set(instance_ids)


def chosen(
    streams: Iterable[Mapping[str, str]], nodes: Sequence[str], patterns: Sequence[str], head_ids: Iterable[str]
) -> list[Mapping[str, str]]:
    """The streams of the nodes (host name, instance id or HeadNode) whose log matches one of the patterns."""
    ids = set(head_ids)
    wanted = [
        item
        for item in streams
        if (
            not nodes
            or item["host"] in nodes
            or item["instance_id"] in nodes
            or (HEAD in nodes and item["instance_id"] in ids)
        )
        and (not patterns or any(fnmatchcase(item["log"], pattern) for pattern in patterns))
    ]
    return sorted(wanted, key=lambda item: item["name"])


def file_name(stream: str) -> str:
    """A file's name for a stream; it cannot leave its folder."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", stream).lstrip(".") + ".log"


def lines(events: Iterable[Mapping[str, Any]]) -> str:
    """Log events as text, one line each with its time; the further lines of a message are indented."""
    return "".join(
        f"{iso(event['timestamp'])} " + str(event["message"]).rstrip("\n").replace("\n", "\n    ") + "\n"
        for event in events
    )


def shown_stack_event(event: Mapping[str, Any]) -> dict[str, str]:
    """An item of DescribeStackEvents with the fields that matter."""
    return {
        "time": _text(event.get("Timestamp")),
        "resource": str(event["LogicalResourceId"]),
        "type": str(event["ResourceType"]),
        "status": str(event["ResourceStatus"]),
        "reason": str(event.get("ResourceStatusReason") or ""),
    }


def stack_lines(events: Iterable[Mapping[str, str]]) -> str:
    """Stack events as text, oldest first."""
    rows = (f"{item['time']} {item['status']} {item['type']} {item['resource']} {item['reason']}" for item in events)
    return "".join(f"{row.rstrip()}\n" for row in rows)


def milliseconds(option: str, text: str | None) -> int | None:
    """A time in ISO 8601, without an offset in UTC, as milliseconds since 1970. Raises TrainiumError."""
    if not text:
        return None
    try:
        # Python before 3.11 does not know Z.
        moment = datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text))
    except ValueError as error:
        raise TrainiumError(f"{option} {text} is no time in ISO 8601, such as 2026-11-21T07:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)


def iso(timestamp: int | None) -> str:
    """Milliseconds since 1970 in ISO 8601; '' for None."""
    if timestamp is None:
        return ""
    moment = datetime.fromtimestamp(timestamp / 1000, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(moment: Any) -> str:
    return iso(round(moment.timestamp() * 1000)) if isinstance(moment, datetime) else str(moment or "")
