"""Prices, spot prices, scores and offerings as AWS answers them, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import client

TYPE = "trn1.32xlarge"
Item = dict[str, Any]
LINUX = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
ALL = {"instanceType": TYPE, "regionCode": "us-west-2", **LINUX, "marketoption": "OnDemand"}


def matching(**attributes: str) -> list[Item]:
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in attributes.items()]


def pricing(lab: Any, region: str = "us-east-1") -> Any:
    return client("pricing", lab.api.url, region, retries=0)


def products(lab: Any, **attributes: str) -> list[Item]:
    """Every product; each page has texts."""
    found = pricing(lab).get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=matching(**attributes))
    texts = [text for page in found for text in page["PriceList"]]
    assert all(isinstance(text, str) for text in texts)
    return [json.loads(text) for text in texts]


def test_a_launch_of_linux_is_one_product_of_many(lab: Any) -> None:
    every = products(lab, instanceType=TYPE, regionCode="us-west-2")
    assert len(every) == 8
    assert len({one["product"]["sku"] for one in every}) == 8
    (one,) = products(lab, **ALL)
    (term,) = one["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert (dimension["unit"], float(dimension["pricePerUnit"]["USD"])) == ("Hrs", 21.5)
    # A Capacity Block is a product of the same attributes, for nothing.
    assert len(products(lab, instanceType=TYPE, regionCode="us-west-2", **LINUX)) == 2
    assert products(lab, **{**ALL, "regionCode": "eu-west-1"}) == []
    assert products(lab, **{**ALL, "instanceType": "trn2.48xlarge", "regionCode": "us-east-2"}) == []
    # Gateways of a zone and of a region, by the hour and by the gigabyte.
    assert len(products(lab, productFamily="NAT Gateway", regionCode="us-west-2")) == 4


def test_what_the_services_refuse(lab: Any) -> None:
    ec2, prices = lab.ec2, pricing(lab)
    blocks, scores = ec2.describe_capacity_block_offerings, ec2.get_spot_placement_scores
    wanted = {"InstanceType": TYPE, "InstanceCount": 2, "CapacityDurationHours": 48}
    now = datetime.now(timezone.utc)
    wrong: list[tuple[str, Callable[[], Any]]] = [
        ("UnknownEndpoint", lambda: pricing(lab, "us-west-2").get_products(ServiceCode="AmazonEC2")),
        ("NotFoundException", lambda: prices.get_products(ServiceCode="EC2")),
        ("InvalidParameterException", lambda: prices.get_products(ServiceCode="AmazonEC2", FormatVersion="aws_v2")),
        (
            "InvalidParameterException",
            lambda: prices.get_products(ServiceCode="AmazonEC2", Filters=matching(instance_type=TYPE)),
        ),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "InstanceCount": 65})),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "InstanceCount": 0})),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "CapacityDurationHours": 25})),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "CapacityDurationHours": 15 * 24})),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "CapacityDurationHours": 27 * 7 * 24})),
        ("InvalidParameterValue", lambda: blocks(**{**wanted, "InstanceType": "trn1.2xlarge"})),
        ("InvalidParameterValue", lambda: blocks(**wanted, StartDateRange=now, EndDateRange=now - timedelta(hours=1))),
        ("MissingParameter", lambda: blocks(InstanceCount=2, CapacityDurationHours=24)),
        (
            "InvalidParameterValue",
            lambda: ec2.purchase_capacity_block(CapacityBlockOfferingId="cb-1", InstancePlatform="Linux/UNIX"),
        ),
        ("MissingParameter", lambda: scores(TargetCapacity=2)),
        ("InvalidParameterValue", lambda: scores(TargetCapacity=2, InstanceTypes=["trn1.33xlarge"])),
        ("InvalidParameterValue", lambda: scores(TargetCapacity=2, InstanceTypes=[TYPE], RegionNames=["us-west-9"])),
        ("InvalidParameterValue", lambda: ec2.describe_spot_price_history(ProductDescriptions=["Linux"])),
        ("InvalidParameterValue", lambda: ec2.describe_spot_price_history(InstanceTypes=["trn1.33xlarge"])),
        ("AuthFailure", client("ec2", lab.api.url, "ap-southeast-4", retries=0).describe_instances),
        (
            "UnrecognizedClientException",
            lambda: client("service-quotas", lab.api.url, "ap-southeast-4", retries=0).list_service_quotas(
                ServiceCode="ec2"
            ),
        ),
    ]
    for code, call in wrong:
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == code


def test_a_history_of_spot_prices_reaches_back_unless_a_start_is_given(lab: Any) -> None:
    pages = lab.ec2.get_paginator("describe_spot_price_history")

    def history(**asked: Any) -> list[Item]:
        return list(pages.paginate(InstanceTypes=[TYPE], **asked).build_full_result()["SpotPriceHistory"])

    every = history()
    assert len(every) == len(lab.zones) * 4 * 3
    assert [one["Timestamp"] for one in every] == sorted((one["Timestamp"] for one in every), reverse=True)
    now = history(ProductDescriptions=["Linux/UNIX"], StartTime=datetime.now(timezone.utc))
    assert sorted(one["AvailabilityZone"] for one in now) == lab.zones
    assert {one["SpotPrice"] for one in now} == {"6.880000", "7.095000"}


def test_scores_are_of_zone_ids_and_low_for_a_single_type(lab: Any) -> None:
    asked = {"TargetCapacity": 2, "SingleAvailabilityZone": True, "RegionNames": ["us-west-2"]}
    found = lab.ec2.get_spot_placement_scores(InstanceTypes=[TYPE], **asked)["SpotPlacementScores"]
    zones = lab.ec2.describe_availability_zones(ZoneNames=lab.zones)["AvailabilityZones"]
    assert {one["AvailabilityZoneId"] for one in found} == {zone["ZoneId"] for zone in zones}
    assert all(one["Score"] <= 3 for one in found)
    several = lab.ec2.get_spot_placement_scores(InstanceTypes=[TYPE, "trn1.2xlarge", "m5.xlarge"], TargetCapacity=2)
    assert [one["Score"] for one in several["SpotPlacementScores"]] == [9]


def test_offerings_end_at_half_past_eleven_within_the_range(lab: Any) -> None:
    now = datetime.now(timezone.utc)
    asked = {"InstanceType": TYPE, "InstanceCount": 4, "CapacityDurationHours": 72}
    pages = lab.ec2.get_paginator("describe_capacity_block_offerings")
    every = pages.paginate(**asked).build_full_result()["CapacityBlockOfferings"]
    assert len(every) == 6
    for one in every:
        assert (one["EndDate"].hour, one["EndDate"].minute, one["InstanceCount"]) == (11, 30, 4)
        hours = one["CapacityBlockDurationHours"] + one["CapacityBlockDurationMinutes"] / 60
        assert one["EndDate"] - one["StartDate"] == timedelta(hours=hours)
        assert float(one["UpfrontFee"]) > 0
    soon = now + timedelta(days=4)
    few = pages.paginate(**asked, StartDateRange=now, EndDateRange=soon).build_full_result()["CapacityBlockOfferings"]
    assert 0 < len(few) < 6
    assert all(one["EndDate"] <= soon for one in few)
    for zone in lab.zones:
        lab.api.capacity(TYPE, zone, 3)
    assert lab.ec2.describe_capacity_block_offerings(**asked)["CapacityBlockOfferings"] == []
