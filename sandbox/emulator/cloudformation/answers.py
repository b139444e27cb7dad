"""What requests to CloudFormation can ask for and stock moto does not answer: metadata, signals, statuses, pages."""

from __future__ import annotations

import json
from typing import Any

from moto.cloudformation import parsing, responses
from moto.cloudformation.exceptions import ValidationError
from moto.core.responses import ActionResult, EmptyResult

from sandbox.emulator.cloudformation import changes, events, stacks, waiting

PAGE = 100  # events
_create_stack = responses.CloudFormationResponse.create_stack
_summary = responses.StackResourceDTO.__init__


def create_stack(self: Any) -> Any:
    on_failure = self._get_param("OnFailure")
    stacks.REQUEST.disable_rollback = bool(self._get_param("DisableRollback")) or on_failure == "DO_NOTHING"
    return _create_stack(self)


def _describe(self: Any, stack: Any, resource: Any) -> None:
    _summary(self, stack, resource)
    logical = resource.logical_resource_id
    self.resource_status = events.status_of(stack, logical)
    last = next((e for e in reversed(stack.events) if e.logical_resource_id == logical), None)
    self.timestamp = self.last_updated_timestamp = last.timestamp if last else stack.creation_time
    self.resource_status_reason = last.resource_status_reason if last else None
    metadata = stack.resource_map._resource_json_map.get(logical, {}).get("Metadata")
    if metadata is not None:
        self.metadata = json.dumps(parsing.clean_json(metadata, stack.resource_map))


def describe_stack_events(self: Any) -> Any:
    found = self.cloudformation_backend.describe_stack_events(self._get_param("StackName"))[::-1]
    start = int(self._get_param("NextToken") or 0)
    more = start + PAGE if len(found) > start + PAGE else None
    return ActionResult({"StackEvents": found[start : start + PAGE], "NextToken": str(more) if more else None})


def list_stack_resources(self: Any) -> Any:
    stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
    summaries = [responses.StackResourceDTO(stack, resource) for resource in changes.made(stack).values()]
    return ActionResult({"StackResourceSummaries": summaries})


def signal_resource(self: Any) -> Any:
    """SignalResource to a wait condition."""
    stack = self.cloudformation_backend.get_stack(self._get_param("StackName"))
    logical = self._get_param("LogicalResourceId")
    resource = changes.made(stack).get(logical)
    if not isinstance(resource, waiting.Condition):
        raise ValidationError(stack.name, message=f"Resource {logical} of stack {stack.name} waits for no signal")
    if resource.done:
        raise ValidationError(stack.name, message=f"Signal for {logical} comes too late: it is complete")
    unique = self._get_param("UniqueId")
    document = {"Status": self._get_param("Status"), "UniqueId": unique, "Reason": "", "Data": ""}
    waiting.SIGNALS.setdefault(resource.token, {})[unique] = document
    return EmptyResult()


def install() -> None:
    responses.StackResourceDTO.__init__ = _describe
    for action in (create_stack, describe_stack_events, list_stack_resources, signal_resource):
        setattr(responses.CloudFormationResponse, action.__name__, action)
