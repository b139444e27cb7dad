"""Stacks in stacks: the child has events and outputs of its own; stock moto replaces the child on an update."""

from __future__ import annotations

from typing import Any

from moto.cloudformation.models import cloudformation_backends
from moto.cloudformation.utils import get_stack_from_s3_url
from moto.utilities.utils import get_partition

from sandbox.emulator.access import policy
from sandbox.emulator.cloudformation import changes, events
from sandbox.emulator.cloudformation.resource import Properties, Resource


class Nested(Resource):
    """AWS::CloudFormation::Stack."""

    def _template(self, properties: Properties) -> str:
        found: str = get_stack_from_s3_url(
            properties["TemplateURL"], account_id=self.account, partition=get_partition(self.region)
        )
        return found

    def create(self) -> None:
        backend = cloudformation_backends[self.account][self.region]
        parameters = {key: str(value) for key, value in self.properties.get("Parameters", {}).items()}
        tags = {tag["Key"]: tag["Value"] for tag in self.properties.get("Tags", [])}
        parent = backend.get_stack(self.context["StackId"])
        self.stack = backend.create_stack(
            name=self.name,
            template=self._template(self.properties),
            parameters=parameters,
            tags={**parent.tags, **tags},
        )
        self.stack.parent_id = parent.stack_id
        self.stack.root_id = getattr(parent, "root_id", None) or parent.stack_id
        self.identity = self.stack.stack_id
        if self.stack.status != "CREATE_COMPLETE":
            why = self.stack.events[-1].resource_status_reason
            changes.delete_resources(self.stack)
            self._forget()
            raise events.ResourceError(f"Embedded stack {self.identity} was not successfully created: {why}")

    def get_cfn_attribute(self, name: str) -> Any:
        key = name.split(".", 1)[1]
        output = self.stack.output_map[key]
        return output.value if output else ""

    def update(self, properties: Properties) -> None:
        parameters = {key: str(value) for key, value in properties.get("Parameters", {}).items()}
        self.stack.caller = policy.caller()
        events.of_stack(self.stack, "UPDATE_IN_PROGRESS")
        changes.apply(self.stack, self._template(properties), parameters)
        events.of_stack(self.stack, "UPDATE_COMPLETE")

    def remove(self) -> None:
        self.stack.caller = cloudformation_backends[self.account][self.region].get_stack(self.context["StackId"]).caller
        failures = changes.delete_resources(self.stack)
        if failures:
            raise events.ResourceError("; ".join(failures.values()))
        self._forget()

    def _forget(self) -> None:
        backend = cloudformation_backends[self.account][self.region]
        events.of_stack(self.stack, "DELETE_COMPLETE")
        if backend.stacks.pop(self.identity, None):
            backend.deleted_stacks[self.identity] = self.stack
