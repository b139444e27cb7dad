"""The role eks_cluster: from an account with nothing to nodes in a cluster, and the same again without a change."""

from __future__ import annotations

import base64
import email
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.emulator.server.control import CALLER
from tests.contract.conftest import REPOSITORY, idle
from tests.contract.eks.test_policies import ALL, OF_THE_ROLE
from tests.contract.network.conftest import Controller, changed, controller

__all__ = ["controller"]
Item = dict[str, Any]
NAME = "bert"
ADMIN = "arn:aws:iam::123456789012:role/ml"


def play(controller: Controller, *roles: str) -> Path:
    """The roles one after the other, as in the playbooks."""
    include = "ansible.builtin.include_role"
    return controller.play([{"name": role, include: {"name": f"trainium.cluster.{role}"}} for role in roles])


@pytest.fixture(scope="module")
def made(controller: Controller) -> Item:
    """The cluster of all tests here, from an empty account, and what was promised before."""
    controller.variables.update(
        trainium_cluster_name=NAME,
        trainium_backend="eks",
        trainium_owner="me",
        trainium_report_dir=str(controller.folder / "reports"),
        trainium_eks_admins=[ADMIN],
        network_address_service=f"{controller.api.url}/sandbox-api/address",
    )
    controller.client("iam").create_role(RoleName="ml", AssumeRolePolicyDocument="{}")
    controller.limit("eks")
    controller.api.limit("eks", list(ALL))
    # As validate.yml does; kubectl's tokens come from the stand-in of the AWS CLI.
    controller.environment["PATH"] = f"{REPOSITORY / 'sandbox' / 'standins' / 'controller'}:{os.environ['PATH']}"
    assert changed(controller.role("eks_cluster:account")) == 0
    controller.api.clear_calls()
    promised = controller.run(play(controller, "network", "eks_cluster"), "--check", "--diff")
    assert changed(promised) > 5 and controller.api.writes() == []
    done = controller.run(play(controller, "network", "eks_cluster"))
    assert changed(done) > 5
    return {"promised": promised.stdout, "done": done.stdout}


def test_a_cluster_with_nodes_that_have_every_interface(controller: Controller, made: Item) -> None:
    eks, ec2 = controller.client("eks"), controller.ec2
    cluster = eks.describe_cluster(name=NAME)["cluster"]
    network = cluster["resourcesVpcConfig"]
    assert (cluster["status"], cluster["version"]) == ("ACTIVE", "1.35")
    assert network["publicAccessCidrs"] == [f"{CALLER}/32"] and network["endpointPrivateAccess"]
    assert cluster["tags"] == {"trainium:cluster": NAME, "trainium:owner": "me"}
    assert ADMIN in eks.list_access_entries(clusterName=NAME)["accessEntries"]
    group = eks.describe_nodegroup(clusterName=NAME, nodegroupName="trainium")["nodegroup"]
    # The newest image whose driver fits SDK 2.29.1, not the recommended one.
    assert (group["releaseVersion"], group["amiType"]) == ("1.35.6-20260625", "AL2023_x86_64_NEURON")
    assert group["labels"] == {"trainium.cluster/group": "trainium"} and len(group["subnets"]) == 1
    assert len(eks.describe_nodegroup(clusterName=NAME, nodegroupName="system")["nodegroup"]["subnets"]) >= 2
    mine = [{"Name": "tag:eks:nodegroup-name", "Values": ["trainium"]}]
    nodes = [node for found in ec2.describe_instances(Filters=mine)["Reservations"] for node in found["Instances"]]
    assert [len(node["NetworkInterfaces"]) for node in nodes] == [8, 8]
    assert {node["Placement"]["GroupName"] for node in nodes} == {"bert-trainium"}
    groups = {one["GroupId"] for one in nodes[0]["NetworkInterfaces"][0]["Groups"]}
    assert network["clusterSecurityGroupId"] in groups and len(groups) == 2
    assert {tag["Key"]: tag["Value"] for tag in nodes[0]["Tags"]}["trainium:role"] == "kubernetes"
    hosts = controller.api.control("GET", "hosts")
    host = next(one for one in hosts if one["instance_id"] == nodes[0]["InstanceId"])
    kinds = [part.get_content_type() for part in email.message_from_bytes(base64.b64decode(host["user_data"])).walk()]
    assert kinds[1:] == ["text/x-shellscript", "application/node.eks.aws"]


