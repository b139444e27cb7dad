"""Whether a quota of vCPUs has room for a launch."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.quotas import (
    Quota,
    counted,
    counts,
    missing_addresses,
    problem,
    problem_of_addresses,
    quota_of,
    quota_of_addresses,
    rivals,
)

NAMES = (
    "Running Dedicated trn1 Hosts",
    "Running On-Demand G and VT instances",
    "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "Running On-Demand Trn instances",
    "All P4, P3 and P2 Spot Instance Requests",
    "All P5 Spot Instance Requests",
    "All Trn Spot Instance Requests",
)
QUOTAS = [{"QuotaName": name, "QuotaCode": f"L-{number}", "Value": 8.0} for number, name in enumerate(NAMES)]


@pytest.mark.parametrize(
    ("kind", "market", "code"),
    [
        ("trn1.32xlarge", "on-demand", "L-3"),
        ("trn1n.32xlarge", "on-demand", "L-3"),
        ("trn2u.48xlarge", "spot", "L-6"),
        ("p4de.24xlarge", "spot", "L-4"),
        ("p5en.48xlarge", "spot", "L-5"),
        ("g5.xlarge", "on-demand", "L-1"),
        ("t3.micro", "on-demand", "L-2"),
        ("m5.2xlarge", "on-demand", "L-2"),
    ],
)
def test_the_name_of_a_quota_tells_its_families(kind: str, market: str, code: str) -> None:
    quota = quota_of(QUOTAS, kind, market)
    assert quota
    assert (quota.code, quota.value) == (code, 8)


def test_other_families_have_none() -> None:
    assert quota_of(QUOTAS, "inf2.xlarge", "on-demand") is None


@pytest.mark.parametrize(
    ("market", "reservation", "expected"),
    [
        ("on-demand", None, True),
        ("spot", {}, True),
        ("on-demand", {"preference": "open", "id": None}, True),
        ("on-demand", {"id": "cr-1"}, False),
        ("on-demand", {"resource_group_arn": "arn:aws:resource-groups:us-west-2:1:group/a"}, False),
        ("capacity-block", {"id": "cr-1"}, False),
    ],
)
def test_what_was_reserved_needs_no_further_room(market: str, reservation: Any, expected: bool) -> None:
    assert counts({"market": market, "capacity_reservation": reservation}) is expected


def test_only_instances_of_the_same_families_and_market_are_rivals() -> None:
    instances = [
        {"InstanceType": "trn1.2xlarge"},
        {"InstanceType": "trn2.48xlarge"},
        {"InstanceType": "trn1.32xlarge", "InstanceLifecycle": "spot"},
        {"InstanceType": "trn1.32xlarge", "InstanceLifecycle": "capacity-block"},
        {"InstanceType": "t3.micro"},
    ]
    quota = Quota("Running On-Demand Trn instances", "L-3", 8)
    assert rivals(instances, quota, "on-demand") == ["trn1.2xlarge", "trn2.48xlarge"]
    assert rivals(instances, Quota(NAMES[-1], "L-6", 8), "spot") == ["trn1.32xlarge"]


def test_the_sentence_has_the_numbers_and_the_link() -> None:
    quota = Quota("Running On-Demand Trn instances", "L-3", 128)
    assert problem(quota, 0, 1, "trn1.32xlarge", 128, "us-west-2") == ""
    said = problem(quota, 8, 2, "trn1.32xlarge", 128, "us-west-2")
    assert said.startswith(
        "2 x trn1.32xlarge need 256 vCPUs, and the quota 'Running On-Demand Trn instances' of us-west-2"
    )
    assert "is 128, of which 8 are in use; ask for 264 at https://" in said
    assert "/quotas/L-3?region=us-west-2, or take fewer nodes" in said


def test_addresses_of_amazon_are_counted_against_their_quota() -> None:
    assert quota_of_addresses(QUOTAS) is None
    quota = quota_of_addresses([*QUOTAS, {"QuotaName": "EC2-VPC Elastic IPs", "QuotaCode": "L-0263D0A3", "Value": 5.0}])
    assert quota == Quota("EC2-VPC Elastic IPs", "L-0263D0A3", 5)
    used = counted([{"PublicIpv4Pool": "amazon"}, {}, {"PublicIpv4Pool": "ipv4pool-ec2-0123"}, {}, {}])
    assert used == 4
    assert problem_of_addresses(quota, used, 1, "us-west-2") == ""
    said = problem_of_addresses(quota, used, 2, "us-west-2")
    assert said.startswith("The nodes need 2 Elastic IPs more, and the quota 'EC2-VPC Elastic IPs' of us-west-2 is 5,")
    assert "of which 4 are in use; ask for 6 at https://" in said
    assert "trainium_connection: ssm or trainium_bastion: create" in said


def address(**tags: str) -> dict[str, Any]:
    return {"Tags": [{"Key": f"trainium:{key}", "Value": value} for key, value in tags.items()]}


@pytest.mark.parametrize(
    ("addresses", "missing"),
    [
        ([], {"compute": 4, "head": 1, "network": 1, "bastion": 0}),
        ([address(cluster="bert", role="network")], {"compute": 4, "head": 1, "network": 0, "bastion": 0}),
        ([address(cluster="other", role="head"), {}], {"compute": 4, "head": 1, "network": 1, "bastion": 0}),
        # Those that somebody gave the cluster are for nodes.
        ([address(cluster="bert")] * 5, {"compute": 0, "head": 0, "network": 1, "bastion": 0}),
        ([address(cluster="bert", role="compute")] * 6, {"compute": 0, "head": 1, "network": 1, "bastion": 0}),
    ],
)
def test_addresses_that_a_cluster_has_need_no_room(addresses: list[dict[str, Any]], missing: dict[str, int]) -> None:
    assert missing_addresses(addresses, "bert", {"compute": 4, "head": 1, "network": 1, "bastion": 0}) == missing


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ({"compute": 5, "head": 1}, "The nodes (5) and the head node (1) need 6 Elastic IPs more"),
        ({"compute": 0, "head": 1, "network": 1, "bastion": 1}, "The head node (1), the NAT gateway (1) and the bas"),
        ({"compute": 0, "bastion": 1}, "The bastion (1) needs 1 Elastic IP more"),
    ],
)
def test_who_needs_addresses_is_said(missing: dict[str, int], said: str) -> None:
    quota = Quota("EC2-VPC Elastic IPs", "L-0263D0A3", 0)
    text = problem_of_addresses(quota, 0, sum(missing.values()), "us-west-2", missing)
    assert text.startswith(said)
    assert text.endswith("release what is not needed") is (missing == {"compute": 0, "bastion": 1})
