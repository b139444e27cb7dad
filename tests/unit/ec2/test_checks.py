"""Judging what AWS says about images, subnets, groups and reservations."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import checks

TRN1 = {"InstanceType": "trn1.32xlarge", "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}}
ALL = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}
ANYWHERE = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
TCP = {"IpProtocol": "tcp", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "image ami-1 does not exist"),
        ({"State": "pending"}, "image ami-1 is pending, not available"),
        ({"State": "available", "Architecture": "arm64"}, "image ami-1 is for arm64, but trn1.32xlarge needs x86_64"),
    ],
)
def test_images(image: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(TrainiumError, match=message):
        checks.check_image(image, "ami-1", TRN1)


def test_a_fitting_image() -> None:
    checks.check_image({"State": "available", "Architecture": "x86_64"}, "ami-1", TRN1)
    checks.check_image({}, "ami-1", {})


def subnet(number: int, zone: str = "a", vpc: str = "vpc-1") -> dict[str, Any]:
    return {"SubnetId": f"subnet-{number}", "AvailabilityZone": zone, "VpcId": vpc}


def test_subnets_come_back_in_the_order_asked_for() -> None:
    found = [subnet(1), subnet(2), subnet(3)]
    wanted = ["subnet-3", "subnet-1"]
    assert [item["SubnetId"] for item in checks.check_subnets(wanted, found, ["a"], "t")] == wanted


@pytest.mark.parametrize(
    ("found", "zones", "message"),
    [
        ([subnet(1)], ["a"], "subnet subnet-2 does not exist"),
        ([subnet(1), subnet(2, vpc="vpc-2")], ["a"], r"different VPCs \(subnet-1 in vpc-1, subnet-2 in vpc-2\)"),
        (
            [subnet(1), subnet(2, "b")],
            ["a", "c"],
            "subnet subnet-2 lies in b, which does not offer t; use subnets in a, c",
        ),
        ([subnet(1), subnet(2)], [], "t is not offered in this region"),
    ],
)
def test_subnets_refused(found: list[dict[str, Any]], zones: list[str], message: str) -> None:
    with pytest.raises(TrainiumError, match=message):
        checks.check_subnets(["subnet-1", "subnet-2"], found, zones, "t")


@pytest.mark.parametrize(
    ("inbound", "outbound", "passes"),
    [
        ([ALL], [ALL], True),
        ([TCP, ALL], [ANYWHERE, ALL], True),
        ([ALL], [ANYWHERE], False),
        ([TCP], [ALL], False),
        ([ANYWHERE], [ANYWHERE], False),
        ([], [], False),
    ],
)
def test_what_efa_needs_of_a_security_group(inbound: list[Any], outbound: list[Any], passes: bool) -> None:
    group = {"GroupId": "sg-1", "IpPermissions": inbound, "IpPermissionsEgress": outbound}
    assert checks.passes_efa([group]) is passes


RESERVATION = {"InstanceType": "t", "State": "active", "AvailableInstanceCount": 2, "AvailabilityZone": "b"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"InstanceType": "u"}, "is for u, not t"),
        ({"State": "expired"}, "is expired, not active"),
        ({"AvailableInstanceCount": 1}, "has 1 instances free, 2 are needed"),
    ],
)
def test_reservations_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainiumError, match=message):
        checks.check_reservation({**RESERVATION, **changes}, "cr-1", "t", 2)


def test_a_reservation_chooses_the_zone() -> None:
    zone = checks.check_reservation(RESERVATION, "cr-1", "t", 2)
    assert checks.in_zone([subnet(1), subnet(2, "b")], zone, "cr-1") == [subnet(2, "b")]
    with pytest.raises(TrainiumError, match="lies in b and none of the subnets does"):
        checks.in_zone([subnet(1)], zone, "cr-1")


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ({"State": None, "Architecture": "x86_64"}, TRN1),
        ({"Architecture": None}, TRN1),
        ({"Architecture": "arm64"}, {"ProcessorInfo": {"SupportedArchitectures": []}}),
        ({"Architecture": "arm64"}, {"ProcessorInfo": {"SupportedArchitectures": ["x86_64", "arm64"]}}),
    ],
)
def test_what_ec2_does_not_say_of_an_image_is_no_obstacle(image: dict[str, Any], kind: dict[str, Any]) -> None:
    checks.check_image(image, "ami-1", kind)


@pytest.mark.parametrize(
    ("groups", "vpc", "message"),
    [
        ([{"GroupId": "sg-1", "VpcId": "vpc-1"}, {"GroupId": "sg-2", "VpcId": "vpc-1"}], "vpc-1", ""),
        # Where the subnets are made later, nobody knows their VPC yet; and a group may say none.
        ([{"GroupId": "sg-1", "VpcId": "vpc-1"}, {"GroupId": "sg-2", "VpcId": "vpc-2"}], None, ""),
        ([{"GroupId": "sg-1"}, {"GroupId": "sg-2"}], "vpc-1", ""),
        ([{"GroupId": "sg-1"}], "vpc-1", "security group sg-2 does not exist in this region; check security_groups"),
        (
            [{"GroupId": "sg-1", "VpcId": "vpc-1"}, {"GroupId": "sg-2", "VpcId": "vpc-2"}],
            "vpc-1",
            "security group sg-2 belongs to vpc-2, but the subnets to vpc-1; use one VPC's",
        ),
    ],
)
def test_groups_exist_and_lie_in_the_vpc_of_the_subnets(
    groups: list[dict[str, Any]], vpc: str | None, message: str
) -> None:
    said = ""
    try:
        checks.check_groups(["sg-1", "sg-2"], groups, vpc)
    except TrainiumError as error:
        said = str(error)
    assert said == message


def test_two_groups_may_pass_each_others_traffic() -> None:
    to_second = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-2"}]}
    first = {"GroupId": "sg-1", "IpPermissions": [to_second], "IpPermissionsEgress": [to_second]}
    assert checks.passes_efa([first, {"GroupId": "sg-2"}])
    assert not checks.passes_efa([first])
