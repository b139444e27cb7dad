"""The role teardown: what it deletes and in which order, and what it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.conftest import REPOSITORY, actions, idle, policy
from tests.contract.network.conftest import Controller, changed
from tests.contract.warm_python import warm_python

MINE = [{"Key": "trainium:cluster", "Value": "bert"}]
FOREIGN = [{"Key": "trainium:cluster", "Value": "bert-2"}, {"Key": "Name", "Value": "bert"}]
# Of these EC2 forgets nothing for an hour, so that they are told apart by their state.
GONE = ("deleted", "terminated", "failed")


class World:
    """Everything that a network consists of, with tags."""

    def __init__(self, controller: Controller, tags: list[dict[str, str]], key: str) -> None:
        self.ec2: Any = controller.ec2
        self.zone = "us-west-2d"

        def tagged(kind: str) -> list[dict[str, Any]]:
            return [{"ResourceType": kind, "Tags": tags}]

        ec2 = self.ec2
        self.vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(
            VpcId=self.vpc, CidrBlock="10.9.0.0/20", AvailabilityZone=self.zone, TagSpecifications=tagged("subnet")
        )["Subnet"]["SubnetId"]
        # One with the tag of the cluster alone would be the user's.
        role = {"Key": "trainium:role", "Value": "network"}
        allocated = [{"ResourceType": "elastic-ip", "Tags": [*tagged("elastic-ip")[0]["Tags"], role]}]
        # Without an internet gateway it fails; EC2 shows it for an hour.
        spare = ec2.allocate_address(Domain="vpc", TagSpecifications=allocated)["AllocationId"]
        self.failed = self._nat(spare, tagged("natgateway"))
        made = ec2.create_internet_gateway(TagSpecifications=tagged("internet-gateway"))["InternetGateway"]
        self.gateway = made["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        address = ec2.allocate_address(Domain="vpc", TagSpecifications=allocated)["AllocationId"]
        self.nat = self._nat(address, tagged("natgateway"))
        table = ec2.create_route_table(VpcId=self.vpc, TagSpecifications=tagged("route-table"))["RouteTable"]
        self.table = table["RouteTableId"]
        ec2.associate_route_table(RouteTableId=self.table, SubnetId=self.subnet)
        ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            ServiceName="com.amazonaws.us-west-2.s3",
            RouteTableIds=[self.table],
            TagSpecifications=tagged("vpc-endpoint"),
        )
        group = ec2.create_security_group(
            GroupName="efa", Description="efa", VpcId=self.vpc, TagSpecifications=tagged("security-group")
        )
        self.group = group["GroupId"]
        ec2.create_volume(AvailabilityZone=self.zone, Size=1, TagSpecifications=tagged("volume"))
        ec2.create_network_interface(SubnetId=self.subnet, TagSpecifications=tagged("network-interface"))
        data = {"InstanceType": "t3.micro"}
        ec2.create_launch_template(
            LaunchTemplateName=key, LaunchTemplateData=data, TagSpecifications=tagged("launch-template")
        )
        iam = controller.client("iam")
        path = f"/trainium/us-west-2/{key}/"
        iam.create_role(RoleName=f"{key}-eks-node", Path=path, AssumeRolePolicyDocument="{}", Tags=tags)
        iam.attach_role_policy(
            RoleName=f"{key}-eks-node", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
        )
        own = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_role_policy(RoleName=f"{key}-eks-node", PolicyName="own", PolicyDocument=json.dumps(own))
        # Without its owner's tag it could be anybody's.
        owner = {"trainium:owner": controller.client("sts").get_caller_identity()["Arn"]}
        owned = [
            {"Key": one, "Value": value}
            for one, value in {**owner, **{tag["Key"]: tag["Value"] for tag in tags}}.items()
        ]
        kept = {"encryptionType": "KMS", "kmsKey": controller.client("kms").create_key()["KeyMetadata"]["KeyId"]}
        controller.client("ecr").create_repository(
            repositoryName=f"trainium/{key}/training", tags=owned, encryptionConfiguration=kept
        )
        # Of somebody else, by whatever name.
        controller.client("ecr").create_repository(repositoryName=f"trainium/bert/{key}")
        ec2.create_placement_group(GroupName=key, Strategy="cluster", TagSpecifications=tagged("placement-group"))
        ec2.create_key_pair(KeyName=key, TagSpecifications=tagged("key-pair"))
        ec2.run_instances(
            ImageId=ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
            InstanceType="t3.micro",
            MinCount=1,
            MaxCount=1,
            NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": self.subnet, "DeleteOnTermination": True}],
            TagSpecifications=tagged("instance"),
        )

    def _nat(self, address: str, tags: list[dict[str, Any]]) -> str:
        made = self.ec2.create_nat_gateway(SubnetId=self.subnet, AllocationId=address, TagSpecifications=tags)
        return str(made["NatGateway"]["NatGatewayId"])


def left(controller: Controller, tags: list[dict[str, str]]) -> dict[str, int]:
    """How many of each kind carry the tags and are still there."""
    ec2 = controller.ec2
    filters = [{"Name": f"tag:{tag['Key']}", "Values": [tag["Value"]]} for tag in tags]
    looks = {
        "instances": [i for r in ec2.describe_instances(Filters=filters)["Reservations"] for i in r["Instances"]],
        "NAT gateways": ec2.describe_nat_gateways(Filters=filters)["NatGateways"],
        "addresses": ec2.describe_addresses(Filters=filters)["Addresses"],
        "VPC endpoints": ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"],
        "volumes": ec2.describe_volumes(Filters=filters)["Volumes"],
        "network interfaces": ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"],
        "placement groups": ec2.describe_placement_groups(Filters=filters)["PlacementGroups"],
        "security groups": ec2.describe_security_groups(Filters=filters)["SecurityGroups"],
        "route tables": ec2.describe_route_tables(Filters=filters)["RouteTables"],
        "internet gateways": ec2.describe_internet_gateways(Filters=filters)["InternetGateways"],
        "subnets": ec2.describe_subnets(Filters=filters)["Subnets"],
        "VPCs": ec2.describe_vpcs(Filters=filters)["Vpcs"],
        "key pairs": ec2.describe_key_pairs(Filters=filters)["KeyPairs"],
        "launch templates": ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"],
    }
    states = {kind: [_state(item) for item in items] for kind, items in looks.items()}
    living = {kind: [state for state in found if state not in GONE] for kind, found in states.items()}
    return {kind: len(found) for kind, found in living.items() if found}


def _state(item: dict[str, Any]) -> str:
    state = item.get("State", "")
    return str(state.get("Name") if isinstance(state, dict) else state).lower()


@pytest.fixture(scope="module")
def worlds(controller: Controller) -> World:
    """The cluster's network, and one of somebody else's beside it."""
    controller.variables["trainium_cluster_name"] = "bert"
    controller.limit("teardown")
    World(controller, FOREIGN, "foreign")
    return World(controller, MINE, "bert")


def built(controller: Controller, owner: str | None) -> str:
    """An image as image.yml builds it, of whoever runs the test or of another owner."""
    ec2: Any = controller.ec2
    parent = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    made: str = ec2.copy_image(Name=f"of-{owner}", SourceImageId=parent, SourceRegion="us-west-2")["ImageId"]
    owner = owner or controller.client("sts").get_caller_identity()["Arn"]
    own = {"trainium:owner": owner, "trainium:image": "0123456789abcdef"}
    ec2.create_tags(Resources=[made], Tags=[*MINE, *({"Key": key, "Value": value} for key, value in own.items())])
    return made


def test_check_mode_says_what_there_is_and_deletes_nothing(controller: Controller, worlds: World) -> None:
    controller.api.clear_calls()
    done = controller.role("teardown", "--check")
    assert changed(done) == 1
    assert controller.api.writes() == []
    for name in (worlds.vpc, worlds.subnet, worlds.nat, worlds.table, worlds.gateway, worlds.group):
        assert name in done.stdout
    assert worlds.failed not in done.stdout


def test_everything_goes_in_the_order_that_ec2_allows_and_nothing_else(controller: Controller, worlds: World) -> None:
    foreign = left(controller, FOREIGN)
    assert len(foreign) == len(left(controller, MINE)) == 14
    images = [built(controller, owner) for owner in (None, "somebody")]
    controller.api.clear_calls()
    done = controller.role("teardown")
    assert changed(done) == 1
    assert "Nothing is left of the cluster bert" in done.stdout
    # What image.yml has built stays, and costs money.
    assert (
        f"in us-west-2 but the image {images[0]}, which is billed until: aws ec2 deregister-image --region us-west-2 "
        f"--delete-associated-snapshots --image-id {images[0]}."
    ) in " ".join(done.stdout.split())
    assert images[1] not in done.stdout
    assert controller.deletions() == [
        "TerminateInstances",
        "DeleteNatGateway",
        "ReleaseAddress",
        "DeleteVpcEndpoints",
        "DeleteLaunchTemplate",
        "DeleteVolume",
        "DeleteNetworkInterface",
        "DeletePlacementGroup",
        "DeleteSecurityGroup",
        "DisassociateRouteTable",
        "DeleteRouteTable",
        "DetachInternetGateway",
        "DeleteInternetGateway",
        "DeleteSubnet",
        "DeleteVpc",
        "DeleteKeyPair",
        "DeleteRepository",
        "DeleteRolePolicy",
        "DetachRolePolicy",
        "DeleteRole",
    ]
    roles = controller.client("iam").list_roles()["Roles"]
    assert [role["RoleName"] for role in roles] == ["foreign-eks-node"]
    repositories = controller.client("ecr").describe_repositories()["repositories"]
    assert sorted(one["repositoryName"] for one in repositories) == [
        "trainium/bert/bert",
        "trainium/bert/foreign",
        "trainium/foreign/training",
    ]
    assert left(controller, MINE) == {}
    assert left(controller, FOREIGN) == foreign
    # Its policy allows what it did and nothing else; what the playbook does beside is in test_policies.py.
    apart = {"LookForParallelCluster", "WorkAlone", "DeleteTheClusterOfEks", "LookAtItsLogs", "DeleteItsLogs"}
    others = [set(one["Action"]) for one in policy("teardown") if one["Sid"] in apart]
    apart |= {"DeleteInterfacesOfPods", "DeleteWhatServicesMade", "DeleteWhatIngressesMade"}
    nodes = {"eks:DescribeCluster", "eks:DescribeNodegroup", "eks:ListNodegroups"}
    # A network without an owner's tag is not asked for target groups.
    asked = ("DeleteLoadBalancer", "DeleteTargetGroup", "DescribeTags", "DescribeTargetGroups")
    balancers = {f"elasticloadbalancing:{one}" for one in asked}
    # And there is no file system that was retained.
    playbook = {"elasticfilesystem:DescribeMountTargets"}.union(nodes, balancers, *others)
    assert controller.api.used("teardown") - {"sts:GetCallerIdentity"} == actions("teardown") - playbook
    assert sorted(idle(controller.api.needs("teardown"), "teardown")) == sorted(apart)
    for image in images:
        controller.ec2.deregister_image(ImageId=image)


def test_a_second_run_finds_nothing(controller: Controller, worlds: World) -> None:
    controller.api.clear_calls()
    # Whoever may not look for images is told so, and goes on.
    controller.api.fault("DescribeImages", "UnauthorizedOperation", times=1)
    done = controller.role("teardown")
    assert changed(done) == 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "where image.yml built images for the cluster bert, they stay and are billed" in said
    assert "Nothing belongs to the cluster bert in us-west-2; if it was made in another region" in done.stdout
    assert controller.api.writes() == []


def test_the_role_runs_as_its_page_shows_it(controller: Controller, worlds: World) -> None:
    page = (REPOSITORY / "roles/teardown/README.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    path = controller.folder / "example.yml"
    path.write_text(example.replace("NAME", "bert").replace("REGION", "us-west-2"), encoding="utf-8")
    done = controller.run(path, "-e", json.dumps({"ansible_python_interpreter": warm_python()}))
    assert changed(done) == 0
    assert "Nothing belongs to the cluster bert in us-west-2" in done.stdout


def test_the_playbook_wants_the_name_of_the_cluster(controller: Controller) -> None:
    controller.api.clear_calls()
    done = controller.run(REPOSITORY / "playbooks" / "teardown.yml")
    assert done.returncode == 2
    assert "teardown.yml deletes a whole cluster and takes no default for its name" in " ".join(done.stdout.split())
    assert controller.api.calls() == []


def test_instances_go_in_one_call_of_which_a_protected_one_keeps_nobody(controller: Controller) -> None:
    controller.variables["trainium_cluster_name"] = "many"
    ec2 = controller.ec2
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    owner = controller.client("sts").get_caller_identity()["Arn"]
    tags = [{"Key": "trainium:cluster", "Value": "many"}, {"Key": "trainium:owner", "Value": owner}]
    made = ec2.run_instances(
        ImageId=image,
        InstanceType="t3.micro",
        MinCount=3,
        MaxCount=3,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"]
    names = sorted(one["InstanceId"] for one in made)
    ec2.modify_instance_attribute(InstanceId=names[0], DisableApiTermination={"Value": True})
    controller.api.clear_calls()
    done = controller.role("teardown")
    assert done.returncode != 0
    assert names[0] in done.stdout
    asked = [call["parameters"] for call in controller.api.calls("TerminateInstances")]
    assert [len([key for key in one if key.startswith("InstanceId")]) for one in asked] == [3, 1, 1, 1]
    states = {
        one["InstanceId"]: one["State"]["Name"]
        for found in ec2.describe_instances(InstanceIds=names)["Reservations"]
        for one in found["Instances"]
    }
    assert states.pop(names[0]) == "running"
    assert set(states.values()) <= {"shutting-down", "terminated"}
    ec2.modify_instance_attribute(InstanceId=names[0], DisableApiTermination={"Value": False})
    assert controller.role("teardown").returncode == 0
