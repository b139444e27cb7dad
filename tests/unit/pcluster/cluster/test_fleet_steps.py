"""Starting and stopping a fleet: what is asked, and when the wait for it ends."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_fleet import Fleet

from tests.unit.pcluster.pcluster_stand_ins import ToldLibrary


def fleet(*statuses: str) -> tuple[Fleet, ToldLibrary]:
    library = ToldLibrary(describe_compute_fleet=[{"status": status} for status in statuses])
    return Fleet(library, "bert"), library


@pytest.mark.parametrize(
    ("wanted", "status", "asked"),
    [
        ("running", "STOPPED", "START_REQUESTED"),
        ("running", "PROTECTED", "START_REQUESTED"),
        ("running", "STARTING", ""),
        ("stopped", "RUNNING", "STOP_REQUESTED"),
        ("stopped", "STOP_REQUESTED", ""),
    ],
)
def test_a_fleet_is_asked_once(wanted: str, status: str, asked: str) -> None:
    made, library = fleet()
    assert made.request(wanted, status) is bool(asked)
    request = ("update_compute_fleet", {"cluster_name": "bert", "status": asked})
    assert library.asked == ([request] if asked else [])


def test_a_fleet_is_awaited_by_its_status() -> None:
    made, library = fleet("START_REQUESTED", "RUNNING")
    made.bring("running", "STOPPED", 60)
    assert library.operations == ["update_compute_fleet", "describe_compute_fleet", "describe_compute_fleet"]
    assert library.arguments("describe_compute_fleet") == {"cluster_name": "bert"}
    assert made.wait("running", 0) == {"status": "RUNNING"}


@pytest.mark.parametrize(
    ("wanted", "status", "sentence"),
    [
        ("running", "STARTING", r"the fleet of bert \(STARTING\) is not running after 0 s"),
        ("running", "PROTECTED", "the fleet is PROTECTED, because nodes failed to boot"),
        ("running", "STOPPING", "the fleet is STOPPING: something else stopped it meanwhile"),
        ("stopped", "RUNNING", "the fleet is RUNNING: something else started it meanwhile"),
    ],
)
def test_why_the_wait_is_given_up(wanted: str, status: str, sentence: Any) -> None:
    made, _library = fleet(status)
    with pytest.raises(TrainiumError, match=sentence):
        made.wait(wanted, 0)
