# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An update of a cluster, with the compute fleet stopped for it where it must be and started again in any case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.calls import PclusterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import Library
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_fleet import Fleet
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_stack import Stack
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.stack_events import ENDS


class Update:
    """``rehearse`` it, then ``perform`` it. ``configuration`` is what the cluster shall have."""

    def __init__(
        self, library: Library, stack: Stack, params: Mapping[str, Any], configuration: dict[str, Any]
    ) -> None:
        self._library, self._stack, self._params = library, stack, params
        self._fleet = Fleet(library, params["name"])
        self._arguments = {
            "cluster_name": params["name"],
            "cluster_configuration": configuration,
            "suppress_validators": params["suppress_validators"] or None,
            "validation_failure_level": params["validation_failure_level"],
        }
        self._fleet_status = ""
        self.messages: list[dict[str, str]] = []
        self.stops_fleet = False

    def rehearse(self, fleet_status: str) -> list[dict[str, str]] | None:
        """The change set; None where the library finds nothing to change. Raises TrainiumError when it refuses.

        ``fleet_status`` is the fleet's. With the policy that stops the fleet, what the library says of a running one
        counts as accepted if stopping it would cure that; ``perform`` asks again with the fleet stopped.
        """
        self._fleet_status = fleet_status
        try:
            content = self._library.dry_run("update_cluster", **self._arguments)
        except PclusterError as error:
            if planner.nothing_to_update(error.message):
                return None
            if not planner.stop_would_help(error.content):
                raise
            if self._params["fleet_policy"] == "fail":
                raise TrainiumError(
                    f"{error}; stop the compute fleet first, or set fleet_policy=stop_and_start",
                    change_set=planner.change_set(error.content),
                ) from error
            self.stops_fleet, content = True, error.content
        self.messages = planner.validation_messages(content)
        return planner.change_set(content)

    def perform(self, arn: str) -> None:
        """Update the cluster whose stack is ``arn``; a fleet that was stopped for it is started again."""
        if not self.stops_fleet:
            self._update(arn, bool(self._params["wait"]))
            return
        timeout = self._params["wait_timeout"]
        try:
            self._fleet.bring("stopped", self._fleet_status, timeout)
            self.messages = planner.validation_messages(self._library.dry_run("update_cluster", **self._arguments))
            # The fleet can be started when the update is over, so this waits even with wait=false.
            self._update(arn, wait=True)
        except TrainiumError as error:
            self._start_after(error)
        if self._fleet_status in planner.STARTED:
            self._start("STOPPED")

    def _update(self, arn: str, wait: bool) -> None:
        self._library.call("update_cluster", **self._arguments)
        if not wait:
            return
        status = self._stack.wait("update", arn, self._params["wait_timeout"])
        if status not in ENDS["update"].done:
            raise self._stack.failure(
                "the update of the cluster", status, arn, advice="; the cluster has its former configuration"
            )

    def _start(self, status: str) -> None:
        if self._params["wait"]:
            self._fleet.bring("running", status, self._params["wait_timeout"])
        else:
            self._fleet.request("running", status)

    def _start_after(self, error: TrainiumError) -> NoReturn:
        """Start the fleet again, if it ran, and let the error go on its way with a word about that."""
        if self._fleet_status not in planner.STARTED:
            raise error
        try:
            self._start(self._fleet.look()["status"])
        except TrainiumError as second:
            raise TrainiumError(
                f"{error}; the compute fleet was stopped for it and could not be started again: {second}; "
                "start it with pcluster_compute_fleet",
                **error.details,
            ) from error
        raise TrainiumError(f"{error}; the compute fleet was started again", **error.details) from error
