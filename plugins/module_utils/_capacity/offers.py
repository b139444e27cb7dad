# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""In which ways nodes can be had: on demand, on the spot market, in reservations, in Capacity Blocks. Pure.

``Found`` is what a region said. An *option* is a flat dict: ``market``, ``region``, ``availability_zone``, ``count``,
``starts_at`` and ``ends_at`` ('' for now and never), ``price_per_hour`` and ``price_total`` in US dollars for all nodes
(None where that is not known, or where there is no such price), ``placement_score`` (None but for spot), ``id`` (of a
reservation or an offering), and ``obstacle``, part of a sentence that says why it cannot be had as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._capacity.plan import (
    date_given,
    instances_end,
    instant,
    promised,
)
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.prices import dollars
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import quotas

Item = dict[str, Any]

MARKETS = ("reservation", "spot", "on-demand", "capacity-block")
# Codes with which AWS answers in a region that the account has not enabled.
NOT_ENABLED = ("AuthFailure", "OptInRequired", "UnrecognizedClientException", "InvalidClientTokenId")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d+")
# "1-day increments up to 14 days, and in 7-day increments up to 182 days" (API reference).
_MOST_DAYS, _MOST_WEEKS = 14, 26
MOST_IN_BLOCK = 64
_SEGMENTS = "CapacityBlockOfferingSegments"


class Wanted(NamedTuple):
    """What is asked for; ``block_hours``, ``starts_after`` and ``ends_before`` are for Capacity Blocks."""

    kind: str
    number: int
    markets: frozenset[str]
    block_hours: int
    starts_after: str
    ends_before: str


class Found(NamedTuple):
    """What a region said. ``spot`` has the price of one node by zone, ``scores`` by zone, ``usage`` by market."""

    region: str
    zones: Sequence[str]
    on_demand: Decimal | None
    usage: Mapping[str, quotas.Usage]
    spot: Mapping[str, Decimal]
    scores: Mapping[str, int]
    reservations: Iterable[Item]
    blocks: Iterable[Item]


def only_zones(region: str, zones: Sequence[str]) -> Found:
    """A region that nothing more was asked of."""
    return Found(region, zones, None, {}, {}, {}, (), ())


def wanted_of(params: Mapping[str, Any], number: int, markets: Iterable[str]) -> Wanted:
    """What a module's options ask for."""
    span = params["block_hours"], params["starts_after"], params["ends_before"]
    return Wanted(params["instance_type"], number, frozenset(markets), *span)


def check_arguments(wanted: Wanted, regions: Iterable[str], now: datetime) -> None:
    """Everything that can be seen without AWS. Raises TrainiumError with one sentence."""
    for region in regions:
        if not _REGION.fullmatch(region):
            raise TrainiumError(f"regions has {region!r}, which is no region such as us-west-2")
    days, rest = divmod(wanted.block_hours, 24)
    weeks = days % 7 == 0 and days // 7 <= _MOST_WEEKS
    if "capacity-block" in wanted.markets and wanted.number > MOST_IN_BLOCK:
        raise TrainiumError(
            f"count is {wanted.number}, and a Capacity Block has at most {MOST_IN_BLOCK} instances; ask for fewer, or "
            "leave capacity-block out of markets"
        )
    if rest or days < 1 or not (days <= _MOST_DAYS or weeks):
        raise TrainiumError(
            f"block_hours is {wanted.block_hours}; Capacity Blocks last whole days up to {_MOST_DAYS} days and whole "
            f"weeks up to {_MOST_WEEKS} weeks, so give a multiple of 24, such as 48"
        )
    start, end = date_given("starts_after", wanted.starts_after), date_given("ends_before", wanted.ends_before)
    if end and end <= (start or instant(now)):
        raise TrainiumError(f"ends_before {end} is not later than {start or 'now'}; give a later date")


def offerings_request(wanted: Wanted) -> Item:
    """The request of DescribeCapacityBlockOfferings."""
    dates = {"StartDateRange": instant(wanted.starts_after), "EndDateRange": instant(wanted.ends_before)}
    return {
        "InstanceType": wanted.kind,
        "InstanceCount": wanted.number,
        "CapacityDurationHours": wanted.block_hours,
        **{name: date for name, date in dates.items() if date},
    }


def current_prices(history: Iterable[Item]) -> dict[str, Decimal]:
    """The last price of each zone in a spot price history."""
    last: dict[str, tuple[datetime, Decimal]] = {}
    for item in history:
        price, zone, when = dollars(item.get("SpotPrice")), item.get("AvailabilityZone"), item.get("Timestamp")
        if price is not None and zone and when and (zone not in last or last[zone][0] < when):
            last[zone] = (when, price)
    return {zone: price for zone, (_when, price) in last.items()}


def scores_of(scores: Iterable[Item], names: Mapping[str, str]) -> dict[str, int]:
    """Placement scores by the names of the zones; ``names`` has them by their ids."""
    found = ((names.get(item.get("AvailabilityZoneId", "")), item.get("Score")) for item in scores)
    return {name: int(score) for name, score in found if name and score}


def left_out(region: str, code: str, reason: str, sentence: str) -> str:
    """Why a region is not in the answer."""
    if code in NOT_ENABLED:
        return (
            f"The region {region} was left out: the account may not have it enabled, or the credentials are wrong "
            f"there; AWS says {reason} ({code})."
        )
    return f"The region {region} was left out: {sentence}."


