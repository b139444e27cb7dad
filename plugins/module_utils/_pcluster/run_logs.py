# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What pcluster_logs does: find the log group, choose streams, read them, write files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_logs as logs
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls_stack as cloudformation
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan_logs as planner
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan import NAME
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import log_groups_of

Result = dict[str, Any]


class PclusterLogs:
    """The logs of a cluster. ``clients`` makes boto3 clients by the name of the service."""

    def __init__(self, clients: Any, params: Mapping[str, Any], check_mode: bool) -> None:
        self._clients, self._params, self._check_mode = clients, params, check_mode
        self._name: str = params["name"]

    def run(self) -> Result:
        """The module's result. Raises TrainiumError."""
        params = self._params
        if not NAME.match(self._name):
            raise TrainiumError("name is no name of a cluster")
        start = planner.milliseconds("start_time", params["start_time"])
        end = planner.milliseconds("end_time", params["end_time"])
        if start is not None and end is not None and start >= end:
            raise TrainiumError("start_time must be earlier than end_time")
        cloudwatch = self._clients("logs")
        groups = log_groups_of(self._name, logs.log_groups(cloudwatch, f"/aws/parallelcluster/{self._name}-"))
        # All that CloudFormation keeps, newest first.
        listed = cloudformation.stack_events(self._clients("cloudformation"), self._name, whole=True)
        events = [planner.shown_stack_event(event) for event in listed]
        if not groups and not events:
            raise TrainiumError("there is neither a stack nor a log group of a cluster of this name in this region")
        streams = self._streams(cloudwatch, groups[0]) if groups else []
        texts = {planner.STACK_EVENTS_FILE: planner.stack_lines(reversed(events))} if params["stack_events"] else {}
        found: dict[str, list[dict[str, str]]] = {}
        if params["events"] or params["dest"]:
            for stream in streams:
                read = logs.log_events(cloudwatch, groups[0], stream["name"], start, end, params["limit"])
                texts[planner.file_name(stream["name"])] = planner.lines(read)
                found[stream["name"]] = [
                    {"time": planner.iso(item["timestamp"]), "message": item["message"]} for item in read
                ]
        changed, files = self._write(texts)
        return {
            "changed": changed,
            "log_group": groups[0] if groups else "",
            "log_groups": groups,
            "log_streams": [dict(stream) for stream in streams],
            "stack_events": events if params["stack_events"] else [],
            "log_events": found if params["events"] else {},
            "files": files,
        }

    def _streams(self, cloudwatch: Any, group: str) -> list[Mapping[str, str]]:
        streams = [planner.parsed(item) for item in logs.log_streams(cloudwatch, logGroupName=group)]
        nodes = self._params["nodes"]
        known: list[str] = []
        if planner.HEAD in nodes:
            tags = {"tag:parallelcluster:cluster-name": self._name, "tag:parallelcluster:node-type": planner.HEAD}
            known = [item["InstanceId"] for item in ec2.describe_instances(self._clients("ec2"), tags)]
        return planner.chosen(streams, nodes, self._params["logs"], planner.heads(streams, known))

    def _write(self, texts: Mapping[str, str]) -> tuple[bool, list[str]]:
        """Write what is not there yet; whether anything was or would be written, and the paths of all files."""
        folder = self._params["dest"]
        if not folder:
            return False, []
        paths = {os.path.join(folder, name): text.encode("utf-8") for name, text in texts.items()}
        try:
            new = {path: text for path, text in paths.items() if not _is_written(path, text)}
            if not self._check_mode:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                for path, text in new.items():
                    replace(path, text, 0o600)
        except OSError as error:
            raise TrainiumError(f"dest {error.filename or folder}: {error.strerror}") from error
        return bool(new), sorted(paths)


def _is_written(path: str, text: bytes) -> bool:
    """Whether a file holds this text and is its owner's alone."""
    try:
        with open(path, "rb") as stream:
            return stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600 and stream.read() == text
    except FileNotFoundError:
        return False
