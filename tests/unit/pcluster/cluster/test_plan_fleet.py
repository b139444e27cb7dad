"""What is asked of a compute fleet."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan_fleet import (
    WANTED,
    fleet_request,
    fleet_stuck,
)

STATUSES = ("START_REQUESTED", "STARTING", "RUNNING", "PROTECTED", "STOP_REQUESTED", "STOPPING", "STOPPED", "UNKNOWN")


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("status", STATUSES)
def test_a_request_is_made_where_the_fleet_is_not_on_its_way(wanted: str, status: str) -> None:
    started = status in ("START_REQUESTED", "STARTING", "RUNNING")
    stopped = status in ("STOP_REQUESTED", "STOPPING", "STOPPED")
    request = fleet_request(wanted, status)
    if wanted == "running":
        assert request == ("" if started else "START_REQUESTED")
    else:
        assert request == ("" if stopped else "STOP_REQUESTED")
    # What is on its way is not stuck, what goes the other way is.
    if status != "UNKNOWN":
        assert bool(fleet_stuck(wanted, status)) == (bool(request) and (wanted, status) != ("stopped", "PROTECTED"))
