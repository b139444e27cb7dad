"""What an account has room for: which lists are asked, how often, and what is said where nobody can tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_quotas
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.quotas import Quota, Usage

Item = dict[str, Any]
TRN: Item = {"QuotaName": "Running On-Demand Trn instances", "QuotaCode": "L-1", "Value": 256.0}
SPOT: Item = {"QuotaName": "All Trn Spot Instance Requests", "QuotaCode": "L-2", "Value": 128.0}
IPS: Item = {"QuotaName": "EC2-VPC Elastic IPs", "QuotaCode": "L-3", "Value": 5.0}
KIND = "trn1.32xlarge"
NODES = {"instance_type": KIND, "market": "on-demand"}


class Aws:
    """What an account has, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **lists: Any) -> None:
        self.lists = {"list_service_quotas": [TRN, SPOT, IPS], "list_aws_default_service_quotas": [], **lists}
        self.running: list[Item] = [
            {"InstanceType": KIND},
            {"InstanceType": "trn2.48xlarge", "InstanceLifecycle": "spot"},
        ]
        self.addresses: list[Item] = [{}] * 4
        self.asked: list[Any] = []
        self.warned: list[str] = []
        for name in ("list_quotas", "describe_instances", "default_vcpus", "describe_addresses"):
            monkeypatch.setattr(run_quotas.ec2, name, getattr(self, f"_{name}"))

    def account(self, **vcpus: int) -> run_quotas.Account:
        client = SimpleNamespace(name="ec2", meta=SimpleNamespace(region_name="us-west-2"))
        known = {key.replace("_", "."): value for key, value in vcpus.items()}
        return run_quotas.Account(client, SimpleNamespace(name="quotas"), self.warned.append, known or None)

    def _list_quotas(self, client: Any, operation: str) -> list[Item]:
        assert client.name == "quotas"
        self.asked.append(operation)
        if isinstance(self.lists[operation], Exception):
            raise self.lists[operation]
        found: list[Item] = self.lists[operation]
        return found

    def _describe_instances(self, client: Any, filters: Item) -> list[Item]:
        assert (client.name, filters) == ("ec2", {"instance-state-name": ["pending", "running"]})
        self.asked.append("instances")
        return self.running

    def _default_vcpus(self, client: Any, names: list[str]) -> dict[str, int]:
        assert client.name == "ec2"
        self.asked.append(names)
        return {name: 192 if name.startswith("trn2") else 128 for name in names if name != "trn9.unknown"}

    def _describe_addresses(self, client: Any) -> list[Item]:
        assert client.name == "ec2"
        self.asked.append("addresses")
        return self.addresses


def test_what_runs_in_the_same_market_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    account = aws.account()
    assert account.usage(KIND, "on-demand") == Usage(Quota(TRN["QuotaName"], "L-1", 256), 128, 128)
    assert account.usage(KIND, "spot") == Usage(Quota(SPOT["QuotaName"], "L-2", 128), 192, 128)
    # Each question once, and of types that are known none.
    assert aws.asked == ["list_service_quotas", "instances", [KIND], ["trn2.48xlarge"]]
    assert aws.warned == []


def test_types_whose_size_is_known_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    assert aws.account(trn1_32xlarge=100).usage(KIND, "on-demand") == Usage(
        Quota(TRN["QuotaName"], "L-1", 256), 100, 100
    )
    assert aws.asked == ["list_service_quotas", "instances"]
    aws.running = [{"InstanceType": "trn9.unknown"}]
    usage = aws.account(trn1_32xlarge=100).usage(KIND, "on-demand")
    assert usage and usage.used == 0


@pytest.mark.parametrize(("count", "fits"), [(0, True), (1, True), (2, False)])
def test_nodes_have_room_or_are_refused(monkeypatch: pytest.MonkeyPatch, count: int, fits: bool) -> None:
    aws = Aws(monkeypatch)
    if fits:
        aws.account().check_nodes(NODES, count)
        assert bool(aws.asked) == bool(count)
        return
    with pytest.raises(TrainiumError, match=r"2 x trn1.32xlarge need 256 vCPUs, .* of which 128 are in use"):
        aws.account().check_nodes(NODES, count)


def test_what_was_reserved_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    aws.account().check_nodes({**NODES, "capacity_reservation": {"id": "cr-1"}}, 99)
    assert aws.asked == []


def test_a_quota_without_a_value_of_its_own_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch, list_service_quotas=[IPS], list_aws_default_service_quotas=[{**TRN, "Value": 7.0}])
    usage = aws.account().usage(KIND, "on-demand")
    assert usage and usage.quota.value == 7
    assert aws.asked[:2] == ["list_service_quotas", "list_aws_default_service_quotas"]


def test_a_quota_that_nobody_tells_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch, list_service_quotas=AwsCallError("AWS would not list the quotas of EC2: no (Denied)"))
    account = aws.account()
    account.check_nodes(NODES, 99)
    account.check_addresses(99)
    why = "was not looked at: AWS would not list the quotas of EC2: no (Denied)."
    assert aws.warned == [f"The quota of {KIND} {why}", f"The quota of Elastic IPs {why}"]
    aws = Aws(monkeypatch, list_service_quotas=[])
    account = aws.account()
    account.check_nodes(NODES, 99)
    assert account.check_all_addresses("bert", {"compute": 99}) == 99
    end = "in us-west-2; whether it suffices is not known."
    assert aws.warned == [
        f"Service Quotas shows no on-demand quota for {KIND} {end}",
        f"Service Quotas shows no quota for Elastic IPs {end}",
    ]


@pytest.mark.parametrize(("count", "fits"), [(0, True), (1, True), (2, False)])
def test_addresses_have_room_or_are_refused(monkeypatch: pytest.MonkeyPatch, count: int, fits: bool) -> None:
    aws = Aws(monkeypatch)
    if fits:
        aws.account().check_addresses(count)
        assert bool(aws.asked) == bool(count)
        return
    with pytest.raises(
        TrainiumError, match=r"The nodes need 2 Elastic IPs more, .* of which 4 are in use; ask for 6 at"
    ):
        aws.account().check_addresses(count)


def test_of_all_addresses_of_a_cluster_only_those_that_are_missing_count(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(monkeypatch)
    tags = [{"Key": "trainium:cluster", "Value": "bert"}, {"Key": "trainium:role", "Value": "head"}]
    aws.addresses = [{"Tags": tags}, {}, {}, {}]
    assert aws.account().check_all_addresses("bert", {"head": 1}) == 0
    assert aws.asked == ["addresses"]
    assert aws.account().check_all_addresses("bert", {"head": 1, "network": 1}) == 1
    with pytest.raises(TrainiumError, match=r"The NAT gateway \(1\) and the nodes \(1\) need 2 Elastic IPs more"):
        aws.account().check_all_addresses("bert", {"head": 1, "network": 1, "compute": 1})
