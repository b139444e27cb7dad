"""What an update takes: the library's own policies, and the choice of the mildest remedy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import worker as pcluster_worker
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.impact import (
    NEEDS,
    NEW_CLUSTER,
    NOTHING,
    RUNNING,
    STOP_BOTH,
    STOP_FLEET,
    STOP_LOGIN,
    STOPPED,
    STRATEGY,
    Situation,
    plan_impact,
    situation,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import merge
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pcluster.pcluster_samples import configuration_of

ALL = [
    Situation(fleet, login, strategy)
    for fleet, login, strategy in product(
        (RUNNING, STOPPED), (True, False), ("COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE")
    )
]


def answer(*verdicts: Callable[[Situation], bool]) -> dict[str, Any]:
    return {
        "changes": [{"key": f"K{number}", "old": 1, "new": 2, "policy": "P"} for number in range(len(verdicts))],
        "states": [
            {
                "fleet": state.fleet,
                "login_nodes": state.login_nodes,
                "strategy": state.strategy,
                "verdicts": [{"allowed": verdict(state), "reason": "why", "action": ""} for verdict in verdicts],
            }
            for state in ALL
        ],
    }


NOW = Situation(RUNNING, False, "COMPUTE_FLEET_STOP")


@pytest.mark.parametrize(
    ("verdict", "now", "needs", "words"),
    [
        (lambda state: True, NOW, NOTHING, "allowed as the cluster is"),
        (lambda state: state.strategy != "COMPUTE_FLEET_STOP", NOW, STRATEGY, "to DRAIN or TERMINATE, or stop"),
        (lambda state: state.strategy == "TERMINATE", NOW, STRATEGY, "to TERMINATE, or stop"),
        (lambda state: state.fleet == STOPPED, NOW, STOP_FLEET, "stop the compute fleet first"),
        (lambda state: not state.login_nodes, NOW._replace(login_nodes=True), STOP_LOGIN, "Count of 0"),
        (
            lambda state: not state.login_nodes and state.fleet == STOPPED,
            NOW._replace(login_nodes=True),
            STOP_BOTH,
            "stop the compute fleet first, and the login nodes",
        ),
        (lambda state: False, NOW, NEW_CLUSTER, "make a new cluster"),
    ],
)
def test_the_mildest_remedy(verdict: Callable[[Situation], bool], now: Situation, needs: str, words: str) -> None:
    impact = plan_impact(answer(verdict), now)
    assert (impact["needs"], impact["allowed"]) == (needs, needs == NOTHING)
    assert words in impact["message"]
    assert impact["changes"][0]["needs"] == needs


def test_the_hardest_change_decides() -> None:
    impact = plan_impact(answer(lambda state: True, lambda state: state.fleet == STOPPED), NOW)
    assert [change["needs"] for change in impact["changes"]] == [NOTHING, STOP_FLEET]
    assert impact["message"] == "K1: stop the compute fleet first"


def test_no_change() -> None:
    impact = plan_impact(answer(), NOW)
    assert (impact["needs"], impact["allowed"]) == (NOTHING, True)
    assert "do not differ" in impact["message"]


@given(st.lists(st.sets(st.sampled_from(ALL)), max_size=4), st.sampled_from(ALL))
def test_an_update_is_allowed_exactly_if_every_change_is(allowed: list[set[Situation]], now: Situation) -> None:
    impact = plan_impact(answer(*(lambda state, one=one: state in one for one in allowed)), now)
    assert impact["allowed"] == all(now in one for one in allowed)
    assert impact["needs"] in NEEDS
    for change, one in zip(impact["changes"], allowed):
        assert change["allowed"] == (now in one)


def test_the_situation_is_read_from_the_configurations() -> None:
    current = configuration_of("login_nodes")
    wanted = merge(current, {"Scheduling": {"SlurmSettings": {"QueueUpdateStrategy": "DRAIN"}}})
    assert situation("STOP_REQUESTED", current, wanted) == Situation(RUNNING, True, "DRAIN")
    assert situation("STOPPED", configuration_of("trn1"), current) == Situation(STOPPED, False, "COMPUTE_FLEET_STOP")


QUEUE = "compute1"


def queue(**section: Any) -> dict[str, Any]:
    return {"Scheduling": {"SlurmQueues": [{"Name": QUEUE, **section}]}}


def resource(**section: Any) -> dict[str, Any]:
    return queue(ComputeResources=[{"Name": "trn1", **section}])


@pytest.mark.parametrize(
    ("over", "key", "policy", "needs"),
    [
        (resource(MaxCount=1), "MaxCount", "RESIZE_UPDATE_STRATEGY_ON_REMOVE", STRATEGY),
        (resource(MaxCount=3), "MaxCount", "RESIZE_UPDATE_STRATEGY_ON_REMOVE", NOTHING),
        (resource(Efa={"Enabled": False}), "Enabled", "QUEUE_UPDATE_STRATEGY", STRATEGY),
        (resource(InstanceType="trn1.2xlarge"), "InstanceType", "COMPUTE_FLEET_STOP", STOP_FLEET),
        (
            queue(Networking={"PlacementGroup": {"Enabled": False}}),
            "Enabled",
            "MANAGED_PLACEMENT_GROUP",
            STOP_FLEET,
        ),
        ({"HeadNode": {"InstanceType": "m5.large"}}, "InstanceType", "UNSUPPORTED", NEW_CLUSTER),
        ({"Tags": [{"Key": "a", "Value": "b"}]}, "Tags", "SUPPORTED_UNLESS_ADC", NOTHING),
        # The library breaks on this one while nodes run, and so would the update.
        (
            {"SharedStorage": [{"Name": "shared", "MountDir": "/elsewhere"}]},
            "MountDir",
            "SHARED_STORAGE_UPDATE_POLICY",
            STOP_FLEET,
        ),
    ],
)
def test_the_library_s_own_policies(over: dict[str, Any], key: str, policy: str, needs: str) -> None:
    current = configuration_of("trn1")
    wanted = merge(current, over)
    found = pcluster_worker.update_policies({"current": current, "wanted": wanted, "cluster_name": "bert"})
    impact = plan_impact(found, situation(RUNNING, current, wanted))
    assert [change["key"].split("/")[-1] for change in impact["changes"]] == [key]
    assert impact["changes"][0]["policy"] == policy
    assert impact["needs"] == needs, impact
