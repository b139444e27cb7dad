"""The life of a stack: it takes time, waits for its wait conditions, and rolls back what failed.

Stock moto does everything within the request and knows no failure. Here the request makes the resources, and a thread
brings the stack to its end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from moto.cloudformation import models
from moto.cloudformation.exceptions import ValidationError
from moto.core.utils import utcnow

from sandbox.emulator import state
from sandbox.emulator.access import policy
from sandbox.emulator.cloudformation import changes, events, images, standin

LOG = logging.getLogger("emulator")
TICK = 0.1  # seconds
# A deletion that something still holds up fails after this time, in seconds.
PATIENCE = 120.0

_create = models.CloudFormationBackend.create_stack

# Id of a stack -> what is under way: the stack, when it began, and the step that says whether it is over.
_under_way: dict[str, tuple[Any, float, Callable[[Any, float], bool]]] = {}

# The request's DisableRollback, which moto does not hand on.
REQUEST = threading.local()


def _begin(stack: Any, step: Callable[[Any, float], bool]) -> None:
    _under_way[stack.stack_id] = (stack, time.monotonic(), step)


def _tick() -> None:
    while True:
        with state.LOCK:
            for identity, (stack, began, step) in list(_under_way.items()):
                backend = models.cloudformation_backends[stack.account_id][stack.region_name]
                over = True
                if backend.stacks.get(identity) is stack:
                    try:
                        over = step(stack, time.monotonic() - began)
                    except Exception:
                        LOG.exception("stack %s", stack.name)
                # A step may have begun another one.
                if over and _under_way.get(identity) == (stack, began, step):
                    del _under_way[identity]
            _stand_in()
        time.sleep(TICK)


def _stand_in() -> None:
    for regions in list(models.cloudformation_backends.values()):
        for backend in list(regions.values()):
            for stack in list(backend.stacks.values()):
                try:
                    standin.tick(stack)
                except Exception:
                    LOG.exception("stack %s", stack.name)


# --- steps ---


def _conditions_met(stack: Any) -> tuple[bool, str]:
    """Whether all wait conditions are met, and the logical ids of those that failed."""
    failed, waiting = [], False
    for condition in changes.conditions(stack):
        if condition.done:
            continue
        outcome = condition.outcome()
        if outcome is None:
            waiting = True
            continue
        condition.done = True
        met, why = outcome
        status = "CREATE_COMPLETE" if met else "CREATE_FAILED"
        logical = condition.logical_resource_id
        events.add(stack, logical, condition.cf_resource_type, status, why, condition.identity)
        if not met:
            failed.append(logical)
    return not waiting and not failed, ", ".join(failed)


def _creating(stack: Any, passed: float) -> bool:
    met, failed = _conditions_met(stack)
    if failed:
        _creation_failed(stack, f"The following resource(s) failed to create: [{failed}]. ")
        return True
    if not met or passed < _least(stack):
        return False
    events.of_stack(stack, "CREATE_COMPLETE")
    if any(isinstance(condition, images.Image) for condition in changes.conditions(stack)):
        # By ParallelCluster's own function, with its own role.
        stack.caller = ""
        events.of_stack(stack, "DELETE_IN_PROGRESS", "User Initiated")
        _begin(stack, _deleting)
    return True


def _least(stack: Any) -> float:
    """A stack that waits for a head node takes as long as that does."""
    return 0.0 if changes.conditions(stack) else float(state.WAITING["delay"])


def _creation_failed(stack: Any, why: str) -> None:
    if stack.disable_rollback:
        events.of_stack(stack, "CREATE_FAILED", why)
        return
    events.of_stack(stack, "ROLLBACK_IN_PROGRESS", f"{why}Rollback requested by user.")
    _begin(stack, _rolling_back)


def _rolling_back(stack: Any, passed: float) -> bool:
    return _emptied(stack, passed, "ROLLBACK")


def _deleting(stack: Any, passed: float) -> bool:
    if passed < state.WAITING["delay"]:
        return False
    over = _emptied(stack, passed, "DELETE")
    if stack.status == "DELETE_COMPLETE":
        backend = models.cloudformation_backends[stack.account_id][stack.region_name]
        backend.deleted_stacks[stack.stack_id] = backend.stacks.pop(stack.stack_id)
    return over


def _emptied(stack: Any, passed: float, what: str) -> bool:
    """Delete what is left of a stack; over when all is deleted, or when patience is."""
    try:
        failures = changes.delete_resources(stack)
    except events.InjectedError as error:
        failures, passed = {"injected": str(error)}, PATIENCE
    if failures and passed < PATIENCE:
        return False
    if failures:
        listed = ", ".join(name for name in failures if name != "injected")
        why = f"The following resource(s) failed to delete: [{listed}]. {'; '.join(failures.values())}"
        events.of_stack(stack, f"{what}_FAILED", why)
    else:
        events.of_stack(stack, f"{what}_COMPLETE")
    return True


def _updating(stack: Any, passed: float) -> bool:
    met, failed = _conditions_met(stack)
    if failed:
        _update_failed(stack, f"The following resource(s) failed to create: [{failed}]. ")
        return True
    if not met or passed < _least(stack):
        return False
    events.of_stack(stack, "UPDATE_COMPLETE")
    return True


def _update_failed(stack: Any, why: str) -> None:
    events.of_stack(stack, "UPDATE_ROLLBACK_IN_PROGRESS", why)
    template, parameters, stack.tags = stack.previous
    try:
        changes.apply(stack, template, parameters)
    except events.ResourceError as error:
        events.of_stack(stack, "UPDATE_ROLLBACK_FAILED", str(error))
    else:
        _begin(stack, _rolled_back)


def _rolled_back(stack: Any, passed: float) -> bool:
    # Moto gives the old handle and condition anew; nobody signals the second time.
    for condition in changes.conditions(stack):
        condition.done = True
    if passed < state.WAITING["delay"]:
        return False
    events.of_stack(stack, "UPDATE_ROLLBACK_COMPLETE")
    return True


# --- what requests begin ---


def _create_resources(stack: Any) -> None:
    """In place of ``Stack.create_resources``."""
    stack.status, stack.caller = "CREATE_IN_PROGRESS", policy.caller()
    stack.description = stack.template_dict.get("Description")
    nested = getattr(REQUEST, "depth", 0) > 0
    REQUEST.depth = getattr(REQUEST, "depth", 0) + 1
    if not nested:
        stack.disable_rollback = getattr(REQUEST, "disable_rollback", False)
    try:
        stack.resource_map.create(stack.template_dict)
    except events.ResourceError as error:
        _cancelled(stack)
        failed = [e.logical_resource_id for e in stack.events if e.resource_status == "CREATE_FAILED"]
        why = f"The following resource(s) failed to create: [{', '.join(failed)}]. "
        if nested:
            events.of_stack(stack, "CREATE_FAILED", str(error))
        else:
            _creation_failed(stack, why)
        return
    finally:
        REQUEST.depth -= 1
    if nested:
        events.of_stack(stack, "CREATE_COMPLETE")
    else:
        _begin(stack, _creating)


def _cancelled(stack: Any) -> None:
    """Nobody will signal any more where another resource failed."""
    for logical, json in stack.template_dict["Resources"].items():
        if json["Type"] == "AWS::CloudFormation::WaitCondition":
            events.add(stack, logical, json["Type"], "CREATE_FAILED", "Resource creation cancelled")


def _create_stack(self: Any, name: str, *arguments: Any, **options: Any) -> Any:
    if getattr(REQUEST, "depth", 0) == 0:
        REQUEST.disable_rollback = getattr(REQUEST, "disable_rollback", False)
    return _create(self, name, *arguments, **options)


def _update_stack(
    self: Any,
    name: str,
    template: str,
    role_arn: str | None,
    parameters: list[dict[str, Any]],
    tags: dict[str, str] | None,
) -> Any:
    stack = self.get_stack(name)
    if stack.status.endswith("IN_PROGRESS") or stack.status not in (
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
    ):
        message = f"Stack:{stack.stack_id} is in {stack.status} state and can not be updated."
        raise ValidationError(stack.stack_id, message=message)
    wanted = self._resolve_update_parameters(instance=stack, incoming_params=parameters)
    same = stack.parse_template(template) == stack.template_dict and wanted == stack.parameters
    if same and tags in (None, stack.tags):
        raise ValidationError(stack.stack_id, message="No updates are to be performed.")
    stack.previous, stack.caller = (stack.template, stack.parameters, stack.tags), policy.caller()
    before = len(stack.events)
    events.of_stack(stack, "UPDATE_IN_PROGRESS", "User Initiated")
    stack.last_updated_time = utcnow()
    stack.role_arn = role_arn or stack.role_arn
    try:
        changes.apply(stack, template, wanted)
    except events.ResourceError as error:
        _update_failed(stack, str(error))
        return stack
    if tags is not None:
        stack.tags = tags
        stack.resource_map.tags = dict(tags)
    if len(stack.events) == before + 1:
        # No resource has changed.
        events.of_stack(stack, "UPDATE_COMPLETE")
    else:
        _begin(stack, _updating)
    return stack


def _delete_stack(self: Any, name_or_stack_id: str) -> None:
    for stack in list(self.stacks.values()):
        if name_or_stack_id in (stack.name, stack.stack_id) and stack.status != "DELETE_IN_PROGRESS":
            if stack.enable_termination_protection:
                message = f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled"
                raise ValidationError(stack.stack_id, message=message)
            stack.caller = policy.caller()
            events.of_stack(stack, "DELETE_IN_PROGRESS", "User Initiated")
            _begin(stack, _deleting)


def _outputs(self: Any) -> Any:
    """Only those of a finished stack; moto would make the resources anew."""
    return _stock_outputs.fget(self) if self.status in _FINISHED else None


_stock_outputs: Any = models.Stack.outputs
_FINISHED = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS")


def install() -> None:
    models.Stack.create_resources = _create_resources
    models.Stack.stack_resources = property(lambda self: list(changes.made(self).values()))
    models.Stack.outputs = property(_outputs)
    models.CloudFormationBackend.create_stack = _create_stack
    models.CloudFormationBackend.update_stack = _update_stack
    models.CloudFormationBackend.delete_stack = _delete_stack
    threading.Thread(target=_tick, daemon=True).start()
