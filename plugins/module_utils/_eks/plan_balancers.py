# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which load balancers Kubernetes has made for a cluster, and what belongs to them. Pure.

For a Service they are made by Kubernetes' cloud provider (kubernetes/cloud-provider-aws, pkg/providers/v1/tags.go), for
an Ingress and for Services that ask for it by the AWS Load Balancer Controller (pkg/deploy/tracking/provider.go). Both
mark load balancers, target groups and security groups by the name of the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

Item = dict[str, Any]

# One of these tags is enough; the braces are the cluster's name. A group that is only "shared" stays.
TAGS = (("kubernetes.io/cluster/{}", "owned"), ("elbv2.k8s.aws/cluster", "{}"))


class Balancer(NamedTuple):
    """A load balancer, or a target group; a classic one has no ARN."""

    name: str
    arn: str = ""
    network: str = ""

    @property
    def described(self) -> str:
        """How its network interfaces are described."""
        return f"ELB {self.arn.partition(':loadbalancer/')[2] or self.name}"


def is_of_kubernetes(tags: Mapping[str, str], cluster: str) -> bool:
    return any(tags.get(key.format(cluster)) == value.format(cluster) for key, value in TAGS)


def classic_in(items: Iterable[Item], networks: Collection[str]) -> list[Balancer]:
    return [Balancer(one["LoadBalancerName"], network=one["VPCId"]) for one in items if one.get("VPCId") in networks]


def newer_in(items: Iterable[Item], networks: Collection[str], kind: str = "LoadBalancer") -> list[Balancer]:
    """Load balancers or, with ``kind`` TargetGroup, target groups that lie in these VPCs."""
    inside = [one for one in items if one.get("VpcId") in networks]
    return [Balancer(one[f"{kind}Name"], one[f"{kind}Arn"], one["VpcId"]) for one in inside]


def lingering(
    interfaces: Iterable[Item], balancers: Iterable[Balancer], own: Collection[str], deleted: Iterable[Balancer]
) -> list[str]:
    """The ids of the interfaces whose load balancer is gone: they are on their way out.

    In the VPCs ``own``, which are to go, all of them count, elsewhere those of the ``deleted``: whom a VPC is shared
    with has load balancers in it that its owner is not shown.
    """
    there = {one.described for one in balancers}
    gone = {(one.network, one.described) for one in deleted}
    return sorted(
        one["NetworkInterfaceId"]
        for one in interfaces
        if one.get("RequesterManaged")
        and one.get("Description") not in there
        and (one.get("VpcId") in own or (one.get("VpcId"), one.get("Description")) in gone)
    )


def told(foreign: Collection[str]) -> str:
    """What to say of load balancers of others in the cluster's network, '' where there are none."""
    if not foreign:
        return ""
    names, several = " and ".join(sorted(foreign)), len(foreign) > 1
    return (
        f"the load balancer{'s' if several else ''} {names} {'lie' if several else 'lies'} in its network and "
        f"{'are' if several else 'is'} not of it, so delete {'them' if several else 'it'} yourself"
    )
