"""Load balancers of the emulator: their network interfaces keep what they use, and outlive them a little."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.emulator.conftest import Lab


@pytest.fixture
def lab(api: Any) -> Lab:
    return Lab(api)


def interfaces(lab: Lab) -> list[dict[str, Any]]:
    found = lab.ec2.describe_network_interfaces(Filters=[{"Name": "description", "Values": ["ELB *"]}])
    return list(found["NetworkInterfaces"])


def refused(call: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Code"])


def gone(lab: Lab) -> None:
    deadline = time.monotonic() + 300
    while interfaces(lab):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def classic(lab: Lab, name: str, scheme: str) -> None:
    listener = {"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 80}
    lab.client("elb").create_load_balancer(
        LoadBalancerName=name, Listeners=[listener], Subnets=[lab.subnet], SecurityGroups=[lab.group], Scheme=scheme
    )


def test_a_classic_one_keeps_its_subnet_and_its_group(lab: Lab) -> None:
    classic(lab, "a1", "internal")
    (one,) = interfaces(lab)
    assert (one["Description"], one["Status"], one["RequesterManaged"]) == ("ELB a1", "in-use", True)
    assert (one["SubnetId"], [group["GroupId"] for group in one["Groups"]]) == (lab.subnet, [lab.group])
    assert refused(lab.ec2.delete_subnet, SubnetId=lab.subnet) == "DependencyViolation"
    assert refused(lab.ec2.delete_security_group, GroupId=lab.group) == "DependencyViolation"
    lab.client("elb").delete_load_balancer(LoadBalancerName="a1")
    # ELB shows it no more, EC2 still does.
    assert lab.client("elb").describe_load_balancers()["LoadBalancerDescriptions"] == []
    assert refused(lab.ec2.delete_subnet, SubnetId=lab.subnet) == "DependencyViolation"
    gone(lab)
    lab.ec2.delete_subnet(SubnetId=lab.subnet)
    lab.ec2.delete_security_group(GroupId=lab.group)
    lab.client("elb").delete_load_balancer(LoadBalancerName="a1")


@pytest.mark.parametrize(("kind", "called"), [("application", "app"), ("network", "net")])
def test_a_newer_one_has_an_interface_in_each_subnet(lab: Lab, kind: str, called: str) -> None:
    zone = next(zone for zone in ("us-west-2a", "us-west-2b") if zone != lab.zones[0])
    other = lab.make_subnet("10.66.16.0/20", zone)
    elb = lab.client("elbv2")
    groups = {"SecurityGroups": [lab.group]} if kind == "application" else {}
    made = elb.create_load_balancer(Name="k8s-web", Type=kind, Subnets=[lab.subnet, other], **groups)["LoadBalancers"]
    arn = made[0]["LoadBalancerArn"]
    path = arn.partition(":loadbalancer/")[2]
    assert path.startswith(f"{called}/k8s-web/")
    assert {(one["Description"], one["SubnetId"]) for one in interfaces(lab)} == {
        (f"ELB {path}", lab.subnet),
        (f"ELB {path}", other),
    }
    assert [group["GroupId"] for group in interfaces(lab)[0]["Groups"]] == groups.get("SecurityGroups", [])
    target = elb.create_target_group(
        Name="k8s-web", Protocol="HTTP" if kind == "application" else "TCP", Port=80, VpcId=lab.vpc
    )["TargetGroups"][0]["TargetGroupArn"]
    elb.create_listener(
        LoadBalancerArn=arn,
        Protocol="HTTP" if kind == "application" else "TCP",
        Port=80,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": target}],
    )
    assert refused(elb.delete_target_group, TargetGroupArn=target) == "ResourceInUse"
    protection = {"Key": "deletion_protection.enabled", "Value": "true"}
    elb.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=[protection])
    assert refused(elb.delete_load_balancer, LoadBalancerArn=arn) == "OperationNotPermitted"
    elb.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=[{**protection, "Value": "false"}])
    elb.delete_load_balancer(LoadBalancerArn=arn)
    elb.delete_target_group(TargetGroupArn=target)


def test_one_in_the_internet_has_addresses_that_keep_the_gateway(lab: Lab) -> None:
    gateway = lab.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    lab.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=lab.vpc)
    classic(lab, "a2", "internet-facing")
    detach = {"InternetGatewayId": gateway, "VpcId": lab.vpc}
    assert refused(lab.ec2.detach_internet_gateway, **detach) == "DependencyViolation"
    lab.client("elb").delete_load_balancer(LoadBalancerName="a2")
    gone(lab)
    lab.ec2.detach_internet_gateway(**detach)
