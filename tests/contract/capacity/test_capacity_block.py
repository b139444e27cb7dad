"""capacity_reservation buys a Capacity Block once, for a price that was accepted, and never without."""

from __future__ import annotations

import signal
import sys
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import run_turn

Account = Any
Result = dict[str, Any]
TYPE = "trn1.32xlarge"
TAGS = {"trainium:cluster": "c1", "trainium:reservation": "block"}


def day(days: float) -> str:
    return f"{datetime.now(timezone.utc) + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


class Blocks:
    """The module with its usual arguments, and what the API shows."""

    def __init__(self, cloud: Account) -> None:
        self.cloud, self.ec2 = cloud, cloud.ec2
        # One window for all runs of a test.
        self.window = {"starts_after": day(1), "ends_before": day(20)}

    def arguments(self, **changes: Any) -> Result:
        base = {"name": "block", "cluster_name": "c1", "instance_type": TYPE, "count": 4, "block_hours": 48}
        full = {**base, **self.window, "accept_price_up_to": 5000, "purchase_pause": 0, **changes}
        return {key: value for key, value in full.items() if value is not None}

    def run(self, check: bool = False, **changes: Any) -> Result:
        result: Result = self.cloud.run("capacity_reservation", self.arguments(**changes), check)
        assert not result.get("failed"), result.get("msg")
        return result

    def refused(self, **changes: Any) -> str:
        result = self.cloud.run("capacity_reservation", self.arguments(**changes))
        assert result.get("failed"), result
        return str(result["msg"])

    def shown(self) -> list[Result]:
        found: list[Result] = self.ec2.describe_capacity_reservations()["CapacityReservations"]
        return found

    def purchases(self) -> int:
        return len([call for call in self.cloud.api.calls("PurchaseCapacityBlock") if call["write"]])


@pytest.fixture
def blocks(cloud: Account) -> Blocks:
    return Blocks(cloud)


def test_bought_as_asked_and_once(blocks: Blocks) -> None:
    checked = blocks.run(check=True)
    assert blocks.cloud.api.writes() == []
    bought = blocks.run(tags={"team": "speech"})
    (made,) = blocks.shown()
    assert (made["State"], made["ReservationType"], made["InstanceType"]) == ("scheduled", "capacity-block", TYPE)
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"] if not tag["Key"].startswith("aws:")}
    assert tags == {"Name": "block", "trainium:cluster": "c1", "trainium:reservation": "block", "team": "speech"}
    assert bought["changed"] and checked["changed"]
    assert bought["offering"] == checked["offering"]
    assert bought["capacity_reservation_id"] == made["CapacityReservationId"]
    reservation, offering = bought["capacity_reservation"], bought["offering"]
    assert (reservation["count"], reservation["capacity_block"]) == (4, True)
    assert (reservation["starts_at"], reservation["end_date"]) == (offering["starts_at"], offering["ends_at"])
    assert reservation["starts_at"] >= blocks.window["starts_after"]
    assert reservation["end_date"] <= blocks.window["ends_before"]
    # The lowest price for an hour: a later one is cheaper.
    others = blocks.cloud.run(
        "neuron_capacity_info",
        {"instance_type": TYPE, "count": 4, "block_hours": 48, "markets": ["capacity-block"], **blocks.window},
    )["options"]
    assert offering["price_per_hour"] == min(one["price_per_hour"] for one in others)
    again = blocks.run(accept_price_up_to=None)
    assert (again["changed"], again["offering"]) == (False, {})
    assert again["capacity_reservation"] == bought["capacity_reservation"]
    assert blocks.purchases() == 1


def test_nothing_is_bought_without_a_price_or_above_it(blocks: Blocks) -> None:
    offering = blocks.run(check=True)["offering"]
    price = f"{offering['price_total']:.2f}"
    said = blocks.refused(accept_price_up_to=None)
    assert (
        f"costs {price} USD in advance and can never be cancelled; nothing was bought, set accept_price_up_to" in said
    )
    shown = blocks.run(check=True, accept_price_up_to=None)
    assert shown["offering"] == offering
    assert f"set accept_price_up_to to {price} or more to buy it" in str(shown["warnings"])
    assert "more than accept_price_up_to=100 (cb-" in blocks.refused(accept_price_up_to=100)
    assert blocks.purchases() == 0
    assert blocks.shown() == []


def test_a_run_that_was_killed_after_the_purchase_bought_it(blocks: Blocks) -> None:
    process = blocks.cloud.start("capacity_reservation", blocks.arguments(), python=sys.executable)
    deadline = time.monotonic() + 300
    while not blocks.purchases():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not blocks.run()["changed"]
    assert len(blocks.shown()) == blocks.purchases() == 1


def test_a_purchase_that_is_not_visible_yet_is_waited_for(blocks: Blocks) -> None:
    """Of a run that was killed: its tags show while the next run looks once more before it buys."""
    blocks.run()
    (made,) = blocks.shown()
    tag = [{"Key": "trainium:cluster", "Value": "c1"}]
    blocks.ec2.delete_tags(Resources=[made["CapacityReservationId"]], Tags=tag)
    process = blocks.cloud.start("capacity_reservation", blocks.arguments(purchase_pause=30))
    deadline = time.monotonic() + 300
    while len(blocks.cloud.api.calls("DescribeCapacityBlockOfferings")) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    blocks.ec2.create_tags(Resources=[made["CapacityReservationId"]], Tags=tag)
    output, _errors = process.communicate(timeout=600)
    assert made["CapacityReservationId"] in output
    assert blocks.purchases() == 1


