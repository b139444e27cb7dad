"""efa_instance puts another instance in the place of one: the same rank, and the same address where it is free."""

from __future__ import annotations

from typing import Any

from tests.contract.conftest import Account, Api


def addresses(result: dict[str, Any]) -> list[str]:
    return [node["private_ip_address"] for node in result["instances"]]


def test_rank_and_address_are_those_of_the_node_that_left(cloud: Account) -> None:
    before = cloud.efa(count=3, public_ip="primary")
    old = before["instance_ids"][1]
    cloud.efa(count=4, public_ip="primary")
    # Somebody who replaces the second node has no more Elastic IPs to give than there are.
    cloud.api.fault("AllocateAddress", "AddressLimitExceeded")
    promised = cloud.efa(check=True, count=4, replace=[old], public_ip="primary")
    assert (promised["changed"], promised["replaced"]) == (True, [old])
    assert cloud.instances("shutting-down", "terminated") == []
    after = cloud.efa(count=4, replace=[old], public_ip="primary")
    assert (after["terminated"], after["replaced"]) == ([old], [old])
    (new,) = after["launched"]
    assert after["instance_ids"][:3] == [before["instance_ids"][0], new, before["instance_ids"][2]]
    assert addresses(after)[:3] == addresses(before)
    assert [node["public_ip_address"] for node in after["instances"]][:3] == [
        node["public_ip_address"] for node in before["instances"]
    ]
    # Said again, with an id that is gone; and once more for the one that came.
    assert not cloud.efa(count=4, replace=[old], public_ip="primary")["changed"]
    again = cloud.efa(count=4, replace=[new], public_ip="primary")
    assert again["instance_ids"][1] == again["launched"][0] != new
    assert addresses(again) == addresses(after)


def test_all_of_them_at_once(cloud: Account) -> None:
    # With one interface each, of which none can take the address that the next node asks for.
    before = cloud.efa(count=2, interface_layout="none")
    after = cloud.efa(count=2, interface_layout="none", replace=before["instance_ids"])
    assert not set(after["instance_ids"]) & set(before["instance_ids"])
    assert addresses(after) == addresses(before)
    assert after["availability_zone"] == before["availability_zone"]


def test_a_run_killed_before_the_launch_is_made_good_by_the_next_of_any_kind(cloud: Account) -> None:
    before = cloud.efa(count=3)
    arguments = cloud.arguments(count=3, replace=before["instance_ids"][:1])
    cloud.kill_after("TerminateInstances", arguments)
    after = cloud.efa(count=3)
    assert after["instance_ids"][1:] == before["instance_ids"][1:]
    assert addresses(after) == addresses(before)


def test_a_run_killed_while_the_old_instance_ends_keeps_its_addresses() -> None:
    """Instances with Neuron devices take minutes to end, in which their addresses are in use."""
    api = Api(2.5)
    try:
        cloud = Account(api)
        before = cloud.efa(count=2, public_ip="primary")
        old = before["instance_ids"][1]
        cloud.kill_after("TerminateInstances", cloud.arguments(count=2, public_ip="primary", replace=[old]))
        api.clear_calls()
        after = cloud.efa(count=2, public_ip="primary", replace=[old])
        assert not [*api.calls("ReleaseAddress"), *api.calls("AllocateAddress")]
        # A successor that takes too long is ended again, and leaves the place to the next.
        late = cloud.refused(count=2, public_ip="primary", replace=after["launched"], wait_timeout=1)
        assert "the 1 nodes of this launch were terminated again" in late
        last = cloud.efa(count=2, public_ip="primary")
        assert addresses(last) == addresses(before)
    finally:
        api.stop()
    assert [item["outcome"] for item in after["attempts"]] == ["launched"]
    assert addresses(after) == addresses(before)
    public = [[node["public_ip_address"] for node in result["instances"]] for result in (before, after)]
    assert public[0] == public[1]


def test_ids_that_are_none_of_the_set_are_refused(cloud: Account) -> None:
    cloud.efa(name="other", count=1)
    other = cloud.instances("running")[0]["InstanceId"]
    cloud.efa(count=2)
    assert f"replace names {other}, which" in cloud.refused(count=2, replace=[other])
    assert "replace has 'ip-10-0-0-1'" in cloud.refused(count=2, replace=["ip-10-0-0-1"])
    assert len(cloud.instances("running")) == 3


def test_an_address_that_somebody_took_is_no_reason_to_have_no_node(cloud: Account) -> None:
    before = cloud.efa(count=2)
    old = before["instances"][0]
    # As if another interface of the subnet had it.
    cloud.api.fault("RunInstances", "InvalidIPAddress.InUse", skip=1, times=2)
    after = cloud.efa(count=2, replace=[old["instance_id"]], wait_timeout=30)
    assert [attempt["outcome"] for attempt in after["attempts"]] == ["InvalidIPAddress.InUse", "launched"]
    assert after["instance_ids"][1] == before["instance_ids"][1]
    assert "PrivateIpAddress" not in after["request"]["NetworkInterfaces"][0]


def test_no_node_is_given_up_where_ec2_refuses_the_launch_or_fewer_would_come(cloud: Account) -> None:
    nodes = cloud.efa(count=2)["instance_ids"]
    cloud.api.fault("RunInstances", "UnauthorizedOperation", status=403)
    assert "UnauthorizedOperation" in cloud.refused(count=2, replace=nodes[1:])
    said = cloud.refused(count=1, replace=nodes[1:])
    assert "count is 1 and the set bert has 2 nodes with the 1 that are to be replaced; give count=2" in said
    assert len(cloud.instances("running")) == 2


def test_where_there_is_no_capacity_it_says_what_is_gone_and_the_next_run_launches_it(cloud: Account) -> None:
    before = cloud.efa(count=2)
    old, zone = before["instance_ids"][1], before["availability_zone"]
    for other in cloud.zones:
        cloud.api.capacity("trn1.32xlarge", other, -1 if other == zone else 0)
    said = cloud.refused(count=2, replace=[old])
    assert said.endswith(f"{old} ended to be replaced, and the next run launches what is missing.")
    cloud.api.capacity("trn1.32xlarge", zone, 1)
    assert addresses(cloud.efa(count=2)) == addresses(before)


def test_a_reservation_that_is_full_has_room_for_the_one_that_comes(cloud: Account) -> None:
    asked = {"InstanceType": "trn1.32xlarge", "InstancePlatform": "Linux/UNIX", "InstanceMatchCriteria": "targeted"}
    made = cloud.ec2.create_capacity_reservation(**asked, AvailabilityZone=cloud.zones[0], InstanceCount=2)
    reservation = {"id": made["CapacityReservation"]["CapacityReservationId"]}
    before = cloud.efa(count=2, capacity_reservation=reservation)
    assert [node["capacity_reservation_id"] for node in before["instances"]] == [reservation["id"]] * 2
    after = cloud.efa(count=2, capacity_reservation=reservation, replace=before["instance_ids"][:1])
    assert addresses(after) == addresses(before)
