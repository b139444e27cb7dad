"""One step of a deletion, and images that are left."""

from __future__ import annotations

import re

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._teardown import calls
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS, Kind
from botocore.parsers import create_parser

from tests.unit.aws_answers import Aws
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


INSTANCES = b"""<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet><item>
<reservationId>r-1</reservationId><instancesSet><item><instanceId>i-1</instanceId><keyName>key</keyName>
<instanceState><code>32</code><name>shutting-down</name></instanceState>
<tagSet><item><key>trainium:cluster</key><value>bert</value></item></tagSet>
<networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId></item></networkInterfaceSet>
</item></instancesSet></item></reservationSet><nextToken>more</nextToken></DescribeInstancesResponse>"""


def test_of_many_instances_only_what_is_read_is_parsed() -> None:
    model = calls.narrowed(Aws({}).client("ec2")).meta.service_model.operation_model("DescribeInstances")
    read = create_parser("ec2").parse({"body": INSTANCES, "headers": {}, "status_code": 200}, model.output_shape)
    del read["ResponseMetadata"]
    assert read == {
        "NextToken": "more",
        "Reservations": [
            {
                "Instances": [
                    {
                        "InstanceId": "i-1",
                        "State": {"Code": 32, "Name": "shutting-down"},
                        "Tags": [{"Key": "trainium:cluster", "Value": "bert"}],
                    }
                ]
            }
        ],
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.look], ids=lambda kind: kind.name)
def test_what_is_needed_of_each_kind_is_parsed(kind: Kind) -> None:
    client, whole = calls.narrowed(Aws({}).client("ec2")), Aws({}).client("ec2")
    name = client.meta.method_to_api_mapping[kind.look]
    shapes = [one.meta.service_model.operation_model(name).output_shape for one in (client, whole)]
    assert ("NextToken" in shapes[0].members) is client.can_paginate(kind.look)
    for key in kind.items:
        shapes = [shape.members[key].member for shape in shapes]
    narrow, wide = (set(shape.members) for shape in shapes)
    assert len(narrow) < len(wide)
    fields = {field for step in kind.steps if not step.each for field in step.fields}
    wanted = {kind.identity, "State", "VpcId", "Tags", "TagSet", "Attachments", "Associations"} | fields
    assert narrow >= wanted & wide - {"Associations" if kind.name != "route tables" else ""}


def test_a_kind_that_botocore_describes_otherwise_is_parsed_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind._replace(items=("Others",)) if kind.name == "volumes" else kind for kind in KINDS]
    monkeypatch.setattr(calls, "KINDS", [*kinds, kinds[-1]._replace(look="describe_what_is_not_there")])
    client, whole = calls.narrowed(Aws({}).client("ec2")), Aws({}).client("ec2")
    shapes = [
        one.meta.service_model.operation_model(name).output_shape.members[key].member
        for name, key in (("DescribeVolumes", "Volumes"), ("DescribeVpcs", "Vpcs"))
        for one in (client, whole)
    ]
    numbers = [len(shape.members) for shape in shapes]
    assert numbers[0] == numbers[1]
    assert numbers[2] < numbers[3]
