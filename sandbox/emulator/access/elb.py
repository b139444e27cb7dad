"""What calls of Elastic Load Balancing are about, both of its APIs: they have one prefix.

Source: the Service Authorization Reference of both. To look knows no resources; a classic load balancer has its name
in its ARN, and what is newer is named by its ARN.
"""

from __future__ import annotations

from typing import Any

from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends

from sandbox.emulator.access.ec2 import ACCOUNT

Resource = tuple[str, dict[str, str]]


def resources(region: str, name: str, given: dict[str, Any]) -> list[Resource]:
    if name.startswith("Describe"):
        return [("*", {})]
    if arn := given.get("LoadBalancerArn") or given.get("TargetGroupArn"):
        return [(arn, dict(elbv2_backends[ACCOUNT][region].tagging_service.get_tag_dict_for_resource(arn)))]
    if classic := given.get("LoadBalancerName"):
        there = elb_backends[ACCOUNT][region].load_balancers.get(classic)
        arn = f"arn:aws:elasticloadbalancing:{region}:{ACCOUNT}:loadbalancer/{classic}"
        return [(arn, dict(there.tags) if there else {})]
    return []
