"""Load balancers, classic and newer: each has a network interface in each of its subnets, which keeps subnet, security
groups and, where it faces the Internet, the gateway; stock moto's have none.

The interfaces are called as AWS calls them ("Deletion of load balancer", "Requester-managed network interfaces" in the
guides of ELB and EC2), and stay a little longer than their load balancer. One with deletion protection is not deleted,
and the ARN of a Network Load Balancer says that it is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import moto.ec2.models.elastic_network_interfaces as eni_models
from moto.ec2.models import ec2_backends
from moto.elb.models import ELBBackend
from moto.elbv2.exceptions import ELBClientError
from moto.elbv2.models import ELBv2Backend

from sandbox.emulator.ec2.lingering import leave

_stock_create, _stock_delete = ELBBackend.create_load_balancer, ELBBackend.delete_load_balancer
_stock_create_v2, _stock_delete_v2 = ELBv2Backend.create_load_balancer, ELBv2Backend.delete_load_balancer


def _attach(backend: Any, balancer: Any, called: str, subnets: Iterable[Any]) -> None:
    ec2 = ec2_backends[backend.account_id][backend.region_name]
    balancer._interfaces = []
    for subnet in subnets:
        groups = list(balancer.security_groups or ())
        made = ec2.create_network_interface(subnet, None, group_ids=groups, description=f"ELB {called}")
        made.status, made.requester_managed, made.requester_id = "in-use", True, "amazon-elb"
        if not groups:
            made._group_set = []
        if balancer.scheme == "internet-facing":
            made.public_ip = eni_models.random_public_ip()
        balancer._interfaces.append(made)


def _detach(backend: Any, balancer: Any) -> None:
    for interface in getattr(balancer, "_interfaces", ()):
        leave(ec2_backends[backend.account_id][backend.region_name], interface.id)


def _create(self: Any, *arguments: Any, **options: Any) -> Any:
    made = _stock_create(self, *arguments, **options)
    ec2 = ec2_backends[self.account_id][self.region_name]
    _attach(self, made, made.name, [ec2.get_subnet(one) for one in made.subnets])
    return made


def _delete(self: Any, load_balancer_name: str) -> None:
    _detach(self, self.load_balancers.get(load_balancer_name))
    _stock_delete(self, load_balancer_name)


def _create_v2(self: Any, *arguments: Any, **options: Any) -> Any:
    made = _stock_create_v2(self, *arguments, **options)
    made.scheme = made.scheme or "internet-facing"
    if made.type == "network":
        old = made.arn
        made.arn = old.replace(":loadbalancer/app/", ":loadbalancer/net/")
        self.load_balancers[made.arn] = self.load_balancers.pop(old)
        tags = self.tagging_service.get_tag_dict_for_resource(old)
        self.tagging_service.delete_all_tags_for_resource(old)
        self.tagging_service.tag_resource(made.arn, [{"Key": key, "Value": tags[key]} for key in tags])
    _attach(self, made, made.arn.partition(":loadbalancer/")[2], made.subnets)
    return made


def _delete_v2(self: Any, arn: str) -> None:
    balancer = self.load_balancers.get(arn)
    if balancer and balancer.attrs.get("deletion_protection.enabled") == "true":
        text = f"Load balancer '{arn}' cannot be deleted because deletion protection is enabled"
        raise ELBClientError("OperationNotPermitted", text)
    _detach(self, balancer)
    _stock_delete_v2(self, arn)


def install() -> None:
    ELBBackend.create_load_balancer = _create
    ELBBackend.delete_load_balancer = _delete
    ELBv2Backend.create_load_balancer = _create_v2
    ELBv2Backend.delete_load_balancer = _delete_v2
