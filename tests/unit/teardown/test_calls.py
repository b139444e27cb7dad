"""One step of a deletion, and images that are left."""

from __future__ import annotations

import re

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._teardown import calls

from tests.unit.teardown.account import Ec2, refused


@pytest.mark.parametrize(
    "code",
    ["InvalidVpcID.NotFound", "InvalidVpcEndpointId.NotFound", "InvalidPlacementGroup.Unknown", "Gateway.NotAttached"],
)
def test_what_is_gone_already_is_fine(ec2: Ec2, code: str) -> None:
    ec2.next["delete_vpc"] = [refused(code)]
    calls.delete(ec2, "delete_vpc", {"VpcId": "vpc-1"})
    assert ec2.asked == [("delete_vpc", {"VpcId": "vpc-1"})]


def test_an_endpoint_that_ec2_says_it_did_not_delete_is_an_error(ec2: Ec2) -> None:
    error = {"Code": "InvalidParameter", "Message": "it is not ours"}
    ec2.next["delete_vpc_endpoints"] = [{"Unsuccessful": [{"ResourceId": "vpce-1", "Error": error}]}]
    with pytest.raises(AwsCallError, match=re.escape("delete vpc endpoints: it is not ours")):
        calls.delete(ec2, "delete_vpc_endpoints", {"VpcEndpointIds": ["vpce-1"]})
