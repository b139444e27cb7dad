"""A reservation as the modules show it, as check mode foresees it, and what its arguments are refused for."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import plan as reservations
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

from tests.unit.capacity.test_plan import LATER, NOW, PARAMS, item, plan

END = datetime(2026, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def said(**changes: Any) -> str:
    """Why it is refused; '' where it is taken."""
    try:
        reservations.check_arguments({**PARAMS, **changes}, NOW)
    except TrainiumError as error:
        return str(error)
    return ""


ABSENT: dict[str, Any] = {"state": "absent", "instance_type": None, "count": 0, "availability_zone": None}


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, ""),
        ({"name": None}, "name is missing; state=present needs it"),
        ({"instance_type": ""}, "instance_type is missing; name one such as trn1.32xlarge"),
        ({"count": 0}, "count is 0; give 1 or more, or state=absent to cancel the reservation"),
        ({"count": 1}, ""),
        ({"availability_zone": None}, "give either availability_zone or availability_zone_id"),
        ({"availability_zone": None, "availability_zone_id": "usw2-az4"}, ""),
        ({"availability_zone_id": "usw2-az4"}, "give either availability_zone or availability_zone_id"),
        ({"availability_zone": None, "availability_zone_id": "us-west-2d"}, "'us-west-2d', which is no zone id such"),
        ({"availability_zone": "usw2-az4"}, "availability_zone is 'usw2-az4', which is no zone such as us-west-2d"),
        ({"availability_zone": "us-west-2"}, "which is no zone"),
        ({"availability_zone": "us-gov-west-1a"}, ""),
        ({"end_date": LATER}, ""),
        ({"end_date": "2026-11-21T12:00:01Z"}, ""),
        ({"end_date": "2026-11-21T12:00:00Z"}, "end_date 2026-11-21T12:00:00Z has passed; give a date in the future"),
        ({"end_date": "soon"}, "end_date is 'soon', which is no date"),
        ({"resource_group": "pool"}, ""),
        ({"resource_group": "aws-pool"}, "resource_group is 'aws-pool', and AWS keeps names that begin with aws"),
        ({"resource_group": "my-aws"}, ""),
        ({"tags": {"trainium:set": "a"}}, "tags holds trainium:set"),
        ({**ABSENT}, ""),
        ({**ABSENT, "name": None}, ""),
        ({**ABSENT, "cluster_name": None}, ""),
        ({**ABSENT, "name": "", "cluster_name": None}, "name and cluster_name are missing; give one of them"),
    ],
)
def test_a_reservation_is_refused_for_what_ec2_does_not_take(changes: dict[str, Any], refused: str) -> None:
    found = said(**changes)
    assert refused in found
    assert bool(refused) == bool(found)


def test_what_ec2_says_of_a_reservation_is_shown_by_our_names() -> None:
    found = item(
        State="pending",
        AvailableInstanceCount=1,
        Tenancy="dedicated",
        EbsOptimized=True,
        EndDateType="limited",
        EndDate=END,
        StartDate=END,
    )
    shown = reservations.reservation_of(found)
    assert shown.pop("tags") == {
        "Name": "pool",
        "trainium:cluster": "c1",
        "trainium:reservation": "pool",
        "trainium:generation": "1",
    }
    assert shown == {
        "capacity_reservation_id": "cr-1",
        "arn": "arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-1",
        "state": "pending",
        "instance_type": "trn1.32xlarge",
        "availability_zone": "us-west-2d",
        "availability_zone_id": "usw2-az4",
        "count": 2,
        "available_count": 1,
        "platform": "Linux/UNIX",
        "tenancy": "dedicated",
        "ebs_optimized": True,
        "match_criteria": "targeted",
        "end_date": LATER,
        "capacity_block": False,
        "starts_at": "",
    }


def test_what_ec2_leaves_out_is_empty_or_its_default() -> None:
    """The defaults of CreateCapacityReservation (API reference)."""
    bare = reservations.reservation_of({"CapacityReservationId": "cr-1"})
    assert bare == {
        **dict.fromkeys(("arn", "state", "instance_type", "availability_zone", "availability_zone_id"), ""),
        **dict.fromkeys(("platform", "end_date", "starts_at"), ""),
        "capacity_reservation_id": "cr-1",
        "count": 0,
        "available_count": 0,
        "tenancy": "default",
        "ebs_optimized": False,
        "match_criteria": "open",
        "capacity_block": False,
        "tags": {},
    }
    # A date that EC2 still shows of one without end does not count.
    assert reservations.reservation_of(item(EndDate=END))["end_date"] == ""


@pytest.mark.parametrize("changes", [{}, {"end_date": LATER, "count": 7, "match_criteria": "open"}])
@pytest.mark.parametrize("zone", [{}, {"availability_zone": None, "availability_zone_id": "usw2-az4"}])
def test_check_mode_foresees_what_the_request_makes(changes: dict[str, Any], zone: dict[str, Any]) -> None:
    params = {**PARAMS, **changes, **zone}
    foreseen = reservations.predicted(params, plan(**changes, **zone))
    request = reservations.creation(params, 1)
    made = {key: value for key, value in request.items() if key not in ("ClientToken", "TagSpecifications")}
    end = {"EndDate": END} if "EndDate" in made else {}
    shown = reservations.reservation_of(
        {
            **made,
            **end,
            "CapacityReservationId": "",
            "State": "active",
            "TotalInstanceCount": made["InstanceCount"],
            "AvailableInstanceCount": made["InstanceCount"],
            "Tags": [tag for tag in request["TagSpecifications"][0]["Tags"] if tag["Key"] != "trainium:generation"],
        }
    )
    assert foreseen == shown
    assert request["TagSpecifications"][0]["ResourceType"] == "capacity-reservation"


def test_a_change_keeps_what_is_used_and_adds_tags() -> None:
    found = item(AvailableInstanceCount=0)
    changed = plan(found, count=5, tags={"team": "speech"})
    after = reservations.predicted({**PARAMS, "count": 5}, changed)
    assert (after["count"], after["available_count"]) == (5, 3)
    assert after["tags"]["team"] == "speech"
    assert after["tags"]["trainium:generation"] == "1"
    assert after["capacity_reservation_id"] == "cr-1"
    assert reservations.modification("cr-1", changed.modify) == {"CapacityReservationId": "cr-1", "InstanceCount": 5}
    assert reservations.modification("cr-1", {"match_criteria": "open"}) == {
        "CapacityReservationId": "cr-1",
        "InstanceMatchCriteria": "open",
    }


@pytest.mark.parametrize(
    ("found", "change", "said"),
    [
        (
            {},
            {"ebs_optimized": True},
            (
                "has ebs_optimized false, not true, which EC2 cannot change; cancel it with state=absent first, or "
                "choose another name"
            ),
        ),
        ({"AvailabilityZoneId": None}, {"availability_zone_id": "usw2-az1"}, "has availability_zone_id none, not usw2"),
        ({"AvailableInstanceCount": 0}, {"count": 1}, "cr-1 has 2 instances in it, more than count=1; terminate some"),
        (
            {"AvailableInstanceCount": 1},
            {"match_criteria": "open"},
            "cr-1 has 1 instances in it, and match_criteria only changes without; stop them first",
        ),
        ({"State": "scheduled"}, {"end_date": LATER}, "cr-1 is scheduled, and EC2 only modifies active ones; wait un"),
        ({"ReservationType": "capacity-block"}, {}, "cr-1 is a Capacity Block, which EC2 cannot change"),
    ],
)
def test_what_ec2_would_refuse_is_refused(found: dict[str, Any], change: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainiumError) as error:
        plan(item(**found), **change)
    assert said in str(error.value)


def test_what_is_not_given_is_not_compared() -> None:
    assert not plan(item(), availability_zone=None, availability_zone_id=None, platform=None).changes
    # As many as are used is not too few.
    assert plan(item(TotalInstanceCount=3, AvailableInstanceCount=1)).modify == {"count": 2}


@pytest.mark.parametrize("state", ["active", "pending", "scheduled", "assessing", "delayed", "payment-pending"])
def test_one_that_holds_capacity_or_will_is_not_made_again(state: str) -> None:
    assert not plan(item(State=state)).create
    assert len(plan(item(State=state), state="absent").cancel) == 1


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (reservations.Plan(None, False, {}, {}, []), False),
        (reservations.Plan(None, True, {}, {}, []), True),
        (reservations.Plan({}, False, {"count": 1}, {}, []), True),
        (reservations.Plan({}, False, {}, {"a": "b"}, []), True),
        (reservations.Plan(None, False, {}, {}, [{}]), True),
    ],
)
def test_each_part_of_a_plan_is_a_change(wanted: reservations.Plan, changes: bool) -> None:
    assert wanted.changes == changes


def test_the_tags_of_a_group_say_whose_and_that_we_made_it() -> None:
    tags = reservations.group_tags({**PARAMS, "resource_group": "g"})
    assert tags == {"trainium:cluster": "c1", "trainium:reservation-group": "g"}


def test_a_result_has_all_its_fields_where_nothing_is_there() -> None:
    found = reservations.result(False, {}, {}, cancelled=["cr-1"])
    assert (found["capacity_reservation_id"], found["arn"], found["available_count"]) == ("", "", 0)
    assert (found["cancelled"], found["deleted_groups"], found["kept_groups"]) == (["cr-1"], [], [])
    assert (found["offering"], found["resource_group_arn"]) == ({}, "")
    assert found["diff"] == {"before": {}, "after": {}}
    shown = reservations.reservation_of(item())
    found = reservations.result(True, {}, shown)
    assert found["capacity_reservation"] == found["diff"]["after"] == shown
    assert (found["capacity_reservation_id"], found["available_count"]) == ("cr-1", 2)
    assert found["arn"].endswith("/cr-1")