def test_subnets_are_for_load_balancers_and_nobody_logs_in(controller: Controller, made: Item) -> None:
    subnets = controller.ec2.describe_subnets(Filters=[{"Name": "tag:trainium:cluster", "Values": [NAME]}])["Subnets"]
    tags = [{tag["Key"]: tag["Value"] for tag in subnet["Tags"]} for subnet in subnets]
    for one in tags:
        assert one[f"kubernetes.io/role/{'elb' if one['trainium:subnet'] == 'public' else 'internal-elb'}"] == "1"
    assert len({subnet["AvailabilityZone"] for subnet in subnets}) >= 2
    filters = [{"Name": "tag:trainium:cluster", "Values": [NAME]}]
    (group,) = controller.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    assert [rule.get("FromPort") for rule in group["IpPermissions"]] == [None]
    assert controller.ec2.describe_key_pairs()["KeyPairs"] == []


def test_roles_have_what_they_need_and_no_more(controller: Controller, made: Item) -> None:
    iam = controller.client("iam")
    # IAM is one for all regions, and clusters of the name may be in others.
    path, stem = "/trainium/us-west-2/bert/", f"bert-us-west-2-{hashlib.sha256(b'us-west-2/bert').hexdigest()[:8]}"
    for name, policies in (
        (f"{stem}-eks-cluster", {"AmazonEKSClusterPolicy"}),
        (
            f"{stem}-eks-node",
            {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy"},
        ),
    ):
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        assert {policy["PolicyName"] for policy in attached} == policies
        role = iam.get_role(RoleName=name)["Role"]
        assert role["Path"] == path and {"Key": "trainium:cluster", "Value": NAME} in role["Tags"]
    assert iam.list_instance_profiles()["InstanceProfiles"] == []


def test_the_kubeconfig_is_for_its_owner_alone(controller: Controller, made: Item) -> None:
    path = controller.folder / "reports" / "bert.kubeconfig"
    assert path.stat().st_mode & 0o777 == 0o600
    written = yaml.safe_load(path.read_text())
    cluster = controller.client("eks").describe_cluster(name=NAME)["cluster"]
    assert written["clusters"][0]["cluster"] == {
        "server": cluster["endpoint"],
        "certificate-authority-data": cluster["certificateAuthority"]["data"],
    }
    command = written["users"][0]["user"]["exec"]
    assert [command["command"], *command["args"]][:4] == ["aws", "--region", "us-west-2", "eks"]
    assert written["contexts"][0]["context"]["namespace"] == "trainium"


def test_a_second_run_changes_nothing(controller: Controller, made: Item) -> None:
    controller.api.clear_calls()
    assert changed(controller.run(play(controller, "network", "eks_cluster"))) == 0
    assert controller.api.writes() == []


def test_roles_and_logs_of_somebody_else_are_not_taken(controller: Controller, made: Item) -> None:
    """A cluster of the name was there once, or somebody knows the names that are to come; nothing is made then."""
    iam, logs = controller.client("iam"), controller.client("logs")
    subnets = controller.client("eks").describe_cluster(name=NAME)["cluster"]["resourcesVpcConfig"]["subnetIds"]
    more = {
        "trainium_cluster_name": "new",
        "eks_cluster_subnet_ids": subnets,
        "eks_cluster_security_group_ids": ["sg-1a2b3c4d"],
    }
    role = f"new-us-west-2-{hashlib.sha256(b'us-west-2/new').hexdigest()[:8]}-eks-node"
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    controller.api.clear_calls()
    said = controller.run(play(controller, "eks_cluster"), "-e", json.dumps(more))
    assert (
        said.returncode != 0 and f"The IAM role {role} does not lie at the path /trainium/us-west-2/new/" in said.stdout
    )
    iam.delete_role(RoleName=role)
    logs.create_log_group(logGroupName="/aws/eks/new/cluster", tags={"trainium:cluster": "newer"})
    said = controller.run(play(controller, "eks_cluster"), "-e", json.dumps(more))
    assert said.returncode != 0 and "The log group /aws/eks/new/cluster is there without the tag" in said.stdout
    assert controller.api.writes() == ["DeleteRole", "CreateLogGroup"]  # those of this test
    logs.delete_log_group(logGroupName="/aws/eks/new/cluster")


def test_the_account_is_asked_for_the_nodes_that_are_missing(controller: Controller, made: Item) -> None:
    """Two of 128 vCPUs run. A set of efa_instance's own would refuse to grow, as EKS launches nodes otherwise."""
    for quota, count, refused in ((300, 2, False), (300, 3, True), (384, 3, False)):
        controller.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": quota})
        groups = [{"name": "trainium", "instance_type": "trn1.32xlarge", "count": count}]
        asked = controller.role("eks_cluster:account", "-e", json.dumps({"eks_cluster_node_groups": groups}))
        assert (asked.returncode != 0) == refused, asked.stdout
        assert ("of which 256 are in use; ask for 384" in asked.stdout) == refused


def test_its_policy_has_nothing_idle(controller: Controller, made: Item) -> None:
    """What the role does not need is for the modules: test_policies.py."""
    assert OF_THE_ROLE.isdisjoint(idle(controller.api.needs("eks"), *ALL))


def test_a_cluster_of_somebody_else_is_used_as_it_is_without_a_call(controller: Controller) -> None:
    config = controller.folder / "theirs.kubeconfig"
    config.write_text("{}")
    more = {**controller.variables, "trainium_cluster_name": NAME, "trainium_backend": "eks"}
    more.update(trainium_eks_create=False, trainium_kubeconfig=str(config))
    controller.api.clear_calls()
    assert changed(controller.run(REPOSITORY / "playbooks" / "compute.yml", "-e", json.dumps(more))) == 0
    assert controller.api.calls() == [] and config.read_text() == "{}"


def test_a_name_belongs_to_one_backend(controller: Controller, made: Item) -> None:
    said = controller.cases(("trainium:backend", {"trainium_backend": "ec2"}), ("trainium:backend", {}))
    assert "were made with trainium_backend eks" in said[0] and said[1] == ""


def test_teardown_leaves_nothing(controller: Controller, made: Item) -> None:
    """Also what outlives the cluster: interfaces that the CNI plugin made, templates, roles and logs."""
    ec2, eks, iam = controller.ec2, controller.client("eks"), controller.client("iam")
    subnet = eks.describe_cluster(name=NAME)["cluster"]["resourcesVpcConfig"]["subnetIds"][0]
    # A cluster of the same name in another region has roles, too.
    given = [{"Key": "trainium:cluster", "Value": NAME}]
    theirs = {"RoleName": "bert-eu-north-1-eks-node", "Path": "/trainium/eu-north-1/bert/", "Tags": given}
    iam.create_role(**theirs, AssumeRolePolicyDocument="{}")
    tags = [{"Key": "cluster.k8s.amazonaws.com/name", "Value": NAME}]
    specification = [{"ResourceType": "network-interface", "Tags": tags}]
    ec2.create_network_interface(SubnetId=subnet, TagSpecifications=specification)
    controller.limit("teardown")
    promised = controller.role("teardown", "--check")
    assert changed(promised) == 1
    for name in ("bert/trainium", "bert/system", "-eks-node", "-eks-cluster", "lt-"):
        assert name in promised.stdout, name
    controller.api.clear_calls()
    done = controller.role("teardown")
    assert changed(done) == 1
    kept = "Nothing is left of the cluster bert in us-west-2 but /aws/eks/bert/cluster in CloudWatch"
    assert kept in done.stdout.replace("\n", " ")
    deleted = controller.deletions()
    done = controller.role("teardown", "-e", "teardown_keep_logs=false")
    assert changed(done) == 1 and "Nothing is left of the cluster bert in us-west-2." in done.stdout
    assert deleted[:2] == [f"DELETE /clusters/{NAME}/node-groups/{name}" for name in ("system", "trainium")]
    assert eks.list_clusters()["clusters"] == [] and ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert sorted(role["RoleName"] for role in iam.list_roles()["Roles"]) == ["bert-eu-north-1-eks-node", "ml"]
    assert controller.client("logs").describe_log_groups()["logGroups"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    mine = [{"Name": "tag:trainium:cluster", "Values": [NAME]}]
    assert ec2.describe_vpcs(Filters=mine)["Vpcs"] == []
    for_eks = {"LookForEks", "DeleteTheClusterOfEks", "DeleteItsRoles", "LookForLogs", "LookAtItsLogs", "DeleteItsLogs"}
    for_eks.add("DeleteInterfacesOfPods")
    assert for_eks.isdisjoint(idle(controller.api.needs("teardown"), "teardown"))
