"""The bastion that role network makes: what it is, who may log in to it, and that it goes with the cluster."""

from __future__ import annotations

import base64

from tests.contract.network.conftest import Controller


def test_a_bastion_is_made_once_and_goes_with_the_cluster(controller: Controller) -> None:
    ec2, mine = controller.ec2, [{"Key": "trainium:cluster", "Value": "bert"}]
    tags = [{"ResourceType": "vpc", "Tags": mine}]
    vpc = ec2.create_vpc(CidrBlock="10.77.0.0/16", TagSpecifications=tags)["Vpc"]["VpcId"]
    tags = [{"ResourceType": "subnet", "Tags": mine}]
    subnet = ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.77.0.0/20", AvailabilityZone="us-west-2d", TagSpecifications=tags
    )["Subnet"]["SubnetId"]
    ec2.import_key_pair(KeyName="bert", PublicKeyMaterial=(controller.folder / "lab.pub").read_bytes())
    controller.variables.update(
        trainium_cluster_name="bert",
        trainium_bastion="create",
        trainium_ssh_allowed_cidrs=["192.0.2.0/24"],
        network_cluster_owner="ada",
        __network_owner="ada",
        __network_vpc_id=vpc,
        __network_public_subnet_ids=[subnet],
    )
    controller.access_key = "lab"
    controller.api.limit("lab", ["network", "nodes"])
    assert controller.cases(("network:bastion", {}), ("network:bastion", {})) == ["", ""]
    made = {"CreateSecurityGroup", "RunInstances", "AllocateAddress", "AssociateAddress"}
    assert sorted(action for action in controller.api.writes() if action in made) == sorted(made)
    (node,) = ec2.describe_instances()["Reservations"][0]["Instances"]
    assert (node["InstanceType"], node["SubnetId"], node["KeyName"]) == ("t3.micro", subnet, "bert")
    assert {"Key": "trainium:role", "Value": "bastion"} in node["Tags"]
    assert node["MetadataOptions"]["HttpTokens"] == "required"
    assert node["PublicIpAddress"] == ec2.describe_addresses()["Addresses"][0]["PublicIp"]
    assert [volume["Encrypted"] for volume in ec2.describe_volumes()["Volumes"]] == [True]
    data = ec2.describe_instance_attribute(InstanceId=node["InstanceId"], Attribute="userData")["UserData"]["Value"]
    assert "MaxStartups 200" in base64.b64decode(data).decode()
    (group,) = ec2.describe_security_groups(GroupIds=[node["SecurityGroups"][0]["GroupId"]])["SecurityGroups"]
    assert mine[0] in group["Tags"]
    (rule,) = group["IpPermissions"]
    assert (rule["FromPort"], rule["ToPort"]) == (22, 22)
    assert [one["CidrIp"] for one in rule["IpRanges"]] == ["192.0.2.0/24"]

    controller.limit("teardown")
    assert controller.cases(("teardown", {})) == [""]
    assert ec2.describe_instance_status(IncludeAllInstances=False)["InstanceStatuses"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert "bert-bastion" not in [one["GroupName"] for one in ec2.describe_security_groups()["SecurityGroups"]]
