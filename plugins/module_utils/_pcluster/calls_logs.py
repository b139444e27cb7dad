# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One CloudWatch Logs call each; failures become an AwsCallError of one sentence."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    list_of,
    one_call,
    retried,
)

_log_groups = list_of("list the log groups", "describe_log_groups", "logGroups")
delete_log_group = call_of("delete the log group", "delete_log_group", passed=("ResourceNotFoundException",))
log_streams = list_of("list the log streams", "describe_log_streams", "logStreams")


def log_groups(client: Client, prefix: str) -> list[str]:
    """Names of the log groups that begin so."""
    return [group["logGroupName"] for group in _log_groups(client, logGroupNamePrefix=prefix)]


@one_call("read the log")
def log_events(
    client: Client, group: str, stream: str, start: int | None = None, end: int | None = None, limit: int | None = None
) -> list[Item]:
    """``timestamp`` (milliseconds) and ``message`` of a stream's events, oldest first.

    ``limit`` gives the newest so many; ``start`` and ``end`` are milliseconds since 1970.
    """
    request: Item = {"logGroupName": group, "logStreamName": stream, "startFromHead": limit is None}
    request.update({key: value for key, value in (("startTime", start), ("endTime", end)) if value is not None})
    events: list[Item] = []
    while True:
        # 10,000 is what one call gives at most.
        left = 10000 if limit is None else min(limit - len(events), 10000)
        answer = retried(client.get_log_events)(**request, limit=left)
        page = [{"timestamp": item["timestamp"], "message": item["message"]} for item in answer["events"]]
        events = events + page if limit is None else page + events
        token = answer["nextForwardToken" if limit is None else "nextBackwardToken"]
        # The end of a stream is reached when the token comes back that was sent.
        if token == request.get("nextToken") or (limit is not None and len(events) >= limit):
            return events
        request["nextToken"] = token