def options(found: Iterable[Found], wanted: Wanted, now: datetime | None = None) -> list[Item]:
    """Every way to get the nodes: first what can be had, the soonest first, of these the cheapest first.

    What nobody tells the price of comes after what has one, and of two at one price the one with the higher score
    first. What has ended by ``now``, as EC2 ends instances in the last half hour of a block, has an obstacle.
    """
    every = [option for one in found for option in _of_region(one, wanted)]
    for option in every:
        if now and not option["obstacle"] and option["ends_at"] and option["ends_at"] <= instant(now):
            option["obstacle"] = f"{option['id']} takes no more instances since {option['ends_at']}"
    return sorted(every, key=_order)


def _order(option: Item) -> tuple[Any, ...]:
    price = option["price_per_hour"]
    return (
        bool(option["obstacle"]),
        option["starts_at"],
        price is None,
        price or 0,
        -(option["placement_score"] or 0),
        MARKETS.index(option["market"]),
        option["region"],
        option["availability_zone"],
        option["ends_at"],
        option["id"],
        option["obstacle"],
    )


def _of_region(found: Found, wanted: Wanted) -> Iterable[Item]:
    if "reservation" in wanted.markets:
        yield from (_reserved(found, item, wanted) for item in found.reservations if _is_usable(item))
    if "spot" in wanted.markets:
        for zone, price in sorted(found.spot.items()):
            score, lack = found.scores.get(zone), _lack(found, wanted, "spot")
            yield _option(found, wanted, "spot", zone, price, placement_score=score, obstacle=lack)
    if "on-demand" in wanted.markets:
        for zone in found.zones:
            lack = _lack(found, wanted, "on-demand")
            yield _option(found, wanted, "on-demand", zone, found.on_demand, obstacle=lack)
    if "capacity-block" in wanted.markets:
        yield from (_block(found, item, wanted) for item in found.blocks if _is_whole(item))


def _lack(found: Found, wanted: Wanted, market: str) -> str:
    """Why the quota has no room; '' where it has, or where it is not known."""
    usage = found.usage.get(market)
    if usage is None:
        return ""
    return quotas.problem(usage.quota, usage.used, wanted.number, wanted.kind, usage.vcpus, found.region)


def _option(found: Found, wanted: Wanted, market: str, zone: str, price: Decimal | None, **more: Any) -> Item:
    """``price`` is that of one node for an hour."""
    return {
        "market": market,
        "region": found.region,
        "availability_zone": zone,
        "count": wanted.number,
        "starts_at": "",
        "ends_at": "",
        "price_per_hour": None if price is None else _number(price * wanted.number),
        "price_total": None,
        "placement_score": None,
        "id": "",
        "obstacle": "",
        **more,
    }


def _number(amount: Decimal) -> float:
    return float(round(amount, 4))


def _is_usable(item: Item) -> bool:
    """Whether nodes, which have Linux and no hardware of their own, can be launched into it, now or when it begins."""
    return (
        bool(item.get("CapacityReservationId"))
        and item.get("InstancePlatform", "Linux/UNIX") == "Linux/UNIX"
        and item.get("Tenancy", "default") == "default"
        and item.get("State") in ("active", "scheduled")
    )


def _is_whole(item: Item) -> bool:
    """Whether an offering says what it is and when; its fields are optional. One of several parts may be in several
    zones, and what it says of itself then is not documented."""
    dates = [item.get("StartDate"), item.get("EndDate")]
    return bool(item.get("CapacityBlockOfferingId")) and all(dates) and len(item.get(_SEGMENTS) or ()) <= 1


def _reserved(found: Found, item: Item, wanted: Wanted) -> Item:
    """A reservation of the account's own, which is paid for already."""
    active = item["State"] == "active"
    free = int(item.get("AvailableInstanceCount") or 0) if active else promised(item)
    place = item.get("AvailabilityZone") or ""
    lack = "" if free >= wanted.number else f"{item['CapacityReservationId']} has room for {free} of {wanted.number}"
    if not active and not item.get("StartDate"):
        lack = f"nobody says when {item['CapacityReservationId']} begins"
    return _option(
        found,
        wanted,
        "reservation",
        place,
        Decimal(0),
        starts_at="" if active else instant(item.get("StartDate")),
        ends_at=instances_end(item) or (instant(item.get("EndDate")) if item.get("EndDateType") == "limited" else ""),
        id=item["CapacityReservationId"],
        obstacle=lack,
    )


def _block(found: Found, item: Item, wanted: Wanted) -> Item:
    """An offering: all of it is paid in advance."""
    start, end = item["StartDate"].astimezone(timezone.utc), item["EndDate"].astimezone(timezone.utc)
    hours = Decimal(int((end - start).total_seconds())) / 3600
    fee = dollars(item.get("UpfrontFee")) if item.get("CurrencyCode") == "USD" else None
    by_hour = None if fee is None or hours <= 0 else fee / hours
    return {
        **_option(found, wanted, "capacity-block", item.get("AvailabilityZone") or "", None),
        "count": int(item.get("InstanceCount") or wanted.number),
        "starts_at": instant(start),
        "ends_at": instant(end),
        "price_per_hour": None if by_hour is None else _number(by_hour),
        "price_total": None if fee is None else float(fee),
        "id": item["CapacityBlockOfferingId"],
    }


def summary(found: Found) -> Item:
    """What the module returns of a region, beside the options."""
    return {
        "region": found.region,
        "zones": list(found.zones),
        "price_per_hour": None if found.on_demand is None else _number(found.on_demand),
        "quotas": [
            {"market": market, "name": usage.quota.name, "vcpus": usage.quota.value, "used": usage.used}
            for market, usage in sorted(found.usage.items())
        ],
    }
