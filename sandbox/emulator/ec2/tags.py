"""Tags: those of one resource without a look at all of the account's (stock moto is quadratic), and right types."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.nat_gateways import NatGateway, NatGatewayBackend
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE


def _get_tags(self: TaggedEC2Resource) -> list[dict[str, str]]:
    tags = self.ec2_backend.tags.get(self.id, {})
    return [{"key": key, "value": value, "resource_id": self.id, "resource_type": ""} for key, value in tags.items()]


_describe_nat_gateways = NatGatewayBackend.describe_nat_gateways


def _describe_by_tags(self: NatGatewayBackend, filters: Any, nat_gateway_ids: list[str] | None) -> list[NatGateway]:
    """Stock moto leaves tag filters out, and so gives the NAT gateways of everybody."""
    found = _describe_nat_gateways(self, filters, nat_gateway_ids)
    for name, values in (filters or {}).items():
        if name.startswith("tag:"):
            key = name.removeprefix("tag:")
            found = [one for one in found if self.tags.get(one.id, {}).get(key) in values]
    return found


def install() -> None:
    # The types that EC2 gives in DescribeTags; stock moto says nat-gateway and vpc-elastic-ip.
    EC2_PREFIX_TO_RESOURCE.update(nat="natgateway", eipalloc="elastic-ip")
    TaggedEC2Resource.get_tags = _get_tags
    NatGatewayBackend.describe_nat_gateways = _describe_by_tags
