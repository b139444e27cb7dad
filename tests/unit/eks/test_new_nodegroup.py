"""eks_nodegroup call by call, where it makes a group: in which subnets, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_nodegroup import EksNodegroup

from tests.unit.eks.conftest import Aws
from tests.unit.eks.node_groups import LACK, ROOM, Groups, Hurried, known


@pytest.fixture
def groups(api: Aws) -> Groups:
    return Groups(api)


def test_a_group_lies_in_all_subnets_unless_it_is_to_have_one_zone(groups: Groups) -> None:
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    groups.api.group(known())
    result = groups.run()
    assert (result["changed"], result["nodegroup"]["status"], result["diff"]["before"]) == (True, "ACTIVE", {})
    assert result["attempts"] == [{"subnets": ["subnet-1", "subnet-2"], "outcome": "made", "message": ""}]
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    result = groups.run(wait=False)
    assert result["attempts"] == [{"subnets": ["subnet-1", "subnet-2"], "outcome": "begun", "message": ""}]
    assert result["nodegroup"]["status"] == "CREATING"


@pytest.mark.parametrize(
    ("zones", "offers", "types", "found"),
    [
        # In the order of the arguments, not of EC2.
        ({"subnet_2": "b", "subnet_1": "a"}, ("a", "b"), None, ["subnet-1", "subnet-2"]),
        ({"subnet_1": "a", "subnet_2": "b"}, ("b",), None, ["subnet-2"]),
        ({"subnet_1": "a", "subnet_2": "b", "subnet_3": "b"}, ("b",), ["trn1.2xlarge", "m5.large"], ["subnet-2"]),
        ({"subnet_1": "a", "subnet_2": "b"}, (), None, []),
        ({"subnet_1": "a"}, ("d", "c"), None, []),
    ],
)
def test_the_zones_that_offer_the_type(
    groups: Groups, zones: dict[str, str], offers: Sequence[str], types: Any, found: list[str]
) -> None:
    groups.api.group(None)
    groups.template(InstanceType="trn1.32xlarge")
    groups.subnets(**zones)
    groups.offered(types[0] if types else "trn1.32xlarge", *offers)
    if not found:
        said = "lies in a zone that offers trn1.32xlarge; add one in " + (
            " or ".join(sorted(offers)) or "another region"
        )
        with pytest.raises(TrainiumError, match=f"none of the subnets subnet-1, subnet-2 {said}"):
            groups.run(single_zone=True, instance_types=types)
        return
    for number, subnet in enumerate(found):
        groups.makes(subnet, instance_types=types)
        last = number + 1 == len(found)
        for _look in range(1 if last else 2):
            groups.api.group(known() if last else known("CREATE_FAILED", LACK))
        if not last:
            groups.deletes()
            groups.api.group(None)
    result = groups.run(single_zone=True, instance_types=types)
    assert [one["subnets"] for one in result["attempts"]] == [[subnet] for subnet in found]
    assert [one["outcome"] for one in result["attempts"]] == [*(["CREATE_FAILED"] * (len(found) - 1)), "made"]


def test_where_there_is_no_template_yet_every_zone_will_do(groups: Groups) -> None:
    """In check mode, as an earlier task would have made it."""
    groups.api.group(None)
    groups.api.says(
        "ec2",
        "describe_launch_template_versions",
        "InvalidLaunchTemplateId.NotFound",
        LaunchTemplateId="lt-1",
        Versions=["3"],
    )
    groups.subnets(subnet_1="a")
    assert groups.run(check=True, single_zone=True)["changed"] is True
    groups.api.group(None)
    assert groups.run(check=True, single_zone=True, subnets=[], launch_template=None)["changed"] is True
    lacking: list[dict[str, Any]] = [{"subnets": [""]}, {"node_role_arn": ""}]
    for change in lacking:
        groups.api.group(None)
        with pytest.raises(TrainiumError, match=f"{next(iter(change))} is empty; a new node group needs it"):
            groups.run(**change)


def test_a_reservation_lies_in_one_zone(groups: Groups) -> None:
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    record = {"State": "active", "InstanceType": "trn1.32xlarge", "AvailabilityZone": "b"}
    for free in (2, 1):
        groups.api.group(None)
        groups.template(InstanceType="trn1.32xlarge", CapacityReservationSpecification=target)
        groups.subnets(subnet_1="a", subnet_2="b")
        groups.offered("trn1.32xlarge", "a", "b")
        found = {"CapacityReservations": [{**record, "AvailableInstanceCount": free}]}
        groups.api.says("ec2", "describe_capacity_reservations", found, CapacityReservationIds=["cr-1"])
        if free < 2:
            with pytest.raises(TrainiumError, match="has 1 instances free, 2 are needed"):
                groups.run(single_zone=True)
        else:
            groups.makes("subnet-2")
            assert groups.run(single_zone=True, wait=False)["attempts"][0]["subnets"] == ["subnet-2"]


@pytest.mark.parametrize(
    ("seen", "issues", "kind", "said"),
    [
        (
            "CREATE_FAILED",
            [ROOM],
            EksNodegroup,
            "could not be made in subnet-1, subnet-2, and was deleted again: .* join$",
        ),
        (
            "CREATE_FAILED",
            [LACK],
            EksNodegroup,
            "could not be made in subnet-1, subnet-2, and was deleted again: .* none$",
        ),
        ("CREATING", [], Hurried, r"was deleted again: trn \(CREATING\) is not active after 0 s"),
        (
            "CREATING",
            [LACK],
            Hurried,
            "was deleted again: AsgInstanceLaunchFailures: InsufficientInstanceCapacity: none$",
        ),
    ],
)
def test_what_fails_or_is_late_is_deleted(
    groups: Groups, seen: str, issues: Any, kind: type[EksNodegroup], said: str
) -> None:
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    groups.api.group(known(seen, *issues))
    groups.api.group(known(seen, *issues))
    groups.deletes()
    groups.api.group(None)
    with pytest.raises(TrainiumError, match=said) as caught:
        groups.run(kind=kind)
    (attempt,) = caught.value.details["attempts"]
    assert attempt["outcome"] == seen and attempt["message"]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("DEGRADED", "the node group became DEGRADED: EKS gives no reason"),
        ("DELETING", "the node group became DELETING"),
    ],
)
def test_what_somebody_else_has_begun_is_left_to_them(groups: Groups, seen: str, said: str) -> None:
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    groups.api.group(known(seen))
    groups.api.group(known(seen))
    with pytest.raises(TrainiumError, match=said):
        groups.run()
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    groups.api.group(None)
    groups.api.group(None)
    groups.deletes()
    groups.api.group(None)
    with pytest.raises(TrainiumError, match=r"was deleted again: trn \(not visible yet\) is not active"):
        groups.run(kind=Hurried)


def test_one_that_failed_before_goes_first(groups: Groups) -> None:
    groups.api.group(known("CREATE_FAILED"))
    groups.deletes()
    groups.api.group(None)
    groups.makes("subnet-1", "subnet-2")
    assert groups.run(wait=False)["changed"] is True
    groups.api.group(known("CREATE_FAILED"))
    groups.deletes()
    groups.api.group(known("DELETE_FAILED", ROOM))
    with pytest.raises(TrainiumError, match="EKS could not delete the node group: NodeCreationFailure: failed to join"):
        groups.run()
