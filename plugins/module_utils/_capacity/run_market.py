# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking several regions at the same time in which ways nodes can be had; what one may not ask becomes a note."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, Optional, TypeVar

from ansible_collections.trainium.cluster.plugins.module_utils._capacity import calls, calls_market, offers, prices
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import (
    AwsCallError,
    TrainiumError,
    unforeseen,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import quotas

Answer = TypeVar("Answer")
Item = dict[str, Any]
# (type, market) -> usage of its quota.
Usage = Callable[[str, str], Optional[quotas.Usage]]

# Regions that are asked at the same time.
THREADS = 4


class Region(NamedTuple):
    """Who answers for a region: EC2, its quotas, and the price list, None where there is none."""

    name: str
    client: ec2.Client
    usage: Usage
    pricing: ec2.Client | None


class Market:
    """The search of one run; ``notes`` are sentences about what could not be asked."""

    def __init__(self, wanted: offers.Wanted) -> None:
        self._wanted = wanted
        self.notes: list[str] = []

    def find(self, regions: Sequence[Region]) -> list[offers.Found]:
        """What the regions say, in their order; those that say nothing are left out.

        Raises TrainiumError, with the reason of each, where none says anything.
        """
        with ThreadPoolExecutor(max_workers=THREADS) as pool:
            answers = list(pool.map(self._region, regions))
        found = [answer for answer in answers if isinstance(answer, offers.Found)]
        left_out = [
            offers.left_out(region.name, answer.code, answer.reason, str(answer))
            for region, answer in zip(regions, answers)
            if isinstance(answer, AwsCallError)
        ]
        if left_out and not found:
            raise TrainiumError(f"no region answered: {' '.join(left_out)}".rstrip("."))
        self.notes += left_out
        self.notes[:] = sorted(set(self.notes))
        return found

    def _region(self, region: Region) -> offers.Found | AwsCallError:
        try:
            zones = ec2.zones_offering(region.client, self._wanted.kind)
        except AwsCallError as error:
            return error
        # Where the type is not offered, EC2 does not even know it.
        return self._ask(region, zones) if zones else offers.only_zones(region.name, [])

    def _ask(self, region: Region, zones: list[str]) -> offers.Found:
        wanted, client = self._wanted, region.client
        markets = wanted.markets

        def tried(ask: Callable[[], Answer], otherwise: Answer, market: str) -> Answer:
            """An answer, or a note in its place."""
            if market not in markets:
                return otherwise
            try:
                return ask()
            except AwsCallError as error:
                self.notes.append(f"{region.name} did not tell all: {error}.")
            except Exception as error:  # What one answer lacks should not hide the others.
                self.notes.append(f"{region.name} did not tell all: {unforeseen(error)}.")
            return otherwise

        # The prices of Linux that hold now, and what changes meanwhile.
        prices_now = {
            "InstanceTypes": [wanted.kind],
            "ProductDescriptions": ["Linux/UNIX"],
            "StartTime": datetime.now(timezone.utc),
        }
        spot: list[Item] = tried(lambda: calls_market.spot_prices(client, **prices_now), [], "spot")
        usage = {
            market: tried(partial(region.usage, wanted.kind, market), None, market) for market in ("on-demand", "spot")
        }
        reserved = {"instance-type": wanted.kind, "state": ["active", "scheduled"]}
        return offers.Found(
            region.name,
            zones,
            tried(lambda: on_demand(region.pricing, wanted.kind, region.name), None, "on-demand"),
            {market: found for market, found in usage.items() if found is not None},
            offers.current_prices(spot),
            tried(lambda: _scores(client, wanted), {}, "spot") if spot else {},
            tried(lambda: calls.describe(client, reserved), [], "reservation"),
            tried(partial(_blocks, client, wanted), [], "capacity-block"),
        )


def _blocks(client: ec2.Client, wanted: offers.Wanted) -> list[Item]:
    return calls_market.block_offerings(client, **offers.offerings_request(wanted))


def _scores(client: ec2.Client, wanted: offers.Wanted) -> dict[str, int]:
    # One call could name ten regions, but answers with the ten best zones of all of them.
    scores = calls_market.placement_scores(
        client,
        InstanceTypes=[wanted.kind],
        TargetCapacity=wanted.number,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=[client.meta.region_name],
    )
    return offers.scores_of(scores, calls_market.zone_names(client)) if scores else {}


def on_demand(pricing: ec2.Client | None, kind: str, region: str) -> Decimal | None:
    """What a node costs an hour; None where the price list does not say."""
    if pricing is None:
        return None
    return prices.hourly(
        calls_market.products(pricing, ServiceCode=prices.SERVICE, Filters=prices.of_instance(kind, region))
    )


class Cost(NamedTuple):
    """``lines`` of what is billed by the hour; ``trouble`` is why some have no price, '' where AWS answered."""

    lines: list[prices.Line]
    trouble: str


def cost(
    pricing: ec2.Client | None,
    region: str,
    nodes: Iterable[tuple[str, str, int]],
    gateways: int,
    own: Mapping[str, Decimal],
) -> Cost:
    """A line for each of ``nodes`` (what to call it, type, count), by ``own`` prices where they name the type; and one
    for NAT gateways. What has no type is not asked for.

    Whoever must not ask for one price must not ask for another, so that a failure is the last question.
    """
    troubles: list[str] = []
    known: dict[str, Decimal | None] = {**own, "": None}

    def price_of(kind: str, ask: Callable[[], Decimal | None]) -> Decimal | None:
        if kind not in known and not troubles:
            try:
                known[kind] = ask()
            except AwsCallError as error:
                troubles.append(str(error))
        return known.get(kind)

    lines = []
    for what, kind, count in nodes:
        price = price_of(kind, partial(on_demand, pricing, kind, region))
        lines.append(prices.Line(what, count, None if price is None else price * count, kind in own))
    if gateways:
        price = price_of("NAT gateway", partial(_gateway, pricing, region))
        what = "a NAT gateway" if gateways == 1 else f"{gateways} NAT gateways"
        lines.append(prices.Line(what, gateways, None if price is None else price * gateways))
    return Cost(lines, "".join(troubles))


def _gateway(pricing: ec2.Client | None, region: str) -> Decimal | None:
    if pricing is None:
        return None
    found = calls_market.products(pricing, ServiceCode=prices.SERVICE, Filters=prices.of_gateway(region))
    return prices.hourly(found, prices.GATEWAY_HOURS)
