"""A head node beside the nodes: what the role efa_nodes launches, and which cluster cannot get one any more."""

from __future__ import annotations

from tests.contract.conftest import idle
from tests.contract.network.conftest import Controller

IMAGE = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


def test_a_head_node_is_launched_once_and_is_no_node(controller: Controller) -> None:
    ec2 = controller.ec2
    (subnet,) = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-west-2d"]}])["Subnets"]
    groups = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [subnet["VpcId"]]}])["SecurityGroups"]
    ec2.import_key_pair(KeyName="bert", PublicKeyMaterial=(controller.folder / "lab.pub").read_bytes())
    controller.variables.update(
        trainium_cluster_name="bert",
        trainium_instance_type="trn1.2xlarge",
        trainium_node_count=1,
        trainium_market="spot",
        trainium_key_name="bert",
        trainium_subnet_ids=[subnet["SubnetId"]],
        trainium_security_group_ids=[groups[0]["GroupId"]],
        efa_nodes_interface_layout="none",
    )
    controller.access_key = "lab"
    controller.api.limit("lab", ["nodes"])
    head = {"trainium_head_instance_type": "m5.2xlarge"}
    told = controller.cases(
        ("efa_nodes:account", {**head, "trainium_image_ssm_parameter": IMAGE}),
        ("efa_nodes", head),
        ("efa_nodes", head),
        ("efa_nodes", {"trainium_cluster_name": "old"}),
        ("efa_nodes:account", {**head, "trainium_cluster_name": "old"}),
        ("trainium:cost", head),
    )
    assert told[:4] == [""] * 4
    assert told[5] == ""
    assert told[4].startswith(
        "The nodes of old in us-west-2 have no head node of their own, and the jobs of their Slurm"
    )
    of_the_role = {"ReadTheNameOfTheImage", "LookAtTheQuota", "LookAtPrices", "LetEc2MakeItsSpotRole"}
    assert of_the_role.isdisjoint(idle(controller.api.needs("lab"), "nodes"))
    launches = [call for call in controller.api.calls("RunInstances") if call["write"]]
    assert [call["parameters"]["InstanceType"] for call in launches] == ["m5.2xlarge", "trn1.2xlarge", "trn1.2xlarge"]
    instances = [one for r in ec2.describe_instances()["Reservations"] for one in r["Instances"]]
    (found,) = [one for one in instances if {"Key": "trainium:role", "Value": "head"} in one["Tags"]]
    assert {"Key": "trainium:cluster", "Value": "bert"} in found["Tags"]
    assert found["ImageId"] == instances[1]["ImageId"]
    assert found.get("InstanceLifecycle", "") == ""
    assert [card["InterfaceType"] for card in found["NetworkInterfaces"]] == ["interface"]
    assert found["MetadataOptions"]["HttpTokens"] == "required"
