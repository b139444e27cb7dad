"""Offerings of Capacity Blocks, and their purchase; stock moto has none.

After "Find and purchase Capacity Blocks" and the API reference of DescribeCapacityBlockOfferings: up to 64 instances,
whole days up to 14 and whole weeks up to 182 days, all end at 11:30 UTC, so that one that begins soon is a little
shorter; up to six are shown, within eight weeks. Which types are sold so in which region is made up here: those below,
wherever they are offered. A purchase takes no client token, so that the same offering can be bought twice; before it
begins "the available capacity appears as zero" and a tag says how many it will have ("View Capacity Blocks").
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from moto.ec2.responses import EC2Response

from sandbox.emulator.errors import refuse
from sandbox.emulator.launch import reservations
from sandbox.emulator.launch.checks import offering_zones
from sandbox.emulator.market import prices
from sandbox.emulator.market.spot import date_of
from sandbox.emulator.records import new_tags, page, store
from sandbox.emulator.state import CAPACITY

Item = dict[str, Any]

SOLD = ("trn1.32xlarge", "trn2.48xlarge", "p4d.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge")
# The store of those that were shown, which can be bought.
OFFERINGS = "capacity_block_offerings"
QUANTITY = "aws:ec2capacityreservation:incrementalRequestedQuantity"
MOST = 64
SHOWN = 6
PAGE = 2
AHEAD = timedelta(weeks=8)
SOON = timedelta(minutes=30)
# US dollars an hour for one instance, of a type whose on-demand price nobody knows.
UNKNOWN = Decimal(40)
SHARE = Decimal("0.45")


def _is_duration(hours: int) -> bool:
    days, rest = divmod(hours, 24)
    return not rest and (1 <= days <= 14 or (days % 7 == 0 and days <= 182))


def _check(self: EC2Response) -> tuple[str, int, int]:
    """(type, count, hours) of a request that EC2 takes."""
    get = self._get_param
    kind, count, hours = get("InstanceType"), int(get("InstanceCount") or 0), int(get("CapacityDurationHours") or 0)
    if not kind or not hours:
        refuse("MissingParameter", "InstanceType and CapacityDurationHours must be given.")
    if kind not in SOLD:
        refuse("InvalidParameterValue", f"The instance type '{kind}' is not supported for Capacity Blocks.")
    if not 1 <= count <= MOST:
        refuse("InvalidParameterValue", f"The instance count must be 1 to {MOST}.")
    if not _is_duration(hours):
        refuse("InvalidParameterValue", f"The capacity duration of {hours} hours is invalid.")
    if get("MaxResults") and not 1 <= int(get("MaxResults")) <= 1000:
        refuse("InvalidParameterValue", "MaxResults must be 1 to 1000.")
    return kind, count, hours


def offerings(region: str, kind: str, count: int, hours: int, now: datetime) -> list[Item]:
    """What is sold at the moment; the same within a minute."""
    found = []
    end_of_day = now.replace(hour=11, minute=30, second=0, microsecond=0)
    for number, zone in enumerate(offering_zones(region, kind)):
        if CAPACITY.get((kind, zone), count) < count:
            continue
        # One that begins soon and ends with the last 11:30 that is not too late, and some of whole days.
        soon = now.replace(second=0, microsecond=0) + SOON
        starts = [soon] + [end_of_day + timedelta(days=days + number) for days in (2, 5, 12, 40)]
        for start in starts:
            end = start + timedelta(hours=hours)
            if start == soon:
                end = end.replace(hour=11, minute=30) - timedelta(days=(end.hour, end.minute) < (11, 30))
            if end <= start:
                continue
            length = int((end - start).total_seconds()) // 60
            rate = (prices.rate(kind, region) or UNKNOWN) * SHARE
            # Later is cheaper, by a hundredth a week.
            fee = rate * count * length / 60 * (1 - Decimal((start - now).days // 7) / 100)
            key = "/".join([region, zone, kind, str(count), str(start), str(end)])
            found.append(
                {
                    "CapacityBlockOfferingId": f"cb-{hashlib.sha256(key.encode()).hexdigest()[:17]}",
                    "InstanceType": kind,
                    "AvailabilityZone": zone,
                    "InstanceCount": count,
                    "StartDate": start,
                    "EndDate": end,
                    "CapacityBlockDurationHours": length // 60,
                    "CapacityBlockDurationMinutes": length % 60,
                    "UpfrontFee": f"{fee:.2f}",
                    "CurrencyCode": "USD",
                    "Tenancy": "default",
                }
            )
    return found


def describe_capacity_block_offerings(self: EC2Response) -> Any:
    self.error_on_dryrun()
    kind, count, hours = _check(self)
    now = datetime.now(timezone.utc)
    first, last = date_of(self._get_param("StartDateRange")) or now, date_of(self._get_param("EndDateRange"))
    if last and last <= first:
        refuse("InvalidParameterValue", "The end of the range is not later than its start.")
    shown = [
        one
        for one in offerings(self.region, kind, count, hours, now)
        if first <= one["StartDate"] <= now + AHEAD and (last is None or one["EndDate"] <= last)
    ][:SHOWN]
    store(self.ec2_backend, OFFERINGS).update({one["CapacityBlockOfferingId"]: one for one in shown})
    return page(self, "CapacityBlockOfferings", shown, PAGE)


def purchase_capacity_block(self: EC2Response) -> Any:
    self.error_on_dryrun()
    backend, now = self.ec2_backend, datetime.now(timezone.utc)
    offering = store(backend, OFFERINGS).get(str(self._get_param("CapacityBlockOfferingId")))
    if offering is None or offering["StartDate"] <= now:
        refuse("InvalidParameterValue", "The Capacity Block offering does not exist or is no longer available.")
    if not self._get_param("InstancePlatform"):
        refuse("MissingParameter", "InstancePlatform must be given.")
    kind, zone, count = offering["InstanceType"], offering["AvailabilityZone"], offering["InstanceCount"]
    if CAPACITY.get((kind, zone), count) < count:
        refuse("InvalidParameterValue", "The Capacity Block offering is no longer available.")
    identity = reservations.add(
        self,
        kind,
        zone,
        InstancePlatform=self._get_param("InstancePlatform"),
        State="scheduled",
        ReservationType="capacity-block",
        InstanceMatchCriteria="targeted",
        StartDate=offering["StartDate"],
        EndDate=offering["EndDate"],
        EndDateType="limited",
    )
    if (kind, zone) in CAPACITY:
        CAPACITY[(kind, zone)] -= count
    backend.create_tags([identity], new_tags(self, "capacity-reservation"))
    backend.tags[identity][QUANTITY] = str(count)
    return reservations.shown(self, identity)


def install() -> None:
    for action in (describe_capacity_block_offerings, purchase_capacity_block):
        setattr(EC2Response, action.__name__, action)
