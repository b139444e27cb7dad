"""Tags: those of one resource without a look at all of the account's (stock moto is quadratic), and right types."""

from __future__ import annotations

from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE


def _get_tags(self: TaggedEC2Resource) -> list[dict[str, str]]:
    tags = self.ec2_backend.tags.get(self.id, {})
    return [{"key": key, "value": value, "resource_id": self.id, "resource_type": ""} for key, value in tags.items()]


def install() -> None:
    # The types that EC2 gives in DescribeTags; stock moto says nat-gateway and vpc-elastic-ip.
    EC2_PREFIX_TO_RESOURCE.update(nat="natgateway", eipalloc="elastic-ip")
    TaggedEC2Resource.get_tags = _get_tags
