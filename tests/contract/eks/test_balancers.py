"""Teardown of a cluster whose users made Services and Ingresses: load balancers, and what belongs to these."""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterable
from typing import Any

import pytest

from sandbox.emulator.access.statements import allowed
from tests.contract.conftest import REPOSITORY, policy
from tests.contract.eks.conftest import Eks

Account = Any
Item = dict[str, Any]
MINE = {"trainium:cluster": "bert"}
SERVICE = {"kubernetes.io/cluster/bert": "owned", "kubernetes.io/service-name": "default/web"}
INGRESS = {"elbv2.k8s.aws/cluster": "bert", "ingress.k8s.aws/stack": "default/web"}
STATEMENTS = ["DeleteWhatServicesMade", "DeleteWhatIngressesMade"]


def tag_list(tags: Item) -> list[Item]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


class World:
    """A cluster's network with load balancers as the controllers of Kubernetes make them."""

    def __init__(self, cloud: Account) -> None:
        self.cloud, self.ec2 = cloud, cloud.ec2
        self.classic, self.newer = cloud.client("elb"), cloud.client("elbv2")
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=cloud.vpc)
        self.statements: list[Item] = []
        self.frame = [cloud.vpc, cloud.group, gateway, *cloud.subnets]

    def ours(self) -> None:
        self.ec2.create_tags(Resources=self.frame, Tags=tag_list(MINE))

    def group(self, name: str, tags: Item, vpc: str = "") -> str:
        """A group that the nodes' own lets in, as the controllers have it."""
        made = self.ec2.create_security_group(
            GroupName=name,
            Description=name,
            VpcId=vpc or self.cloud.vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list(tags)}],
        )["GroupId"]
        if not vpc:
            rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made}]}]
            self.ec2.authorize_security_group_ingress(GroupId=self.cloud.group, IpPermissions=rule)
        return str(made)

    def of_service(self, name: str, tags: Item, subnet: str = "", vpc: str = "") -> None:
        self.classic.create_load_balancer(
            LoadBalancerName=name,
            Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 30080}],
            Subnets=[subnet or self.cloud.subnets[0]],
            SecurityGroups=[self.group(f"k8s-elb-{name}", {key: tags[key] for key in tags if "/cluster/" in key}, vpc)],
            Tags=tag_list(tags),
        )

    def of_controller(self, name: str, kind: str, tags: Item) -> str:
        shared = {**tags, "elbv2.k8s.aws/resource": "backend-sg"}
        groups = [self.group(f"k8s-{name}", tags), self.group(f"k8s-traffic-{name}", shared)]
        arn = self.newer.create_load_balancer(
            Name=name, Type=kind, Subnets=self.cloud.subnets, SecurityGroups=groups, Tags=tag_list(tags)
        )["LoadBalancers"][0]["LoadBalancerArn"]
        protocol = "HTTP" if kind == "application" else "TCP"
        target = self.newer.create_target_group(
            Name=name, Protocol=protocol, Port=80, VpcId=self.cloud.vpc, Tags=tag_list(tags)
        )["TargetGroups"][0]["TargetGroupArn"]
        action = {"Type": "forward", "TargetGroupArn": target}
        self.newer.create_listener(LoadBalancerArn=arn, Protocol=protocol, Port=80, DefaultActions=[action])
        return str(arn)

    def left(self) -> set[str]:
        """The names of all load balancers and target groups, and of the security groups that they have had."""
        groups = self.ec2.describe_security_groups()["SecurityGroups"]
        return {
            *(one["LoadBalancerName"] for one in self.classic.describe_load_balancers()["LoadBalancerDescriptions"]),
            *(one["LoadBalancerName"] for one in self.newer.describe_load_balancers()["LoadBalancers"]),
            *(one["TargetGroupName"] for one in self.newer.describe_target_groups()["TargetGroups"]),
            *(one["GroupName"] for one in groups if one["GroupName"].startswith("k8s-")),
        }

    def vpcs(self) -> list[str]:
        found = self.ec2.describe_vpcs(Filters=[{"Name": "isDefault", "Values": ["false"]}])["Vpcs"]
        return [one["VpcId"] for one in found]

    def teardown(self, **arguments: Any) -> Item:
        given = {"cluster_name": "bert", "state": "absent", **arguments}
        result: Item = self.cloud.run("internal.cluster_resources", given)
        return result

    def limit(self, without: Iterable[str] = ()) -> None:
        """Whoever runs it has the policy of teardown, bound to the cluster."""
        bound = runpy.run_path(str(REPOSITORY / "docs" / "tools" / "bind_policy.py"))["bound"]
        self.statements = [bound(one, "bert") for one in policy("teardown") if one["Sid"] not in without]
        self.cloud.api.control("POST", "policies", {"access_key": "teardown", "statements": self.statements})
        self.cloud.environment["AWS_ACCESS_KEY_ID"] = "teardown"


@pytest.fixture
def world(cloud: Account) -> World:
    return World(cloud)


