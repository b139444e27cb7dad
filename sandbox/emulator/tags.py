"""Tags of one resource without a look at every tag of the account: stock moto is quadratic in the instances."""

from __future__ import annotations

from moto.ec2.models.core import TaggedEC2Resource


def _get_tags(self: TaggedEC2Resource) -> list[dict[str, str]]:
    tags = self.ec2_backend.tags.get(self.id, {})
    return [{"key": key, "value": value, "resource_id": self.id, "resource_type": ""} for key, value in tags.items()]


def install() -> None:
    TaggedEC2Resource.get_tags = _get_tags
