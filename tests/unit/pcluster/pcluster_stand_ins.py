"""A library of ParallelCluster and an account that answer as they are told, and what they were asked.

The library stands in for a process of more than a second; boto3 is the real one up to where it would send a request.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import boto3
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import DRY_RUN, PclusterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import STACK_TYPE

Item = dict[str, Any]
ARN = "arn:aws:cloudformation:us-west-2:123456789012:stack/bert/0a1b2c3d"
# What a dry run that passes raises.
ACCEPTED = PclusterError(DRY_RUN, "Request would have succeeded, but DryRun flag is set.")


class ToldLibrary(Library):
    """``told``: operation -> its answer, or a list of answers of which the last stays; errors are raised.

    A dry run is an operation of its own, ``dry create_cluster``, and passes where nothing else is told.
    """

    def __init__(self, **told: Any) -> None:
        super().__init__(None, "us-west-2", {})
        self.told = told
        self.asked: list[tuple[str, Item]] = []

    def call(self, operation: str, **arguments: Any) -> Any:
        given = {key: value for key, value in arguments.items() if value is not None}
        name = f"dry_{operation}" if given.pop("dryrun", False) else operation
        self.asked.append((name, given))
        answer = self.told.get(name, ACCEPTED if name.startswith("dry_") else {})
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def operations(self) -> list[str]:
        return [name for name, _arguments in self.asked]

    def arguments(self, operation: str) -> Item:
        """Of the last call of the operation."""
        return [arguments for name, arguments in self.asked if name == operation][-1]


class ToldError(Exception):
    """An answer of AWS that is an error."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(code)
        self.code, self.message = code, message


class ToldAccount:
    """Clients of boto3; ``told``: operation of AWS -> its answer, a list of answers, or a function of the request."""

    def __init__(self, **told: Any) -> None:
        self.told = told
        self.asked: list[tuple[str, Item]] = []

    def client(self, service: str) -> Any:
        name: Any = service
        made: Any = boto3.client(name, region_name="us-west-2", aws_access_key_id="id", aws_secret_access_key="secret")
        made.meta.events.register("before-parameter-build", self._note)
        made.meta.events.register("before-call", self._answer)
        return made

    def _note(self, params: Item, model: Any, **_event: Any) -> None:
        self.asked.append((model.name, dict(params)))

    def _answer(self, model: Any, **_event: Any) -> tuple[Any, Item]:
        answer = self.told.get(model.name, {})
        if isinstance(answer, Callable):  # type: ignore[arg-type]
            answer = answer(self.asked[-1][1])
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, ToldError):
            error = {"Code": answer.code, "Message": answer.message}
            return SimpleNamespace(status_code=400), {"Error": error, "ResponseMetadata": {"RequestId": "1"}}
        return SimpleNamespace(status_code=200), {**answer, "ResponseMetadata": {"RequestId": "1"}}

    def requests(self, operation: str) -> list[Item]:
        return [request for name, request in self.asked if name == operation]


def event(name: str, status: str, reason: str = "", kind: str = "AWS::EC2::Instance", **more: str) -> Item:
    """An item of DescribeStackEvents; the stack itself is called bert."""
    physical = ARN if name == "bert" else f"p-{name}"
    made = {"StackId": ARN, "LogicalResourceId": name, "PhysicalResourceId": physical, "ResourceStatus": status}
    return {**made, "ResourceType": STACK_TYPE if name == "bert" else kind, "ResourceStatusReason": reason, **more}


def groups(*names: str) -> Callable[[Item], Item]:
    """DescribeLogGroups of an account that has these."""
    return lambda request: {
        "logGroups": [{"logGroupName": name} for name in names if name.startswith(request["logGroupNamePrefix"])]
    }
