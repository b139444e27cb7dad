# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Buying a Capacity Block once: look, choose, look again, buy. What is not certain is never asked for twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._capacity import block, calls_market, run_turn
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run import find
from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2

Result = dict[str, Any]


class CapacityBlock:
    """One Capacity Block; ``maker`` is a client of EC2 that does not repeat a call by itself."""

    def __init__(
        self,
        client: ec2.Client,
        maker: ec2.Client,
        params: Mapping[str, Any],
        check_mode: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._client, self._maker, self._check_mode, self._warn = client, maker, check_mode, warn
        self._params = given(params, planner.TEXTS)

    def run(self) -> Result:
        """Have the block; returns the module's result. Raises TrainiumError."""
        params = self._params
        block.check_arguments(params, datetime.now(timezone.utc))
        there = self._bought()
        if there:
            return self._result(there, there, {}, False)
        request = block.offers.offerings_request(block.wanted_of(params))
        offered = calls_market.block_offerings(self._client, **request)
        option = block.choose(offered, params, self._client.meta.region_name)
        if params["accept_price_up_to"] is None:
            if not self._check_mode:
                raise TrainiumError(block.not_accepted(option), offering=option)
            self._warn(f"Without check mode {block.not_accepted(option)}.")
        if self._check_mode:
            return self._result({}, block.predicted(option, params), option, True)
        with run_turn.alone("capacity-block", self._client.meta.region_name, params["cluster_name"], params["name"]):
            # The purchase of a run that was killed a moment ago may not be visible yet, and no token would tell.
            there = self._seen(params["purchase_pause"])
            if there:
                return self._result(there, there, {}, False)
            return self._result({}, self._buy(option), option, True)

    def _bought(self) -> planner.Reservation | None:
        there = block.bought(find(self._client, self._params), self._params)
        if there and there["state"] not in planner.LIVING:
            self._warn(
                f"{there['capacity_reservation_id']}, which ends at {there['end_date']}, is {there['state']}; nothing "
                "is bought again."
            )
        return there

    def _seen(self, seconds: float) -> planner.Reservation | None:
        for _passed in looks(seconds):
            there = self._bought()
            if there:
                return there
        return None

    def _buy(self, option: block.Option) -> planner.Reservation:
        try:
            made = calls_market.purchase(self._maker, block.purchase(option, self._params))
            problem = AwsCallError("AWS's answer to the purchase names no reservation")
        except AwsCallError as error:
            if calls_market.was_refused(error):
                raise TrainiumError(f"{error}; nothing was bought", **error.details) from error
            made, problem = {}, error
        if made.get("CapacityReservationId"):
            return planner.reservation_of(made)
        # EC2 may have sold it, and only its answer was lost.
        return self._after(problem, option)

    def _after(self, problem: AwsCallError, option: block.Option) -> planner.Reservation:
        """The block of a purchase that ended nobody knows how. Raises where it does not show."""
        why = f"no reservation shows the tags of {self._params['name']}"
        try:
            there = self._seen(self._params["wait_timeout"])
        except TrainiumError as error:
            there, why = None, str(error)
        if there:
            return there
        raise TrainiumError(
            f"{problem}; whether the Capacity Block {block.said(option)} was bought is not known, since {why}: look at "
            "the account's Capacity Reservations before you run this again",
            **problem.details,
        )

    def _result(
        self, before: planner.Reservation, after: planner.Reservation, option: block.Option, changed: bool
    ) -> Result:
        shown_before = {**before, "resource_groups": []} if before else {}
        return planner.result(changed, shown_before, {**after, "resource_groups": []}, offering=option)
