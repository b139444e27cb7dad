"""What a request for nodes is refused for, at the edge between what is taken and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import checks

GOOD: dict[str, Any] = {
    "name": "bert",
    "cluster_name": "demo",
    "role": "compute",
    "state": "present",
    "count": 1,
    "instance_type": "trn1.32xlarge",
    "image_id": "ami-1",
    "subnets": ["subnet-1"],
    "security_groups": ["sg-1"],
    "market": "on-demand",
    "wait_timeout": 600,
}


def said(**changes: Any) -> str:
    """Why it is refused; '' where it is taken."""
    try:
        checks.check_arguments({**GOOD, **changes}, False)
    except TrainiumError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, ""),
        ({"count": 0}, "count is 0; give 1 or more"),
        ({"count": 0, "state": "absent", "instance_type": "", "image_id": None}, ""),
        ({"instance_type": None}, "instance_type is missing"),
        ({"image_id": ""}, "image_id is empty"),
        ({"image_id": "image-1"}, "image_id holds 'image-1', which is no id such as ami-..."),
        ({"subnets": []}, "subnets is empty"),
        ({"subnets": ["subnet-1", "subnet-1"]}, "subnets holds an id twice: subnet-1, subnet-1"),
        ({"security_groups": ["subnet-1"]}, "security_groups holds 'subnet-1'"),
        ({"replace": ["i-0a1b2c3d"]}, ""),
        ({"replace": ["i-0a1b2c3d4e5f60006"]}, ""),
        ({"replace": ["i-0a1b2c3"]}, "replace has 'i-0a1b2c3'"),
        ({"replace": ["node-1"]}, "replace has 'node-1'"),
        ({"volumes": [{"size": 1}, {"device_name": "/dev/sdb", "size": 1}]}, ""),
        ({"volumes": [{"size": 0}]}, "the volume the root device has size 0"),
        ({"volumes": [{}, {}]}, "volumes names the root device twice"),
        *(({"volumes": [{"type": kind, "iops": 1}]}, "") for kind in (None, "gp3", "io1", "io2")),
        ({"volumes": [{"type": "gp2", "iops": 0}]}, "of type gp2 takes no iops"),
        ({"volumes": [{"throughput": 125}]}, ""),
        ({"volumes": [{"type": "io2", "throughput": 125}]}, "of type io2 takes no throughput"),
        ({"volumes": [{"kms_key_id": "k"}, {"device_name": "b", "kms_key_id": "k", "encrypted": True}]}, ""),
        ({"volumes": [{"kms_key_id": "k", "encrypted": False}]}, "has a kms_key_id but is not encrypted"),
        ({"volumes": [{"encrypted": False}]}, ""),
        ({"capacity_reservation": {"id": "cr-1"}}, ""),
        ({"capacity_reservation": {"resource_group_arn": "arn"}}, ""),
        ({"capacity_reservation": {"id": "cr-1", "resource_group_arn": "arn"}}, "give one of the two"),
        ({"market": "capacity-block", "capacity_reservation": {"id": "cr-1"}}, ""),
        ({"market": "capacity-block"}, "needs capacity_reservation.id"),
        ({"market": "capacity-block", "capacity_reservation": {"resource_group_arn": "arn"}}, "needs capacity_res"),
        ({"market": "spot"}, ""),
        ({"market": "spot", "capacity_reservation": {"resource_group_arn": "arn"}}, "market spot cannot use"),
    ],
)
def test_arguments(changes: dict[str, Any], refused: str) -> None:
    assert refused in said(**changes)
    assert bool(refused) == bool(said(**changes))


def test_in_check_mode_what_another_task_would_have_made_may_be_missing() -> None:
    missing: dict[str, Any] = {"image_id": "", "subnets": [], "security_groups": None}
    checks.check_arguments({**GOOD, **missing}, True)
    with pytest.raises(TrainiumError, match="image_id holds"):
        checks.check_arguments({**GOOD, **missing, "image_id": "x"}, True)


def nodes(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"instance_id": f"i-{number}", "instance_type": "t", **more} for number in range(count)]


def test_a_set_of_another_type_is_left_alone() -> None:
    checks.check_existing(nodes(2), "t", "bert")
    checks.check_existing([], "t", "bert")
    with pytest.raises(TrainiumError, match="the set bert has 2 nodes of type t, not u"):
        checks.check_existing(nodes(2), "u", "bert")


@pytest.mark.parametrize(
    ("count", "allowed", "leaving", "refused"),
    [
        (0, False, None, ""),
        (2, True, None, ""),
        (2, True, ["i-0", "i-1", "i-9"], ""),
        (2, True, ["i-0"], "a count of 3 would terminate i-1, and nobody looked"),
        (2, True, [], "a count of 3 would terminate i-0, i-1, and nobody looked"),
        (1, False, ["i-0"], "the set bert has 4 nodes and count is 3, which would terminate i-0 with whatever"),
        (10, False, None, "which would terminate " + ", ".join(f"i-{number}" for number in range(10)) + " with"),
        (12, False, None, "i-9 and 2 more with whatever runs there; give count=15"),
    ],
)
def test_a_set_shrinks_only_where_that_was_said(
    count: int, allowed: bool, leaving: list[str] | None, refused: str
) -> None:
    params = {"count": 3, "name": "bert", "allow_shrink": allowed, "leaving": leaving}
    if refused:
        with pytest.raises(TrainiumError) as caught:
            checks.check_shrink(nodes(count), params)
        assert refused in str(caught.value)
    else:
        checks.check_shrink(nodes(count), params)


def test_only_nodes_of_the_set_are_replaced_and_as_many_come() -> None:
    checks.check_strangers([{"InstanceId": "i-1", "State": {"Name": "terminated"}}], "bert")
    with pytest.raises(TrainiumError, match="replace names i-1, which the set bert does not have"):
        checks.check_strangers([{"InstanceId": "i-1", "State": {"Name": "stopped"}}], "bert")
    checks.check_replace(nodes(2), 2, {"count": 4, "name": "bert"})
    with pytest.raises(TrainiumError, match="count is 4 and the set bert has 5 nodes with the 2"):
        checks.check_replace(nodes(2), 1, {"count": 4, "name": "bert"})


def reservation(**changes: Any) -> dict[str, Any]:
    about = {"State": "active", "InstanceType": "t", "AvailableInstanceCount": 2, "AvailabilityZone": "a"}
    return {**about, **changes}


def test_a_reservation_that_is_just_large_enough() -> None:
    assert checks.check_reservation(reservation(), "cr-1", "t", 2) == "a"
    for made, count, message in (
        (reservation(), 3, "has 2 instances free, 3 are needed"),
        (reservation(AvailableInstanceCount=None), 1, "has 0 instances free"),
        (reservation(State="pending"), 1, "is pending, not active"),
        (reservation(InstanceType="u"), 1, "is for u, not t"),
        (None, 1, "does not exist in this region"),
    ):
        with pytest.raises(TrainiumError, match=message):
            checks.check_reservation(made, "cr-1", "t", count)
    assert checks.in_zone([{"AvailabilityZone": "a"}, {"AvailabilityZone": "b"}], "b", "cr-1") == [
        {"AvailabilityZone": "b"}
    ]
    with pytest.raises(TrainiumError, match="lies in c and none of the subnets does"):
        checks.in_zone([{"AvailabilityZone": "a"}], "c", "cr-1")


def test_groups_of_another_network_are_refused() -> None:
    group = {"GroupId": "sg-1", "VpcId": "vpc-1"}
    checks.check_groups(["sg-1"], [group], "vpc-1")
    checks.check_groups(["sg-1"], [group], None)
    checks.check_groups(["sg-1"], [{"GroupId": "sg-1"}], "vpc-1")
    with pytest.raises(TrainiumError, match="belongs to vpc-1, but the subnets to vpc-2"):
        checks.check_groups(["sg-1"], [group], "vpc-2")
    with pytest.raises(TrainiumError, match="security group sg-2 does not exist"):
        checks.check_groups(["sg-2"], [group], "vpc-1")
