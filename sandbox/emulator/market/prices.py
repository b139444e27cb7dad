"""The Price List Query API: GetProducts, which moto does not have.

After the API reference (GetProducts, Filter) and what it answers: a list of texts, each the JSON of one product with
its terms, pages of at most MaxResults. It is served in three regions (botocore's endpoints of ``pricing``). A launch of
Linux has many neighbours that differ in one attribute and cost something else or nothing, and all of them are here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sandbox.emulator.launch.checks import offering_zones

Item = dict[str, Any]

REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")
# US dollars an hour. They were AWS's in the cheapest regions once; other types, such as trn2.48xlarge, have no price.
ON_DEMAND = {
    "trn1.2xlarge": Decimal("1.34375"),
    "trn1.32xlarge": Decimal("21.5"),
    "trn1n.32xlarge": Decimal("24.78"),
    "m5.xlarge": Decimal("0.192"),
    "m5.2xlarge": Decimal("0.384"),
    "t3.micro": Decimal("0.0104"),
}
GATEWAY = Decimal("0.045")
# What other regions than these ask for.
CHEAP = ("us-east-1", "us-east-2", "us-west-2")
FACTOR = Decimal("1.25")
TYPES = ("TERM_MATCH", "EQUALS", "CONTAINS", "ANY_OF", "NONE_OF")
LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "licenseModel": "No License required",
    "operation": "RunInstances",
}
# What differs from a launch of Linux -> how many times its price.
NEIGHBOURS: tuple[tuple[dict[str, str], int], ...] = (
    ({}, 1),
    ({"tenancy": "Dedicated"}, 2),
    ({"capacitystatus": "UnusedCapacityReservation"}, 1),
    ({"capacitystatus": "AllocatedCapacityReservation"}, 0),
    ({"marketoption": "CapacityBlock"}, 0),
    ({"operatingSystem": "RHEL", "operation": "RunInstances:0010"}, 3),
    ({"operatingSystem": "Windows", "operation": "RunInstances:0002"}, 4),
    ({"preInstalledSw": "SQL Std", "operation": "RunInstances:0004"}, 5),
)
FIELDS = {*LINUX, "instanceType", "regionCode", "productFamily", "usagetype", "servicecode", "location", "locationType"}
PAGE = 2  # products, where 100 are asked for as well


class RefusedError(Exception):
    """A request that the service does not take: the code, and what it says."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def rate(kind: str, region: str) -> Decimal | None:
    """What an instance costs an hour in a region that offers it; None where nobody published that."""
    if kind not in ON_DEMAND or not offering_zones(region, kind):
        return None
    return ON_DEMAND[kind] * (1 if region in CHEAP else FACTOR)


def _product(family: str, attributes: dict[str, str], unit: str, price: Decimal) -> Item:
    sku = hashlib.sha256(json.dumps(attributes, sort_keys=True).encode()).hexdigest()[:16].upper()
    term, dimension = f"{sku}.JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    amount = {
        "rateCode": dimension,
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${price} per {unit}",
        "appliesTo": [],
        "pricePerUnit": {"USD": f"{price:.10f}"},
    }
    offer = {"priceDimensions": {dimension: amount}, "sku": sku, "offerTermCode": "JRTCKXETXF", "termAttributes": {}}
    terms: Item = {"OnDemand": {term: {**offer, "effectiveDate": "2026-11-01T00:00:00Z"}}}
    if attributes.get("capacitystatus") == "Used" and attributes["marketoption"] == "OnDemand":
        year = {"rateCode": f"{sku}.4NA7Y494T4.6YS6EN2CT7", "unit": "Hrs", "pricePerUnit": {"USD": f"{price / 2:.10f}"}}
        terms["Reserved"] = {f"{sku}.4NA7Y494T4": {"priceDimensions": {year["rateCode"]: year}, "sku": sku}}
    return {
        "product": {"productFamily": family, "attributes": {"servicecode": "AmazonEC2", **attributes}, "sku": sku},
        "serviceCode": "AmazonEC2",
        "terms": terms,
        "version": "20261101000000",
        "publicationDate": "2026-11-01T00:00:00Z",
    }


def _products(region: str) -> Iterator[Item]:
    """Everything that is sold in a region."""
    where = {"regionCode": region, "locationType": "AWS Region", "location": region}
    short = "" if region == "us-east-1" else region.replace("-", "").upper() + "-"
    for kind in ON_DEMAND:
        price = rate(kind, region)
        for change, times in NEIGHBOURS if price is not None else ():
            usage = {"instanceType": kind, "usagetype": f"{short}BoxUsage:{kind}"}
            yield _product(
                "Compute Instance", {**where, **LINUX, **usage, **change}, "Hrs", times * (price or Decimal(0))
            )
    gateway = GATEWAY * (1 if region in CHEAP else FACTOR)
    sold = [("NatGateway-Bytes", "GB", gateway), ("NatGateway-Hours", "Hrs", gateway)]
    # A gateway of all zones has products of its own.
    sold += [(f"Regional{usage}", unit, 2 * price) for usage, unit, price in sold]
    for usage_type, unit, price in sold:
        named = {"usagetype": f"{short}{usage_type}", "operation": usage_type.partition("-")[0]}
        yield _product("NAT Gateway", {**where, **named}, unit, price)


def _fits(product: Item, asked: Item) -> bool:
    value = {**product["product"]["attributes"], "productFamily": product["product"]["productFamily"]}.get(
        asked["Field"], ""
    )
    wanted = str(asked["Value"])
    if asked["Type"] in ("ANY_OF", "NONE_OF"):
        return (value in wanted.split(",")) == (asked["Type"] == "ANY_OF")
    return wanted in value if asked["Type"] == "CONTAINS" else wanted == value


def _check(region: str, given: Item) -> None:
    if region not in REGIONS:
        raise RefusedError("UnknownEndpoint", f"There is no api.pricing.{region}.amazonaws.com.")
    if given.get("ServiceCode") != "AmazonEC2":
        raise RefusedError("NotFoundException", f"The service {given.get('ServiceCode')!r} was not found.")
    if given.get("FormatVersion", "aws_v1") != "aws_v1" or not 1 <= int(given.get("MaxResults") or 100) <= 100:
        raise RefusedError("InvalidParameterException", "Input Parameters are invalid.")
    if len(given.get("Filters") or []) > 50:
        raise RefusedError("InvalidParameterException", "There are more than 50 filters.")
    for asked in given.get("Filters") or []:
        if set(asked) != {"Type", "Field", "Value"} or asked["Type"] not in TYPES or not asked["Value"]:
            raise RefusedError("InvalidParameterException", f"The filter {asked} is invalid.")
        if asked["Field"] not in FIELDS:
            raise RefusedError("InvalidParameterException", f"The field {asked['Field']!r} is no attribute.")


def get_products(region: str, given: Item) -> Item:
    """One page of the products that match; ``region`` is the one that is asked, not the one that is asked about."""
    _check(region, given)
    filters = given.get("Filters") or []
    where = next((asked["Value"] for asked in filters if asked["Field"] == "regionCode"), "")
    found = [one for one in _products(where) if all(_fits(one, asked) for asked in filters)] if where else []
    start = int(given.get("NextToken") or 0)
    last = start + min(PAGE, int(given.get("MaxResults") or PAGE))
    more = {"NextToken": str(last)} if last < len(found) else {}
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(one) for one in found[start:last]], **more}