def test_what_kubernetes_made_in_the_network_goes_with_it_and_nothing_else(world: World) -> None:
    world.ours()
    world.limit()
    world.of_service("a1", SERVICE)
    world.of_controller("k8s-alb", "application", INGRESS)
    world.of_controller("k8s-nlb", "network", INGRESS)
    # Another network's, with the same tags; it may be of another cluster of the same name.
    other = world.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = world.ec2.create_subnet(VpcId=other, CidrBlock="10.9.0.0/20")["Subnet"]["SubnetId"]
    world.of_service("theirs", SERVICE, subnet, other)
    # It is in use for a moment after its load balancer is gone.
    world.cloud.api.fault("DeleteTargetGroup", "ResourceInUse", times=1)
    done = world.teardown()
    assert not done.get("failed"), done["msg"]
    assert done["found"]["load balancers"] == ["a1", "k8s-alb", "k8s-nlb"]
    assert done["found"]["target groups"] == ["k8s-alb", "k8s-nlb"]
    assert len(done["found"]["security groups of Kubernetes"]) == 5
    assert (world.left(), world.vpcs()) == ({"theirs", "k8s-elb-theirs"}, [other])
    needs = world.cloud.api.needs("teardown")
    for sid in STATEMENTS:
        rest = [one for one in world.statements if one["Sid"] != sid]
        assert not all(allowed(rest, need) for need in needs)
        # As it is published, with the name of nobody's cluster, it allows none of that.
        whole = [one for one in policy("teardown") if one["Sid"] not in STATEMENTS or one["Sid"] == sid]
        assert not all(allowed(whole, need) for need in needs)


def test_what_others_made_in_the_network_and_what_is_protected_stays_and_is_named(world: World) -> None:
    world.ours()
    world.of_service("a1", SERVICE)
    world.of_service("shared", {**SERVICE, "kubernetes.io/cluster/bert": "shared"})
    world.of_controller("by-hand", "network", {"elbv2.k8s.aws/cluster": "bert-2"})
    arn = world.of_controller("k8s-alb", "application", INGRESS)
    protection = [{"Key": "deletion_protection.enabled", "Value": "true"}]
    world.newer.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=protection)
    done = world.teardown()
    assert done["failed"]
    assert "the load balancers by-hand and shared lie in its network and are not of it, so delete them" in done["msg"]
    assert "would not delete the load balancer k8s-alb" in done["msg"]
    assert "deletion protection is enabled" in done["msg"]
    assert world.left() >= {"shared", "by-hand", "k8s-alb", "k8s-elb-shared", "k8s-by-hand"}
    assert not {"a1", "k8s-elb-a1"} & world.left()
    assert world.vpcs() == [world.cloud.vpc]


def test_in_a_network_of_the_user_it_is_the_cluster_of_eks_that_tells_of_it(eks: Eks) -> None:
    world = World(eks.cloud)
    network = {"subnetIds": eks.subnets}
    eks.client.create_cluster(name="bert", roleArn=eks.role, resourcesVpcConfig=network, tags=MINE)
    world.of_service("a1", SERVICE)
    world.of_service("theirs", {**SERVICE, "kubernetes.io/cluster/bert": "shared"})
    # It is busy, and would be refused.
    eks.client.get_waiter("cluster_active").wait(name="bert", WaiterConfig={"Delay": 1})
    done = world.teardown()
    assert not done.get("failed"), done["msg"]
    assert (done["found"]["EKS clusters"], done["found"]["load balancers"]) == (["bert"], ["a1"])
    # Groups cost nothing there, keep nothing from going, and are in rules of the user's.
    assert (world.left(), world.vpcs()) == ({"theirs", "k8s-elb-a1", "k8s-elb-theirs"}, [world.cloud.vpc])


@pytest.mark.parametrize("whose", ["a cluster of EKS made by hand", "a network without the owner's tag"])
def test_the_name_alone_does_not_make_them_the_clusters(eks: Eks, whose: str) -> None:
    world = World(eks.cloud)
    world.ours()
    if whose.startswith("a cluster"):
        world.ec2.create_tags(Resources=[world.cloud.vpc], Tags=tag_list({"trainium:owner": "me"}))
        eks.client.create_cluster(name="bert", roleArn=eks.role, resourcesVpcConfig={"subnetIds": eks.subnets})
    world.of_service("a1", SERVICE)
    world.of_controller("k8s-nlb", "network", INGRESS)
    done = world.teardown(owner="me")
    assert done["failed"]
    assert "the load balancers a1 and k8s-nlb lie in its network and are not of it" in done["msg"]
    assert world.left() == {"a1", "k8s-nlb", "k8s-elb-a1", "k8s-k8s-nlb", "k8s-traffic-k8s-nlb"}


def test_a_run_that_was_killed_is_taken_up(world: World) -> None:
    world.ours()
    world.of_service("a1", SERVICE)
    world.classic.delete_load_balancer(LoadBalancerName="a1")
    # That of EKS stayed, and lets in those of load balancers, in whatever order EC2 shows them.
    groups = [world.group(f"k8s-elb-{name}", {"kubernetes.io/cluster/bert": "owned"}) for name in "bcd"]
    for first in (groups[0], groups[2]):
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": first}]}]
        world.ec2.authorize_security_group_ingress(GroupId=groups[1], IpPermissions=rule)
    done = world.teardown()
    assert not done.get("failed"), done["msg"]
    assert "load balancers" not in done["found"]
    assert len(done["found"]["security groups of Kubernetes"]) == 4
    assert (world.left(), world.vpcs()) == (set(), [])


def test_who_may_not_look_at_load_balancers_is_told_so_where_it_matters(world: World) -> None:
    world.ours()
    world.limit(without=["LookForLoadBalancers"])
    world.of_service("a1", SERVICE)
    done = world.teardown()
    assert done["failed"]
    (said,) = done["warnings"]
    assert "not authorized to perform: elasticloadbalancing:DescribeLoadBalancers" in str(said)
    world.classic.delete_load_balancer(LoadBalancerName="a1")
    # Its interfaces stay a while, of which whoever may not look at load balancers knows nothing.
    until = time.monotonic() + 60
    while any("ELB" in one["Description"] for one in world.ec2.describe_network_interfaces()["NetworkInterfaces"]):
        assert time.monotonic() < until
        time.sleep(0.1)
    done = world.teardown()
    assert not done.get("failed"), done["msg"]
    assert "warnings" not in done
    assert world.vpcs() == []
