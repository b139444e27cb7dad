# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which Capacity Block to buy, and whether it was bought already. Pure.

A purchase can neither be cancelled nor changed, and PurchaseCapacityBlock takes no client token. So a block is known by
its tags, which it gets with the purchase, and by the window of time that was asked for: one that lies in it is the one
that was wanted, however it ended. A window must have an end, so that a run that is repeated after it buys nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._capacity import offers
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.plan import (
    BLOCK,
    LIVING,
    Params,
    Reservation,
    instant,
    reservation_of,
    wanted_tags,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import check_shared
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list

Option = dict[str, Any]

# States of a block that nobody has: the payment failed, or EC2 took it back. One that is unavailable was paid for.
_NOT_BOUGHT = ("payment-failed", "failed", "cancelled", "unsupported")
_DAY = 24
# Options of an On-Demand Capacity Reservation alone, and their defaults.
_NOT_OF_BLOCKS: dict[str, Any] = {
    "availability_zone_id": None,
    "end_date": None,
    "resource_group": None,
    "tenancy": "default",
    "ebs_optimized": False,
    "match_criteria": "targeted",
}


def wanted_of(params: Params) -> offers.Wanted:
    return offers.wanted_of(params, params["count"], ["capacity-block"])


def check_arguments(params: Params, now: datetime) -> None:
    """Everything that can be seen without AWS. Raises TrainiumError with one sentence."""
    check_shared(params, ("name", "cluster_name"), "EC2")
    if params["purchase_pause"] < 0:
        raise TrainiumError(f"purchase_pause is {params['purchase_pause']}; give a number of seconds, 0 or more")
    for option in ("name", "instance_type"):
        if not params.get(option):
            raise TrainiumError(f"{option} is missing; a Capacity Block needs it")
    if not 1 <= params["count"] <= offers.MOST_IN_BLOCK:
        raise TrainiumError(f"count is {params['count']}; a Capacity Block has 1 to {offers.MOST_IN_BLOCK} instances")
    for option, default in _NOT_OF_BLOCKS.items():
        if (params.get(option) or None) != (default or None):
            raise TrainiumError(f"{option} is not for a Capacity Block; leave it out, or block_hours")
    if not params["ends_before"]:
        raise TrainiumError(
            "ends_before is missing; give the end of the time in which the Capacity Block may be, since a run that is "
            "repeated after it must not buy another"
        )
    accepted = params["accept_price_up_to"]
    if accepted is not None and not 0 <= accepted < float("inf"):
        raise TrainiumError(f"accept_price_up_to is {accepted}; give US dollars for the whole of the block")
    offers.check_arguments(wanted_of(params), [], now)


def _is_in_window(item: Reservation, params: Params) -> bool:
    return item["starts_at"] >= instant(params["starts_after"]) and item["end_date"] <= instant(params["ends_before"])


def bought(found: Iterable[Reservation], params: Params) -> Reservation | None:
    """The block of the name that was bought for the window; None where none was.

    Raises TrainiumError where it is another one than is wanted, or where it is not clear which one is meant.
    """
    there = [item for item in found if item["state"] not in _NOT_BOUGHT]
    for item in there:
        if item["state"] in LIVING and not (item["capacity_block"] and _is_in_window(item, params)):
            what = "is a Capacity Block" if item["capacity_block"] else "is no Capacity Block"
            when = f" from {item['starts_at']} to {item['end_date']}" if item["capacity_block"] else ""
            raise TrainiumError(
                f"{item['capacity_reservation_id']} of this name {what}{when}, which is not what starts_after and "
                "ends_before ask for; choose another name, and nothing was bought"
            )
    mine = [item for item in there if item["capacity_block"] and _is_in_window(item, params)]
    if len(mine) > 1:
        ids = ", ".join(sorted(item["capacity_reservation_id"] for item in mine))
        raise TrainiumError(f"{len(mine)} Capacity Blocks have this name in this time: {ids}; narrow it to one of them")
    for item in mine:
        for option in ("instance_type", "count", "platform", "availability_zone"):
            if params.get(option) and params[option] != item[option]:
                raise TrainiumError(
                    f"{item['capacity_reservation_id']} was bought with {option} {item[option]}, not {params[option]}, "
                    "which EC2 cannot change; choose another name to buy another"
                )
    return mine[0] if mine else None


def _is_wanted(item: Option, params: Params) -> bool:
    """Whether an offering says itself that it is what was asked for; what is paid for is never guessed."""
    start, end = item.get("StartDate"), item.get("EndDate")
    # One that begins soon is some hours shorter or longer, since all end at 11:30 UTC.
    more = (end - start).total_seconds() / 3600 - params["block_hours"] if start and end else _DAY
    return (
        abs(more) < _DAY
        and item.get("InstanceType") == params["instance_type"]
        and item.get("InstanceCount") == params["count"]
        and item.get("Tenancy", "default") == "default"
    )


def choose(offerings: Iterable[Option], params: Params, region: str) -> Option:
    """The offering to buy: the lowest price for an hour, and of these the soonest.

    Where a price is accepted, of those that do not cost more. Raises TrainiumError where there is none.
    """
    found = offers.only_zones(region, ())._replace(blocks=[item for item in offerings if _is_wanted(item, params)])
    zone, accepted = params.get("availability_zone"), params["accept_price_up_to"]
    fitting = [
        option
        for option in offers.options([found], wanted_of(params))
        if option["price_total"] is not None
        and option["starts_at"] >= instant(params["starts_after"])
        and option["ends_at"] <= instant(params["ends_before"])
        and zone in (None, option["availability_zone"])
    ]
    what = f"{params['count']} x {params['instance_type']} for {params['block_hours']} hours"
    if not fitting:
        end = instant(params["ends_before"])
        raise TrainiumError(
            f"EC2 offers no Capacity Block of {what} in {zone or region} that ends by {end}; "
            "ask for another time, fewer instances or fewer hours, or look in other regions with neuron_capacity_info"
        )
    cheapest = min(fitting, key=lambda option: option["price_total"])
    payable = [option for option in fitting if accepted is None or option["price_total"] <= accepted]
    if not payable:
        raise TrainiumError(
            f"the cheapest Capacity Block of {what} costs {cheapest['price_total']:.2f} USD in advance, more than "
            f"accept_price_up_to={accepted:g} ({said(cheapest)}); nothing was bought"
        )
    return min(payable, key=lambda option: (option["price_per_hour"], option["starts_at"], option["id"]))


def said(option: Option) -> str:
    return f"{option['id']} in {option['availability_zone']} from {option['starts_at']} to {option['ends_at']}"


def not_accepted(option: Option) -> str:
    """Why nothing is bought where no price was accepted."""
    price = f"{option['price_total']:.2f}"
    return (
        f"the Capacity Block {said(option)} costs {price} USD in advance and can never be cancelled; nothing was "
        f"bought, set accept_price_up_to to {price} or more to buy it"
    )


def purchase(option: Option, params: Params) -> dict[str, Any]:
    """The request of PurchaseCapacityBlock; the tags come with the purchase, so that a run that is killed leaves none
    without."""
    return {
        "CapacityBlockOfferingId": option["id"],
        "InstancePlatform": params["platform"],
        "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": tag_list(wanted_tags(params))}],
    }


def predicted(option: Option, params: Params) -> Reservation:
    """The block as it will be; it has no id yet."""
    empty = reservation_of({"CapacityReservationId": "", "State": "scheduled", "ReservationType": BLOCK})
    return {
        **empty,
        "instance_type": params["instance_type"],
        "availability_zone": option["availability_zone"],
        "count": option["count"],
        "platform": params["platform"],
        "match_criteria": "targeted",
        "end_date": option["ends_at"],
        "starts_at": option["starts_at"],
        "tags": wanted_tags(params),
    }
