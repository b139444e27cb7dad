"""Spot prices and placement scores. Stock moto has one price for everything, of 2006, and no scores.

After the API reference: a history is of several products and zones and reaches back; with a start time only what
changed since, and the price that held then. Scores are of zone ids; for fewer than three types they are always low
("Spot placement score", Limitations).
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.responses import EC2Response

from sandbox.emulator.errors import refuse
from sandbox.emulator.launch.checks import offering_zones
from sandbox.emulator.market import prices
from sandbox.emulator.records import page

Item = dict[str, Any]

# Product -> how many times the price of Linux.
PRODUCTS = {"Linux/UNIX": 1, "Red Hat Enterprise Linux": 2, "SUSE Linux": 2, "Windows": 3}
VPC = " (Amazon VPC)"
# How long ago a price changed, in hours -> its share of the on-demand price.
CHANGES = ((1, Decimal("0.32")), (30, Decimal("0.5")), (90, Decimal("0.25")))
PAGE = 3
UNITS = ("units", "vcpu", "memory-mib")
# The highest score for one or two types.
LOW = 3


def date_of(value: Any) -> datetime | None:
    """A date of a request, in UTC."""
    if not value:
        return None
    date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)


def _check_types(kinds: list[str]) -> None:
    for kind in kinds:
        if kind not in INSTANCE_TYPES:
            refuse("InvalidParameterValue", f"Invalid instance type '{kind}'.")


def describe_spot_price_history(self: EC2Response) -> Any:
    self.error_on_dryrun()
    get, now = self._get_param, datetime.now(timezone.utc)
    kinds, products = get("InstanceTypes", []), get("ProductDescriptions", [])
    _check_types(kinds)
    for product in products:
        if product.removesuffix(VPC) not in PRODUCTS:
            refuse("InvalidParameterValue", f"Invalid product description '{product}'.")
    start, end = date_of(get("StartTime")), date_of(get("EndTime")) or now
    if start and start > end:
        refuse("InvalidParameterCombination", "The start time is later than the end time.")
    found = []
    for kind in kinds or prices.ON_DEMAND:
        price = prices.rate(kind, self.region)
        for number, zone in enumerate(offering_zones(self.region, kind) if price else ()):
            for product in [one.removesuffix(VPC) for one in products] or PRODUCTS:
                for hours, share in CHANGES:
                    # The same for all pages of a listing.
                    changed = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours)
                    if changed > end:
                        continue
                    # A zone that comes later costs a hundredth of the on-demand price more.
                    amount = (price or 0) * (share + Decimal(number) / 100) * PRODUCTS[product]
                    found.append(
                        {
                            "InstanceType": kind,
                            "AvailabilityZone": zone,
                            "ProductDescription": product,
                            "SpotPrice": f"{amount:.6f}",
                            "Timestamp": changed,
                        }
                    )
                    if start and changed <= start:
                        break
    return page(self, "SpotPriceHistory", sorted(found, key=lambda one: one["Timestamp"], reverse=True), PAGE)


def get_spot_placement_scores(self: EC2Response) -> Any:
    self.error_on_dryrun()
    get = self._get_param
    kinds, regions = get("InstanceTypes", []), get("RegionNames", []) or [self.region]
    if not kinds:
        refuse("MissingParameter", "InstanceTypes or InstanceRequirementsWithMetadata must be given.")
    _check_types(kinds)
    if int(get("TargetCapacity") or 0) < 1 or get("TargetCapacityUnitType", "units") not in UNITS:
        refuse("InvalidParameterValue", "The target capacity is invalid.")
    if get("MaxResults") and not 10 <= int(get("MaxResults")) <= 1000:
        refuse("InvalidParameterValue", "MaxResults must be 10 to 1000.")
    for region in regions:
        if len(regions) > 10 or region not in INSTANCE_TYPE_OFFERINGS["availability-zone"]:
            refuse("InvalidParameterValue", f"The region '{region}' is invalid.")
    scores: list[Item] = []
    by_zone = str(get("SingleAvailabilityZone", "false")).lower() == "true"
    for region in regions:
        names = offering_zones(region, kinds[0])
        if not by_zone:
            scores += [{"Region": region, "Score": min(9, LOW if len(kinds) < LOW else 9)}] if names else []
            continue
        zones = {zone.name: zone.zone_id for zone in self.ec2_backend.describe_availability_zones()}
        for number, name in enumerate(names):
            # Zones of other regions have ids of theirs, which nobody here needs.
            identity = zones.get(name, f"{region}-{name[-1]}")
            score = max(1, (LOW if len(kinds) < LOW else 9) - number)
            scores.append({"Region": region, "AvailabilityZoneId": identity, "Score": score})
    return page(self, "SpotPlacementScores", sorted(scores, key=lambda one: -int(one["Score"]))[:10], PAGE)


def install() -> None:
    for action in (describe_spot_price_history, get_spot_placement_scores):
        setattr(EC2Response, action.__name__, action)
