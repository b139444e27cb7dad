# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What AWS's price list says of instances and NAT gateways, and what a cluster costs an hour. Pure.

Source: "Using the AWS Price List Query API" (three endpoints, filters) and its API reference: GetProducts answers with
texts, each the JSON of a product with its terms. That Linux on demand is one product takes all of these attributes: a
Capacity Block, a reservation and dedicated hardware are products of the same type, some of them for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, NamedTuple

Item = dict[str, Any]

SERVICE = "AmazonEC2"
MOST = 10**9
# Where the price list is served. Other partitions than ``aws`` have none that gives US dollars.
REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")
_ELSEWHERE = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")
_LINUX = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_ANY = re.compile("")
# ``USW2-NatGateway-Hours``; what is called RegionalNatGateway is another product.
GATEWAY_HOURS = re.compile(r"(^|-)NatGateway-Hours$")


class Line(NamedTuple):
    """Something that is billed by the hour: ``price`` for all ``number`` of it, None where it is not known.

    ``own``: it is a price that the user gave.
    """

    what: str
    number: int
    price: Decimal | None
    own: bool = False


class Nodes(NamedTuple):
    """How nodes are had: on which market, how many of them always run, and whether a reservation is billed anyway."""

    market: str
    least: int
    reserved: bool = False


def asked_in(region: str) -> str:
    """The region in which to ask for the prices of a region; '' where nobody tells them.

    >>> asked_in("us-west-2"), asked_in("eu-central-1"), asked_in("cn-north-1")
    ('us-east-1', 'eu-central-1', '')
    """
    if region.startswith(_ELSEWHERE):
        return ""
    return region if region in REGIONS else REGIONS[0]


def _filters(attributes: dict[str, str]) -> list[Item]:
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in attributes.items()]


def of_instance(kind: str, region: str) -> list[Item]:
    """The filters of GetProducts for an instance with Linux on demand."""
    return _filters({"instanceType": kind, "regionCode": region, **_LINUX})


def of_gateway(region: str) -> list[Item]:
    """The filters for what NAT gateways cost, by the hour and by the gigabyte."""
    return _filters({"productFamily": "NAT Gateway", "regionCode": region})


def hourly(texts: Iterable[str], usage: re.Pattern[str] = _ANY) -> Decimal | None:
    """US dollars an hour on demand; None where no product has such a price.

    ``usage`` is what the product's usage type has. The highest of several: what is said should not be too little.
    """
    found = (price for text in texts for price in _hours(text, usage))
    return max(found, default=None)


def _hours(text: str, usage: re.Pattern[str]) -> list[Decimal]:
    """The prices of an hour in one product; none where the text is not what AWS documents."""
    try:
        product = json.loads(text)
        if not usage.search(product["product"]["attributes"].get("usagetype", "")):
            return []
        terms = product["terms"].get("OnDemand", {}).values()
        dimensions = [one for term in terms for one in term["priceDimensions"].values()]
        amounts = [dollars(one["pricePerUnit"].get("USD")) for one in dimensions if one["unit"] == "Hrs"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []
    return [amount for amount in amounts if amount]


def dollars(value: Any) -> Decimal | None:
    """An amount of US dollars; None for what is none."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    # Beyond that it is a mistake, and from 10^26 on Decimal could not round it.
    return amount if amount.is_finite() and 0 <= amount < MOST else None


def shown(price: Decimal) -> str:
    """With cents; of what is less than a dollar up to four digits.

    >>> shown(Decimal(43)), shown(Decimal("0.384")), shown(Decimal("0.0450"))
    ('43.00', '0.384', '0.045')
    """
    if price >= 1 or not price:
        return str(price.quantize(Decimal("0.01"), ROUND_HALF_UP))
    return f"{price.quantize(Decimal('0.0001'), ROUND_HALF_UP).normalize():f}"


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _of_nodes(nodes: Line, region: str, how: Nodes) -> str:
    text = f"{nodes.number} {nodes.what} in {region} {'costs' if nodes.number == 1 else 'cost'}"
    if how.market == "capacity-block":
        # Paid when the block was bought.
        return f"{text} nothing more in the Capacity Block, which is paid in advance"
    if nodes.price is None:
        return f"AWS's price list does not say what {text} an hour; set trainium_price_per_hour"
    text += f" {shown(nodes.price)} USD an hour {'by trainium_price_per_hour' if nodes.own else 'on demand'}"
    if how.market == "spot" and not nodes.own:
        text += ", and at most that on the spot market"
    if how.reserved:
        return f"{text}, which the capacity reservation costs with or without them"
    if how.least >= nodes.number:
        return text
    always = "nothing while none does"
    if how.least:
        price = shown(nodes.price * how.least / nodes.number)
        always = f"{price} USD while only {how.least} of them {'runs' if how.least == 1 else 'run'}"
    return f"{text} while all of them run, and {always}"


def sentence(nodes: Line, others: Sequence[Line], region: str, how: Nodes, trouble: str = "") -> str:
    """What a cluster costs an hour: its nodes, and of what else it has what is known.

    ``trouble`` is why prices could not be asked, part of a sentence.
    """
    text = _of_nodes(nodes, region, how)
    if trouble and nodes.price is None and how.market != "capacity-block":
        text = f"What {nodes.number} {nodes.what} in {region} cost an hour is not known"
    known = [line for line in others if line.price is not None]
    for line in known:
        text += f"; {line.what} {shown(line.price or Decimal(0))} USD an hour"
    whole = [line.price for line in (nodes, *known) if line.price is not None]
    if known and nodes.price is not None and (how.market == "on-demand" or nodes.own):
        most = "" if how.reserved or how.least >= nodes.number else "at most "
        text += f"; together {most}{shown(sum(whole, Decimal(0)))} USD an hour"
    missing = [line.what for line in others if line.price is None]
    text += f". Not in it: {_list([*missing, 'storage', 'addresses', 'traffic'])}."
    return f"{text} Not all prices are known: {trouble}." if trouble else text
