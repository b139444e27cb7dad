"""Who takes whose place: a replaced node's successor has its rank, whatever happened in between."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    GENERATION_TAG,
    PLACE_TAG,
    VACATED_TAG,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import (
    LIVE_STATES,
    Place,
    in_order,
    place_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.plan import next_generation, plan_fleet
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.vacancies import (
    Vacancy,
    ending,
    vacancies,
    vacancy_of,
)
from hypothesis import given
from hypothesis import strategies as st

GONE = {"state": "terminated", "state_reason_code": "Client.UserInitiatedShutdown"}
# (generation, 0 for nodes of before the tag was there; index in the launch)
sets = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=6, unique=True)


def node(number: int, generation: int, index: int, **tags: str) -> dict[str, Any]:
    return {
        "instance_id": f"i-{number:03}",
        "state": "running",
        "launch_time": f"2026-11-21T07:{number:02}:00.000+00:00",
        "attach_time": f"2026-11-20T07:{index:02}:00.000+00:00",
        "ami_launch_index": index,
        "private_ip_address": f"192.0.2.{number}",
        "subnet_id": "subnet-1",
        "state_reason_code": "",
        "tags": {**({GENERATION_TAG: str(generation)} if generation else {}), **tags},
    }


def end(found: list[dict[str, Any]], replaced: set[str]) -> list[dict[str, Any]]:
    """What EC2 shows once these were marked and ended: no interface and no address any more."""
    gone = {**GONE, "attach_time": "", "private_ip_address": "", "subnet_id": ""}
    generation = next_generation(found)
    return [
        {**item, **gone, "tags": {**item["tags"], VACATED_TAG: str(vacancy_of(item, generation))}}
        if item["instance_id"] in replaced
        else item
        for item in found
    ]


def launch(found: list[dict[str, Any]], places: list[Vacancy], first: int) -> list[dict[str, Any]]:
    generation = next_generation(found)
    new = [node(first + number, generation, 0, **{PLACE_TAG: str(item.place)}) for number, item in enumerate(places)]
    return [*found, *({**item, "private_ip_address": place.address} for item, place in zip(new, places))]


def alive(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return in_order(item for item in found if item["state"] in LIVE_STATES)


@given(sets, st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_rank_and_address_stay_however_often_nodes_are_replaced_and_wherever_the_run_was_killed(
    members: list[tuple[int, int]], rounds: list[set[int]], shuffler: random.Random
) -> None:
    found = [node(number, *item) for number, item in enumerate(members)]
    before = alive(found)
    for number, ranks in enumerate(rounds):
        now = alive(found)
        replaced = {now[rank]["instance_id"] for rank in ranks if rank < len(now)}
        plan = plan_fleet(found, "present", len(members), (), sorted(replaced))
        assert {item["instance_id"] for item in plan.replace} == replaced
        assert (plan.launch, plan.terminate) == (len(replaced), [])
        planned = vacancies(found, replaced)
        found = end(found, replaced)
        shuffler.shuffle(found)
        # The run that was killed before the launch left the same word, unless nobody is left for whom it counts.
        assert vacancies(found) == (planned if alive(found) else [])
        # And the one that was killed after the first launch, the rest of it.
        found = launch(found, planned[:1], 100 + 20 * number)
        if len(now) > len(planned):
            assert vacancies(found) == planned[1:]
        found = launch(found, planned[1:], 110 + 20 * number)
        assert vacancies(found) == []
    after = alive(found)
    assert [item["private_ip_address"] for item in after] == [item["private_ip_address"] for item in before]
    assert [place_of(item) for item in after] == [place_of(item) for item in before]


def test_what_a_set_that_was_removed_left_counts_for_no_other() -> None:
    """Its next nodes would otherwise come before those that are there, and a head be another."""
    ended = end([node(1, 1, 0), node(2, 1, 1)], {"i-001", "i-002"})
    anew = [*ended, node(3, next_generation(ended), 0)]
    assert vacancies(anew) == []
    assert len(vacancies([*ended, node(3, 1, 2)])) == 2


@pytest.mark.parametrize(("code", "free"), [("Server.InsufficientInstanceCapacity", True), ("Client.User", False)])
def test_a_place_stays_free_where_ec2_had_no_room_and_not_where_the_successor_was_ended(code: str, free: bool) -> None:
    found = end([node(1, 1, 0), node(2, 1, 1)], {"i-002"})
    planned = vacancies(found)
    *rest, successor = launch(found, planned, 100)
    assert vacancies([*rest, {**successor, **GONE, "state_reason_code": code}]) == (planned if free else [])


def test_who_still_ends_is_waited_for_by_a_run_after_the_one_that_was_killed() -> None:
    found = end([node(1, 1, 0), node(2, 1, 1), node(3, 1, 2)], {"i-002", "i-003"})
    slow = [{**item, "state": "shutting-down"} if item["instance_id"] == "i-003" else item for item in found]
    assert [item["instance_id"] for item in ending(slow, vacancies(slow))] == ["i-003"]
    # Its place was filled, or it has nothing to do with a replacement.
    assert ending(slow, vacancies(slow)[:1]) == []
    assert ending([{**node(4, 1, 3), **GONE, "state": "shutting-down"}], vacancies(slow)) == []


@given(sets)
def test_who_leaves_for_good_leaves_no_place(members: list[tuple[int, int]]) -> None:
    found = [{**node(number, *item), "state": "terminated"} for number, item in enumerate(members)]
    assert vacancies(found) == []


@given(st.builds(Place, st.integers(0, 9), st.integers(0, 99), st.sampled_from(["", "2026-11-20T07:01:00.000+00:00"])))
def test_a_place_is_read_as_it_was_written(place: Place) -> None:
    assert Place.read(str(place)) == place
    whole = Vacancy(place, 12, "192.0.2.1", "subnet-1")
    assert Vacancy.read(str(whole)) == whole
    assert Vacancy.read(str(Vacancy(place, 12, "", ""))) == Vacancy(place, 12, "", "")
    assert len(str(whole)) < 256


@pytest.mark.parametrize("text", ["", "1", "1/0", "1/x/", "-1/0/", "1/0/{{ x }}", "9" * 12 + "/0/", "²/0/"])
def test_a_mark_that_somebody_else_wrote_is_none(text: str) -> None:
    assert Place.read(text) is None
    assert Vacancy.read(f"{text} 2") is None
    assert Vacancy.read(f"1/0/ {text}") is None or text == "1"
    own = node(1, 2, 3)
    assert place_of({**own, "tags": {**own["tags"], PLACE_TAG: text}}) == place_of(own)


@pytest.mark.parametrize("rest", ["192.0.2.1", "x subnet-1", "192.0.2.1 eni-1", "192.0.2.1 subnet-1;"])
def test_half_an_address_is_none(rest: str) -> None:
    assert Vacancy.read(f"1/0/ 2 {rest}") == Vacancy(Place(1, 0, ""), 2, "", "")
