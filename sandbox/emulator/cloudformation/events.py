"""Events of stacks and their resources, as DescribeStackEvents shows them; stock moto has only the stacks' own."""

from __future__ import annotations

from typing import Any

from moto.cloudformation import models

STACK = "AWS::CloudFormation::Stack"


class ResourceError(Exception):
    """A resource cannot be made, changed or deleted."""

    def __init__(self, message: str, reported: bool = False) -> None:
        """``reported``: its event has been written."""
        super().__init__(message)
        self.reported = reported


class InjectedError(ResourceError):
    """The control API or the caller's IAM policy wants this step to fail, now and again."""


def reason(error: BaseException) -> str:
    """What an error says of itself."""
    return str(getattr(error, "message", None) or getattr(error, "description", None) or error or type(error).__name__)


def add(stack: Any, logical: str, kind: str, status: str, why: str | None = None, physical: str = "") -> None:
    """An event of a resource of a stack."""
    stack.events.append(
        models.Event(
            stack_id=stack.stack_id,
            stack_name=stack.name,
            logical_resource_id=logical,
            physical_resource_id=physical,
            resource_type=kind,
            resource_status=status,
            resource_status_reason=why,
            resource_properties=None,
        )
    )


def of_stack(stack: Any, status: str, why: str | None = None) -> None:
    """A stack gets into a state."""
    stack.status = status
    add(stack, stack.name, STACK, status, why, stack.stack_id)


def status_of(stack: Any, logical: str) -> str:
    """The last status of a resource."""
    found: str = next((e.resource_status for e in reversed(stack.events) if e.logical_resource_id == logical), "")
    return found or "CREATE_COMPLETE"