def test_a_lost_answer_buys_once(blocks: Blocks) -> None:
    blocks.cloud.api.fault("PurchaseCapacityBlock", "InternalError", after=True, status=500)
    assert blocks.run()["capacity_reservation"]["capacity_block"]
    assert len(blocks.shown()) == blocks.purchases() == 1


def test_what_is_not_known_is_said_and_not_tried_again(blocks: Blocks) -> None:
    blocks.cloud.api.fault("PurchaseCapacityBlock", "ServiceUnavailable", status=503)
    said = blocks.refused(wait_timeout=1)
    assert "was bought is not known" in said
    assert "look at the account's Capacity Reservations before you run this again" in said
    blocks.cloud.api.fault("PurchaseCapacityBlock", "InvalidParameterValue")
    assert "nothing was bought" in blocks.refused()
    assert blocks.purchases() == 2


def test_of_two_processes_at_the_same_moment_one_buys(blocks: Blocks) -> None:
    """As in a play of many hosts where run_once was forgotten; here the first is about to buy."""
    cloud = blocks.cloud
    checked = blocks.run(check=True)["offering"]
    with run_turn.alone("capacity-block", cloud.ec2.meta.region_name, "c1", "block"):
        asked = len(cloud.api.calls("DescribeCapacityBlockOfferings"))
        process = cloud.start("capacity_reservation", blocks.arguments(), python=sys.executable)
        deadline = time.monotonic() + 300
        while len(cloud.api.calls("DescribeCapacityBlockOfferings")) < 2 * asked:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1)
        tags = [{"Key": key, "Value": value} for key, value in TAGS.items()]
        blocks.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=checked["id"],
            InstancePlatform="Linux/UNIX",
            TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": tags}],
        )
    output, _errors = process.communicate(timeout=600)
    (made,) = blocks.shown()
    assert made["CapacityReservationId"] in output
    assert blocks.purchases() == 1


def test_the_users_own_retries_do_not_buy_again(blocks: Blocks) -> None:
    """aws_config wins over a module's own, and EC2 may have sold the block before it answers that it failed."""
    blocks.cloud.api.fault("PurchaseCapacityBlock", "InternalError", after=True, status=500, times=3)
    blocks.run(aws_config={"retries": {"max_attempts": 3}})
    assert len(blocks.shown()) == blocks.purchases() == 1


def test_an_unknown_error_of_the_server_is_not_taken_for_a_refusal(blocks: Blocks) -> None:
    blocks.cloud.api.fault("PurchaseCapacityBlock", "Strange", after=True, status=500)
    assert blocks.run()["capacity_reservation"]["capacity_block"]
    blocks.cloud.api.fault("PurchaseCapacityBlock", "Strange", status=500)
    assert "was bought is not known" in blocks.refused(name="other", wait_timeout=1)
    assert blocks.purchases() == 2


def test_another_one_of_the_name_is_refused(blocks: Blocks) -> None:
    made = blocks.run(name="a")["capacity_reservation_id"]
    assert f"{made} was bought with count 4, not 2, which EC2 cannot change" in blocks.refused(name="a", count=2)
    assert "which is not what starts_after and ends_before ask for" in blocks.refused(name="a", starts_after=day(19))
    on_demand = {"block_hours": None, "availability_zone": blocks.cloud.zones[0]}
    assert f"{made} is a Capacity Block, which EC2 cannot change" in blocks.refused(name="a", **on_demand)
    blocks.run(name="b", **on_demand)
    assert "is no Capacity Block, which is not what" in blocks.refused(name="b")
    assert blocks.purchases() == 1


def test_absent_leaves_it_and_says_so(blocks: Blocks) -> None:
    made = blocks.run()["capacity_reservation_id"]
    gone = blocks.run(state="absent")
    assert (gone["changed"], gone["cancelled"]) == (False, [])
    assert f"{made} is a Capacity Block and stays: EC2 cancels none" in str(gone["warnings"])
    assert [one["State"] for one in blocks.shown()] == ["scheduled"]
    (told,) = blocks.cloud.run("neuron_capacity_info", {"instance_type": TYPE, "count": 4, "markets": ["reservation"]})[
        "options"
    ]
    assert (told["id"], told["obstacle"]) == (made, "")


def test_no_offering(blocks: Blocks) -> None:
    for zone in blocks.cloud.zones:
        blocks.cloud.api.capacity(TYPE, zone, 3)
    assert "EC2 offers no Capacity Block of 4 x trn1.32xlarge for 48 hours in us-west-2" in blocks.refused()
    blocks.cloud.api.capacity(TYPE, blocks.cloud.zones[1], 4)
    assert f"for 48 hours in {blocks.cloud.zones[0]}" in blocks.refused(availability_zone=blocks.cloud.zones[0])
    assert blocks.run()["capacity_reservation"]["availability_zone"] == blocks.cloud.zones[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": 65}, "count is 65; a Capacity Block has 1 to 64 instances"),
        ({"block_hours": 30}, "block_hours is 30; Capacity Blocks last whole days"),
        ({"ends_before": None}, "ends_before is missing; give the end of the time"),
        ({"ends_before": "2020-01-01"}, "ends_before 2020-01-01T00:00:00Z is not later than"),
        ({"accept_price_up_to": -1}, "accept_price_up_to is -1.0; give US dollars"),
        ({"resource_group": "g"}, "resource_group is not for a Capacity Block; leave it out, or block_hours"),
        ({"match_criteria": "open"}, "match_criteria is not for a Capacity Block"),
        ({"name": None}, "name is missing; a Capacity Block needs it"),
        ({"instance_type": None}, "instance_type is missing"),
    ],
)
def test_refused_without_a_call(blocks: Blocks, change: Result, words: str) -> None:
    assert words in blocks.refused(**change)
    assert blocks.cloud.api.calls() == []
