"""Making, changing and deleting the resources of a stack, with an event for each step.

Stock moto deletes before it creates, in any order, and forgets what it could not delete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.models import cloudformation_backends
from moto.dynamodb.models import dynamodb_backends
from moto.ec2.models import ec2_backends
from moto.ec2.models.core import TaggedEC2Resource
from moto.route53.models import route53_backends
from moto.utilities.utils import get_partition

from sandbox.emulator import faults
from sandbox.emulator.access import policy
from sandbox.emulator.cloudformation import events, permissions
from sandbox.emulator.cloudformation.waiting import Condition

_create = parsing.parse_and_create_resource
Place = tuple[str, str]  # account, region


def _interface(resource: Any, place: Place) -> None:
    backend = ec2_backends[place[0]][place[1]]
    if resource.id in backend.enis:
        backend.delete_network_interface(resource.id)


def _table(resource: Any, place: Place) -> None:
    dynamodb_backends[place[0]][place[1]].delete_table(resource.name)


def _zone(resource: Any, place: Place) -> None:
    route53_backends[place[0]][get_partition(place[1])].delete_hosted_zone(resource.id)


# Type -> how it is deleted, where moto's own model does not or does it wrongly.
REMOVERS: dict[str, Callable[[Any, Place], Any]] = {
    "AWS::EC2::NetworkInterface": _interface,
    "AWS::EC2::EIP": lambda r, p: ec2_backends[p[0]][p[1]].release_address(allocation_id=r.allocation_id),
    "AWS::EC2::Volume": lambda r, p: ec2_backends[p[0]][p[1]].delete_volume(r.id),
    "AWS::EC2::SecurityGroup": lambda r, p: ec2_backends[p[0]][p[1]].delete_security_group(group_id=r.id),
    "AWS::DynamoDB::Table": _table,
    "AWS::Route53::HostedZone": _zone,
}


def _injected(action: str, kind: str, logical: str) -> None:
    """Fail as the control API wants it: its fault has the service ``cloudformation``, an action of CreateResource,
    UpdateResource and DeleteResource, and matches ``Type`` or ``LogicalId``."""
    entry = {"service": "cloudformation", "action": action, "parameters": {"Type": kind, "LogicalId": logical}}
    fault = faults.meeting(entry)
    if fault:
        raise events.InjectedError(str(fault.get("message") or "Injected by the sandbox."))


def _permitted(stack: Any, json: dict[str, Any], delete: bool = False) -> None:
    """Whoever asked for the change of the stack must be allowed what CloudFormation does for it."""
    try:
        policy.check(stack.caller, lambda: permissions.actions(json["Type"], json.get("Properties", {}), delete))
    except policy.DeniedError as error:
        raise events.InjectedError(str(error)) from error


def create_resource(logical: str, json: Any, resources: Any, account_id: str, region_name: str) -> Any:
    """Moto's own, with events. It makes what the resource refers to and depends on first."""
    condition = json.get("Condition")
    if condition and not resources.lazy_condition_map[condition]:
        return None
    # Stock moto's order is that of DependsOn, but whatever refers to a resource has it made before its turn.
    wanted = json.get("DependsOn") or []
    for name in [wanted] if isinstance(wanted, str) else wanted:
        _first = resources[name]
    stack, kind = cloudformation_backends[account_id][region_name].get_stack(resources.stack_id), json["Type"]
    try:
        _injected("CreateResource", kind, logical)
        _permitted(stack, json)
        made = _create(logical, json, resources, account_id, region_name)
    except events.ResourceError as error:
        if not error.reported:
            _failed(stack, logical, kind, "CREATE", error)
        raise
    except Exception as error:
        _failed(stack, logical, kind, "CREATE", error)
        raise events.ResourceError(events.reason(error), reported=True) from error
    physical = identity_of(made)
    events.add(stack, logical, kind, "CREATE_IN_PROGRESS", "Resource creation Initiated", physical)
    if not isinstance(made, Condition):
        events.add(stack, logical, kind, "CREATE_COMPLETE", None, physical)
    if isinstance(made, TaggedEC2Resource):
        _tag(resources, logical, made)
    return made


def identity_of(resource: Any) -> str:
    """The physical id; a few of moto's models have none."""
    return str(getattr(resource, "physical_resource_id", None) or resource.logical_resource_id)


def _failed(stack: Any, logical: str, kind: str, what: str, error: Exception) -> None:
    events.add(stack, logical, kind, f"{what}_IN_PROGRESS")
    events.add(stack, logical, kind, f"{what}_FAILED", events.reason(error))
    if isinstance(error, events.ResourceError):
        error.reported = True


