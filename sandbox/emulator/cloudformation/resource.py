"""What every resource that the emulator adds to CloudFormation has in common.

Moto asks a model's class to create, update and delete by JSON; here a resource is an object with ``create``, ``update``
and ``remove``.
"""

from __future__ import annotations

from typing import Any

Properties = dict[str, Any]


class Resource:
    """A resource of a stack; by itself it only remembers its properties and has a name."""

    # Set by moto after the creation.
    cf_resource_type: str = ""
    logical_resource_id: str = ""

    def __init__(self, name: str, properties: Properties, account: str, region: str, context: dict[str, str]) -> None:
        """``context``: StackId, LogicalId and ResourceType."""
        self.name = name
        self.properties = properties
        self.account = account
        self.region = region
        self.context = context
        self.identity = name

    # --- what a kind of resource overrides ---

    def create(self) -> None:
        """Make it and set ``identity``."""

    def update(self, properties: Properties) -> None:
        """Change it from ``self.properties`` to these."""

    def remove(self) -> None:
        """Delete it; raise while that is not possible yet."""

    def get_cfn_attribute(self, name: str) -> Any:
        """Fn::GetAtt."""
        return f"{self.identity}.{name}"

    # --- what moto calls ---

    @property
    def physical_resource_id(self) -> str:
        return self.identity

    @classmethod
    def has_cfn_attr(cls, _name: str) -> bool:
        return True

    def is_created(self) -> bool:
        return True

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **context: str
    ) -> Resource:
        resource = cls(resource_name, cloudformation_json.get("Properties", {}), account_id, region_name, context)
        resource.create()
        return resource

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: Resource,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> Resource:
        properties = cloudformation_json.get("Properties", {})
        original_resource.update(properties)
        original_resource.properties = properties
        return original_resource

    def delete(self, _account: str, _region: str) -> None:
        self.remove()
