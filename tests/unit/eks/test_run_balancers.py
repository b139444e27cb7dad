"""How teardown finds and deletes load balancers of Kubernetes, call by call."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks import run_balancers
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_balancers import (
    BALANCERS,
    INTERFACES,
    TARGETS,
    BalancersOf,
)

from tests.unit.eks.conftest import Aws

Item = dict[str, Any]
OURS = {"kubernetes.io/cluster/bert": "owned"}
ARN = "arn:aws:elasticloadbalancing:us-west-2:123456789012"


class Network:
    """What lies in the networks of a cluster; ``own`` are those with its tag."""

    def __init__(self, api: Aws, networks: tuple[str, ...] = ("vpc-1",), own: tuple[str, ...] = ("vpc-1",)) -> None:
        self.api = api
        clients = (api.clients["elb"], api.clients["elbv2"], api.ec2)
        self.found = BalancersOf(clients, "bert", lambda: networks, lambda: own)

    def lists(self, classic: dict[str, str], newer: dict[str, str]) -> None:
        """Load balancers by their name and VPC."""
        old = [{"LoadBalancerName": name, "VPCId": vpc} for name, vpc in classic.items()]
        self.api.says("elb", "describe_load_balancers", {"LoadBalancerDescriptions": old})
        new = [{"LoadBalancerName": one, "LoadBalancerArn": self.arn(one), "VpcId": vpc} for one, vpc in newer.items()]
        self.api.says("elbv2", "describe_load_balancers", {"LoadBalancers": new})

    def targets(self, **vpcs: str) -> None:
        found = [
            {"TargetGroupName": one, "TargetGroupArn": self.target(one), "VpcId": vpc} for one, vpc in vpcs.items()
        ]
        self.api.says("elbv2", "describe_target_groups", {"TargetGroups": found})

    @staticmethod
    def arn(name: str) -> str:
        return f"{ARN}:loadbalancer/net/{name}/0a"

    @staticmethod
    def target(name: str) -> str:
        return f"{ARN}:targetgroup/{name}/0a"

    def tags(self, name: str, tags: Item | None, arn: str = "") -> None:
        """Those of a classic one, or of what has an ARN."""
        shown = {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]} if tags else {}
        answer: Any = {"TagDescriptions": [shown]} if tags is not None else "LoadBalancerNotFound"
        asked: Item = {"ResourceArns": [arn]} if arn else {"LoadBalancerNames": [name]}
        self.api.says("elbv2" if arn else "elb", "describe_tags", answer, **asked)

    def interfaces(self, **balancers: str) -> None:
        """Interfaces, each with the name of the load balancer that it is of."""
        asked = [{"Name": "vpc-id", "Values": ["vpc-1"]}, {"Name": "description", "Values": ["ELB *"]}]
        found = [
            {"NetworkInterfaceId": f"eni-{one}", "RequesterManaged": True, "VpcId": "vpc-1", "Description": f"ELB {of}"}
            for one, of in balancers.items()
        ]
        self.api.says("ec2", "describe_network_interfaces", {"NetworkInterfaces": found}, Filters=asked)


def test_those_of_the_cluster_and_those_of_others(api: Aws) -> None:
    network = Network(api, own=("vpc-1", "vpc-2"))
    # In a network with the tag alone the name may mean another cluster.
    network.lists({"b": "vpc-1", "else": "vpc-3", "a": "vpc-1", "gone": "vpc-1"}, {"n": "vpc-2", "m": "vpc-1"})
    network.tags("b", OURS)
    network.tags("a", {"kubernetes.io/cluster/bert": "shared"})
    network.tags("gone", None)
    network.tags("m", {"elbv2.k8s.aws/cluster": "bert"}, network.arn("m"))
    network.targets(y="vpc-1", x="vpc-1", w="vpc-2", v="vpc-1")
    for name, tags in (("y", OURS), ("x", OURS), ("v", {})):
        network.tags(name, tags, network.target(name))
    assert network.found.look() == {BALANCERS: ["b", "m"], TARGETS: ["x", "y"]}
    assert (network.found.foreign, network.found.unseen) == (["a", "gone", "n"], "")


def test_where_there_is_no_network_nothing_is_asked(api: Aws) -> None:
    network = Network(api, (), ())
    assert network.found.look() == {BALANCERS: [], TARGETS: []}
    network.found.delete()
    assert network.found.lingering() == {}
    network.found.wait_gone()


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "Throttled"])
def test_who_may_not_look_is_told_later(api: Aws, code: str) -> None:
    network = Network(api)
    api.says("elb", "describe_load_balancers", code)
    if code == "Throttled":
        with pytest.raises(AwsCallError, match="would not list the classic load balancers"):
            network.found.look()
        return
    assert network.found.look() == {} and f"({code})" in network.found.unseen
    # Nor is it asked for what they have left.
    assert network.found.lingering() == {}
    api.says("elb", "describe_load_balancers", code)
    network.found.delete()


def test_all_of_them_go_and_what_is_in_use_is_tried_again(api: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(api)
    asked: list[float] = []

    def looks(seconds: float, _pace: object = None) -> Any:
        asked.append(seconds)
        return iter([0.0, 2.0])

    monkeypatch.setattr(run_balancers, "looks", looks)
    network.lists({"a": "vpc-1"}, {"m": "vpc-1"})
    network.tags("a", OURS)
    network.tags("m", OURS, network.arn("m"))
    network.targets(x="vpc-1", y="vpc-1")
    for name in ("x", "y"):
        network.tags(name, OURS, network.target(name))
    api.says("elb", "delete_load_balancer", {}, LoadBalancerName="a")
    api.says("elbv2", "delete_load_balancer", {}, LoadBalancerArn=network.arn("m"))
    target = {"TargetGroupArn": network.target("x")}
    api.says("elbv2", "delete_target_group", "ResourceInUse", **target)
    api.says("elbv2", "delete_target_group", {}, **target)
    api.says("elbv2", "delete_target_group", "TargetGroupNotFound", TargetGroupArn=network.target("y"))
    network.found.delete()
    assert asked == [30, 30]


def test_one_that_cannot_be_deleted_does_not_keep_the_others(api: Aws) -> None:
    network = Network(api)
    network.lists({"a": "vpc-1", "b": "vpc-1"}, {})
    network.tags("a", OURS)
    network.tags("b", OURS)
    network.targets(x="vpc-1", y="vpc-1", z="vpc-1")
    for name in ("x", "y", "z"):
        network.tags(name, OURS, network.target(name))
    api.says("elb", "delete_load_balancer", "OperationNotPermitted", LoadBalancerName="a")
    api.says("elb", "delete_load_balancer", {}, LoadBalancerName="b")
    # It is in use for as long as its load balancer is there, which is not waited for.
    for name, answer in (("x", "ResourceInUse"), ("y", "OperationNotPermitted"), ("z", {})):
        api.says("elbv2", "delete_target_group", answer, TargetGroupArn=network.target(name))
    with pytest.raises(AwsCallError, match="AWS would not delete the load balancer a: for the test"):
        network.found.delete()


def test_interfaces_of_what_is_gone_are_waited_for(api: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(api)
    monkeypatch.setattr(run_balancers, "looks", lambda timeout: iter([0.0, 1.0]))
    for _look in range(2):
        network.interfaces(b="net/gone/0a", a="net/m/0a", c="old")
        network.lists({"a": "vpc-1"}, {"m": "vpc-1"})
    with pytest.raises(TrainiumError, match="eni-b, eni-c of load balancers that were deleted did not go within 600 s"):
        network.found.wait_gone()
    network.interfaces(b="net/gone/0a")
    network.lists({}, {})
    network.interfaces()
    network.found.wait_gone()


def test_in_a_network_of_the_user_s_only_interfaces_of_what_was_deleted_count(api: Aws) -> None:
    network = Network(api, own=("vpc-2",))
    network.lists({"a": "vpc-1"}, {})
    network.tags("a", OURS)
    network.targets()
    api.says("elb", "delete_load_balancer", {}, LoadBalancerName="a")
    network.found.delete()
    network.interfaces(b="shared", a="a")
    network.lists({}, {})
    assert network.found.lingering() == {INTERFACES: ["eni-a"]}