def _tag(resources: Any, logical: str, made: Any) -> None:
    """The tags of the stack and CloudFormation's own."""
    tags = {
        **resources.tags,
        "aws:cloudformation:stack-name": resources["AWS::StackName"],
        "aws:cloudformation:stack-id": resources["AWS::StackId"],
        "aws:cloudformation:logical-id": logical,
    }
    backend = ec2_backends[resources._account_id][resources._region_name]
    # What the resource's own properties say wins.
    backend.tags[made.id] = {**tags, **backend.tags.get(made.id, {})}


def conditions(stack: Any) -> list[Condition]:
    """The wait conditions of a stack that have been made."""
    return [resource for resource in made(stack).values() if isinstance(resource, Condition)]


def made(stack: Any) -> dict[str, Any]:
    """Logical id -> resource, in the order in which they were made."""
    wanted = stack.resource_map._resource_json_map
    return {k: v for k, v in stack.resource_map._parsed_resources.items() if k in wanted and v is not None}


def apply(stack: Any, template: str, parameters: dict[str, Any]) -> None:
    """Bring a stack's resources to another template: what is new, what is changed, at last what is gone."""
    resources = stack.resource_map
    before, after = dict(resources._resource_json_map), stack.parse_template(template)
    plan = resources.build_resource_diff(after, parameters)
    gone = [name for name in reversed(list(made(stack))) if name in plan["Remove"]]
    old = {name: resources._parsed_resources.get(name) for name in gone}
    stack.template, stack.template_dict, stack.parameters = template, after, parameters
    resources._template, resources._resource_json_map = after, after["Resources"]
    resources.input_parameters = parameters
    resources.load_mapping()
    resources.load_parameters()
    resources.load_conditions()
    for name in plan["Add"]:
        # Looking a resource up makes it.
        _made = resources[name]
    for name in plan["Modify"]:
        _modify(stack, name, before[name])
    for name in gone:
        resources._parsed_resources.pop(name, None)
    left, failures = old, {"": ""}
    while left and failures:
        answers = {name: _remove(stack, name, left[name], before[name]) for name in left}
        failures = {name: why for name, why in answers.items() if why}
        if len(failures) == len(left):
            raise events.ResourceError("; ".join(failures.values()), reported=True)
        left = {name: left[name] for name in failures}
    stack.output_map = stack._create_output_map()


def _modify(stack: Any, logical: str, before: dict[str, Any]) -> None:
    resources = stack.resource_map
    json, current = resources._resource_json_map[logical], resources._parsed_resources.get(logical)
    kind = json["Type"]
    if current is None:
        # Looking a resource up makes it.
        _made = resources[logical]
        return
    if {k: v for k, v in json.items() if k in ("Type", "Properties")} == {
        k: v for k, v in before.items() if k in ("Type", "Properties")
    } and "Ref" not in repr(json.get("Properties")):
        # Metadata and policies are CloudFormation's own business.
        return
    try:
        _injected("UpdateResource", kind, logical)
        changed = parsing.parse_and_update_resource(
            logical, json, resources, account_id=stack.account_id, region_name=stack.region_name
        )
    except NotImplementedError:
        changed = None
    except Exception as error:
        _failed(stack, logical, kind, "UPDATE", error)
        raise events.ResourceError(events.reason(error), reported=True) from error
    resources._parsed_resources[logical] = current if changed is None else changed
    physical = identity_of(resources._parsed_resources[logical])
    events.add(stack, logical, kind, "UPDATE_IN_PROGRESS", None, physical)
    events.add(stack, logical, kind, "UPDATE_COMPLETE", None, physical)


def delete_resources(stack: Any) -> dict[str, str]:
    """Delete what can be deleted, the youngest first.

    Returns:
        logical id -> reason, of what is still there.

    Raises:
        events.InjectedError: as the control API wants it.
    """
    failures: dict[str, str] = {}
    for logical, resource in reversed(list(made(stack).items())):
        json = stack.resource_map._resource_json_map[logical]
        if json.get("DeletionPolicy") == "Retain":
            events.add(stack, logical, json["Type"], "DELETE_SKIPPED", None, identity_of(resource))
        else:
            why = _remove(stack, logical, resource, json)
            if why:
                failures[logical] = why
                continue
        stack.resource_map._parsed_resources.pop(logical)
    return failures


def _remove(stack: Any, logical: str, resource: Any, json: dict[str, Any]) -> str | None:
    """Delete one resource; the reason where it cannot be deleted yet."""
    kind, place = json["Type"], (stack.account_id, stack.region_name)
    physical = identity_of(resource)
    _injected("DeleteResource", kind, logical)
    _permitted(stack, json, delete=True)
    try:
        if kind in REMOVERS:
            REMOVERS[kind](resource, place)
        else:
            stack.resource_map._delete_resource(resource, json)
    except events.InjectedError:
        raise
    except Exception as error:
        return events.reason(error)
    events.add(stack, logical, kind, "DELETE_IN_PROGRESS", None, physical)
    events.add(stack, logical, kind, "DELETE_COMPLETE", None, physical)
    return None
