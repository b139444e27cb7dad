# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start and stop the compute fleet of a cluster."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Goal, Pace, wait_until
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.plan_fleet import (
    WANTED,
    fleet_request,
    fleet_stuck,
)

# A look costs a process of more than a second.
PACE = Pace(1, 1.5, 10)


class Fleet:
    """The compute fleet of the cluster ``name``."""

    def __init__(self, library: Library, name: str) -> None:
        self._library, self._name = library, name

    def look(self) -> dict[str, Any]:
        """``{"status": "RUNNING", "lastStatusUpdatedTime": "..."}``."""
        return dict(self._library.call("describe_compute_fleet", cluster_name=self._name))

    def request(self, wanted: str, status: str) -> bool:
        """Ask for the fleet to become ``running`` or ``stopped``, unless it is or is about to; whether it was asked."""
        request = fleet_request(wanted, status)
        if request:
            self._library.call("update_compute_fleet", cluster_name=self._name, status=request)
        return bool(request)

    def wait(self, wanted: str, timeout: float) -> dict[str, Any]:
        """Wait until the fleet is ``running`` or ``stopped``. Raises TrainiumError after ``timeout`` seconds."""
        goal = Goal(
            wanted,
            lambda seen: seen is not None and seen["status"] == WANTED[wanted],
            lambda seen: fleet_stuck(wanted, seen["status"]) if seen else "",
            lambda seen: f"the fleet of {self._name} ({seen['status'] if seen else 'unknown'})",
        )
        return dict(wait_until(goal, self.look, timeout, Progress(), PACE) or {})

    def bring(self, wanted: str, status: str, timeout: float) -> None:
        """Request and wait."""
        self.request(wanted, status)
        self.wait(wanted, timeout)
