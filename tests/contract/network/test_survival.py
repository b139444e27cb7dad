"""A short form of ``make faults``: a launch that is killed, and one in bad weather, are taken up by the next run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import calls, judge
from tests.faults.world import DELETE, MAKE, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An account of EC2 with what belongs to others."""
    made = World("ec2", tmp_path_factory.mktemp("world"), nodes=1)
    try:
        yield made
    finally:
        made.close()


def test_what_a_kill_and_bad_weather_leave_is_taken_up(world: World) -> None:
    world.empty()
    # As soon as something costs money.
    killed = world.run(MAKE, lambda _seconds: bool(world.api.calls("RunInstances")))
    assert killed.code < 0 or killed.code > 2, killed.sentence
    judge.again(world, MAKE)
    world.settled()
    assert world.ours()["instances"] == 1 and world.ours()["vpcs"] == 1
    judge.untouched(world)
    world.api.control("POST", "weather", {"share": 0.3, "seed": "1", "late": 1})
    judge.judged(*world.run(DELETE)[1::-1])
    assert calls.good_weather(world) > 5
    judge.again(world, DELETE)
    judge.clean(world)


def test_what_is_broken_is_noticed(world: World) -> None:
    world.empty()
    judge.clean(world)
    mine = [{"ResourceType": "vpc", "Tags": [{"Key": "trainium:cluster", "Value": "bert"}]}]
    new = world.client("ec2").create_vpc(CidrBlock="10.3.0.0/16", TagSpecifications=mine)["Vpc"]["VpcId"]
    with pytest.raises(judge.BrokenError, match=f"left behind: .*{new}"):
        judge.clean(world, seconds=1)
    world.client("ec2").delete_key_pair(KeyName="bert-2")
    changed = world.client("ec2").describe_volumes()["Volumes"][0]["VolumeId"]
    world.client("ec2").create_tags(Resources=[changed], Tags=[{"Key": "new", "Value": ""}])
    said = rf"though it belongs to others: key_pairs key-\w+, volumes {changed}$"
    with pytest.raises(judge.BrokenError, match=said):
        judge.untouched(world)
    assert judge.difference({"vpcs": 2, "subnets": 4}, {"vpcs": 1, "subnets": 4}) == "2 vpcs in place of 1"
