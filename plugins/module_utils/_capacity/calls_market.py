# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each about prices and about capacity that can be had, see _common/aws.py for errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    filters_of,
    list_of,
    one_call,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError

# For what may not be reached from here: without it botocore tries for minutes. What is throttled is asked again all the
# same.
BRIEFLY = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 1}}

products = list_of("list the prices", "get_products", "PriceList")
spot_prices = list_of("list the spot prices", "describe_spot_price_history", "SpotPriceHistory")
placement_scores = list_of("tell the placement scores", "get_spot_placement_scores", "SpotPlacementScores")
block_offerings = list_of(
    "list the offerings of Capacity Blocks", "describe_capacity_block_offerings", "CapacityBlockOfferings"
)


@one_call("list the zones")
@retried
def zone_names(client: Client) -> dict[str, str]:
    """The names of the region's zones by their ids; scores have ids."""
    found = client.describe_availability_zones(Filters=filters_of({"zone-type": "availability-zone"}))
    return {item["ZoneId"]: item["ZoneName"] for item in found.get("AvailabilityZones", ())}


@one_call("buy the Capacity Block")
def purchase(client: Client, request: Mapping[str, Any]) -> Item:
    """The reservation of a block. Not safe to repeat, here or in ``client``, since there is no client token.

    Empty where the answer does not say.
    """
    return dict(client.purchase_capacity_block(**request).get("CapacityReservation") or {})


def was_refused(error: AwsCallError) -> bool:
    """Whether AWS said itself that it did nothing: an error of the client's, not one of AWS's or of the way."""
    answer = getattr(error.__cause__, "response", None) or {}
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return bool(error.code) and not error.transient and 400 <= status < 500 and status != 408
