"""How many nodes to launch, and which to keep, start, stop and terminate."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import LIVE_STATES, in_order
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import (
    candidate_subnets,
    generation_of,
    next_generation,
    plan_fleet,
)
from hypothesis import given
from hypothesis import strategies as st

STATES = [*LIVE_STATES, "shutting-down", "terminated"]


def node(number: int, state: str = "running", launched: int = 0, generation: str | None = "1") -> dict[str, Any]:
    tags = {} if generation is None else {"trainium:generation": generation}
    return {
        "instance_id": f"i-{number}",
        "state": state,
        "launch_time": f"2026-11-21T07:{launched:02}",
        "ami_launch_index": number,
        "availability_zone": "a",
        "subnet_id": "subnet-2",
        "tags": tags,
    }


nodes = st.lists(st.tuples(st.sampled_from(STATES), st.integers(0, 5), st.integers(1, 9)), max_size=12).map(
    lambda items: [node(n, state, launched, str(gen)) for n, (state, launched, gen) in enumerate(items)]
)


def after(found: list[dict[str, Any]], plan: Any) -> list[dict[str, Any]]:
    """What is there once the plan was carried out."""
    gone = {item["instance_id"] for item in plan.terminate}
    states = {
        **{item["instance_id"]: "running" for item in plan.start},
        **{item["instance_id"]: "stopped" for item in plan.stop},
    }
    rest = [{**item, "state": states.get(item["instance_id"], item["state"])} for item in found]
    rest = [{**item, "state": "terminated"} if item["instance_id"] in gone else item for item in rest]
    new = [node(1000 + number, launched=50, generation=str(next_generation(found))) for number in range(plan.launch)]
    return rest + new


@given(nodes, st.sampled_from(["present", "stopped", "absent"]), st.integers(1, 10))
def test_carried_out_the_plan_is_empty(found: list[dict[str, Any]], state: str, count: int) -> None:
    reached = after(found, plan_fleet(found, state, count))
    assert not plan_fleet(reached, state, count).changes
    live = [item for item in reached if item["state"] in LIVE_STATES]
    if state == "present":
        assert len(live) == count
    elif state == "absent":
        assert live == []


@given(nodes, st.integers(1, 10))
def test_the_oldest_stay(found: list[dict[str, Any]], count: int) -> None:
    plan = plan_fleet(found, "present", count)
    live = in_order(item for item in found if item["state"] in LIVE_STATES)
    assert plan.keep == live[:count]
    assert plan.terminate == live[count:]
    assert not (plan.launch and plan.terminate)


@given(nodes, st.randoms())
def test_the_order_of_the_reply_does_not_matter(found: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)
    assert plan_fleet(found, "present", 3) == plan_fleet(shuffled, "present", 3)


@given(nodes)
def test_a_new_generation_was_never_seen(found: list[dict[str, Any]]) -> None:
    assert next_generation(found) == 1 + max([0, *(generation_of(item) for item in found)])


@pytest.mark.parametrize("tag", [None, "", "x", "-1", "²"])
def test_a_tag_that_is_no_generation(tag: str | None) -> None:
    assert generation_of(node(1, generation=tag)) == 0


def test_new_nodes_join_the_zone_of_the_old() -> None:
    subnets = [
        {"SubnetId": "subnet-1", "AvailabilityZone": "b"},
        {"SubnetId": "subnet-3", "AvailabilityZone": "a"},
        {"SubnetId": "subnet-2", "AvailabilityZone": "a"},
    ]
    assert candidate_subnets(subnets, []) == subnets
    assert [item["SubnetId"] for item in candidate_subnets(subnets, [node(1)])] == ["subnet-2", "subnet-3"]
    with pytest.raises(TrainiumError, match="run in a and none of the subnets lies there"):
        candidate_subnets(subnets[:1], [node(1)])
