"""Which load balancers are Kubernetes' of a cluster, and which interfaces are of none any more."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan_balancers import (
    Balancer,
    Item,
    classic_in,
    is_of_kubernetes,
    lingering,
    newer_in,
    told,
)


@pytest.mark.parametrize(
    ("tags", "mine"),
    [
        ({"kubernetes.io/cluster/bert": "owned"}, True),
        ({"kubernetes.io/cluster/bert": "shared"}, False),
        ({"kubernetes.io/cluster/bert": ""}, False),
        ({"kubernetes.io/cluster/bert-2": "owned"}, False),
        ({"elbv2.k8s.aws/cluster": "bert"}, True),
        ({"elbv2.k8s.aws/cluster": "owned"}, False),
        ({}, False),
    ],
)
def test_a_cluster_is_known_by_the_tags_of_either_controller(tags: dict[str, str], mine: bool) -> None:
    assert is_of_kubernetes(tags, "bert") == mine


def test_only_what_lies_in_the_networks_counts() -> None:
    classic = [{"LoadBalancerName": f"a{vpc}", "VPCId": vpc} for vpc in ("v1", "v2")]
    assert classic_in([*classic, {"LoadBalancerName": "old"}], {"v1"}) == [Balancer("av1", network="v1")]
    newer = [{"TargetGroupName": vpc, "TargetGroupArn": f"arn:{vpc}", "VpcId": vpc} for vpc in ("v1", "v2")]
    # One for a function of Lambda lies nowhere.
    newer.append({"TargetGroupName": "function", "TargetGroupArn": "arn:function"})
    assert newer_in(newer, {"v2"}, "TargetGroup") == [Balancer("v2", "arn:v2", "v2")]


def test_an_interface_without_its_load_balancer_is_going() -> None:
    arn = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/web/50dc6c495c0c9188"
    shown: list[Item] = [
        {"NetworkInterfaceId": "eni-1", "RequesterManaged": True, "Description": "ELB net/web/50dc6c495c0c9188"},
        {"NetworkInterfaceId": "eni-2", "RequesterManaged": True, "Description": "ELB a1"},
        {"NetworkInterfaceId": "eni-3", "RequesterManaged": True, "Description": "ELB app/gone/1"},
        # Somebody called their own so.
        {"NetworkInterfaceId": "eni-4", "RequesterManaged": False, "Description": "ELB of mine"},
    ]
    for one in shown:
        one["VpcId"] = "v1"
    assert lingering(shown, [Balancer("web", arn), Balancer("a1")], {"v1"}, []) == ["eni-3"]
    assert lingering(shown, [], {"v1"}, []) == ["eni-1", "eni-2", "eni-3"]
    # Where the network stays, those of others are no matter, such as of accounts that it is shared with.
    assert lingering(shown, [], {"v2"}, [Balancer("a1", network="v1")]) == ["eni-2"]
    assert lingering(shown, [], set(), []) == []


def test_others_are_named() -> None:
    assert told([]) == ""
    assert told(["a"]) == "the load balancer a lies in its network and is not of it, so delete it yourself"
    assert (
        told(["b", "a"]) == "the load balancers a and b lie in its network and are not of it, so delete them yourself"
    )
