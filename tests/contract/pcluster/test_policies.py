"""The policies of ParallelCluster: with them a cluster and an image come and go, and each statement is needed.

What CloudFormation does is judged by its actions, in the name of whoever asked for the stack.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import REGION, idle, policy
from tests.contract.pcluster.conftest import Site
from tests.contract.pcluster.test_life import LOGS, STORAGE
from tests.contract.pcluster.test_role import Item, Role

# Of a cluster, and of an image; both let ParallelCluster make its roles.
CLUSTER, IMAGE = ("parallelcluster", "parallelcluster-iam"), ("image", "parallelcluster-iam")
WAITS = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
# What the role does, below.
OURS = {"KeepTheSoftwareInABucket", "ListBuckets", "LookAtTheQuota"}


def limit(site: Site, name: str, policies: tuple[str, ...], without: str = "") -> None:
    statements = [one for each in policies for one in policy(each) if one["Sid"] != without]
    site.access_key = name
    site.api.control("POST", "policies", {"access_key": name, "statements": statements})


def configured(site: Site) -> dict[str, Any]:
    made = site.configuration(SharedStorage=STORAGE, Monitoring=LOGS)
    made["HeadNode"]["Networking"]["ElasticIp"] = True
    return made


def make(site: Site, name: str) -> None:
    given = ("--cluster-configuration", site.written(configured(site)), "--suppress-validators", "ALL")
    site.pcluster("create-cluster", "--cluster-name", name, *given)


def look_at_nodes(site: Site, user: str) -> None:
    """As the playbooks do: prices, the head node's host keys, and the names that Slurm has for the others."""
    client("pricing", site, user, "us-east-1").get_products(ServiceCode="AmazonEC2", MaxResults=1)
    wanted = [{"Name": "tag:parallelcluster:node-type", "Values": ["HeadNode"]}]
    ((head,),) = [found["Instances"] for found in site.ec2.describe_instances(Filters=wanted)["Reservations"]]
    ec2, names = client("ec2", site, user), client("dynamodb", site, user)
    with pytest.raises(ClientError, match="ec2:GetConsoleOutput"):
        ec2.get_console_output(InstanceId=head["InstanceId"])
    # The role gives it to the whole cluster.
    tag = [{"Key": "trainium:cluster", "Value": "demo"}]
    site.ec2.create_tags(Resources=[head["InstanceId"]], Tags=tag)
    ec2.get_console_output(InstanceId=head["InstanceId"])
    names.scan(TableName="parallelcluster-slurm-demo")


def client(service: str, site: Site, user: str, region: str = REGION) -> Any:
    make: Any = boto3.client
    keys = {"aws_access_key_id": user, "aws_secret_access_key": "x", "region_name": region}
    return make(service, endpoint_url=site.api.url, **keys)


def delete(site: Site, name: str) -> None:
    site.pcluster("delete-cluster", "--cluster-name", name)
    site.until(lambda: "stacks" not in site.left(), 300)


def test_a_cluster_comes_and_goes_with_its_policies(site: Site) -> None:
    site.api.control("POST", "waiting", {"delay": 0.3})
    limit(site, "cluster", CLUSTER)
    make(site, "demo")
    site.wait("demo", "CREATE_COMPLETE", 300)
    for command in (("describe-cluster",), ("update-compute-fleet", "--status", "STOP_REQUESTED")):
        site.pcluster(*command, "--cluster-name", "demo")
    site.pcluster("list-cluster-log-streams", "--cluster-name", "demo")
    look_at_nodes(site, "cluster")
    delete(site, "demo")
    assert site.left() == {}
    assert set(idle(site.api.needs("cluster"), *CLUSTER)) == OURS


def test_without_a_statement_a_stack_is_taken_back_and_says_why(site: Site) -> None:
    limit(site, "less", CLUSTER, without="KeepLogs")
    stacks = client("cloudformation", site, "less")
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "less"}}
    made = {"StackName": "less", "TemplateBody": json.dumps({"Resources": {"Group": group}})}
    with pytest.raises(ClientError, match="not authorized to perform: cloudformation:CreateStack"):
        stacks.create_stack(**made)
    stacks.create_stack(**made, Tags=[{"Key": "parallelcluster:cluster-name", "Value": "less"}])
    site.wait("less", "ROLLBACK_COMPLETE")
    assert "not authorized to perform: logs:CreateLogGroup" in str(site.reasons("less"))
    # Another's stack may have a role with more rights; a tag in the request makes it no cluster's.
    site.client("cloudformation").create_stack(StackName="theirs", TemplateBody=json.dumps({"Resources": {"A": WAITS}}))
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "theirs"}]
    with pytest.raises(ClientError, match="not authorized to perform: cloudformation:UpdateStack"):
        stacks.update_stack(**{**made, "StackName": "theirs"}, Tags=tags)
    with pytest.raises(ClientError, match="not authorized to perform: cloudformation:DeleteStack"):
        stacks.delete_stack(StackName="theirs")
    site.client("cloudformation").delete_stack(StackName="theirs")
    site.client("cloudformation").delete_stack(StackName="less")


def test_an_image_is_built_and_deleted_with_its_policies(site: Site) -> None:
    filters = [{"Name": "name", "Values": ["aws-parallelcluster-*ubuntu-2404*x86_64*"]}]
    (parent,) = site.ec2.describe_images(Owners=["amazon"], Filters=filters)["Images"]
    network = {"SubnetId": site.subnet_id, "SecurityGroupIds": [site.group]}
    build = {"InstanceType": "m5.xlarge", "ParentImage": parent["ImageId"], **network}
    path = site.home / "image.yaml"
    path.write_text(json.dumps({"Build": build}), encoding="utf-8")
    limit(site, "image", IMAGE)
    given = ("--image-id", "mine", "--image-configuration", str(path), "--suppress-validators", "ALL")
    # The stack of a build that failed stays, and goes in the name of whoever deletes the image.
    site.api.control("POST", "waiting", {"mode": "fail", "reason": "for the test", "delay": 0.3})
    site.pcluster("build-image", *given)
    site.wait("mine", "CREATE_FAILED", 300)
    # With this policy nobody else's.
    admin, stacks = site.client("cloudformation"), client("cloudformation", site, "image")
    admin.create_stack(StackName="theirs", TemplateBody=json.dumps({"Resources": {"A": WAITS}}))
    with pytest.raises(ClientError, match="not authorized to perform: cloudformation:DeleteStack"):
        stacks.delete_stack(StackName="theirs")
    admin.delete_stack(StackName="theirs")
    site.pcluster("delete-image", "--image-id", "mine")
    site.until(lambda: "stacks" not in site.left(), 300)
    site.api.control("POST", "waiting", {"mode": "succeed", "delay": 0.3})
    site.pcluster("build-image", *given)
    site.until(lambda: "stacks" not in site.left(), 300)
    site.pcluster("describe-image", "--image-id", "mine")
    site.pcluster("delete-image", "--image-id", "mine")
    assert site.ec2.describe_images(Owners=["self"])["Images"] == []
    # The role uploads what the build runs: test_role_image.py.
    assert set(idle(site.api.needs("image"), *IMAGE)) == OURS - {"LookAtTheQuota"} | {"PutItsSoftwareThere"}


def test_the_bucket_of_the_role_comes_and_goes_with_the_same(site: Site, tmp_path: Path) -> None:
    role, caller = Role(site, tmp_path), {"__parallelcluster_caller": {"account": "123456789012"}}
    limit(site, "bucket", CLUSTER)
    assert role.good(tasks=parts("account", "make_bucket"), **caller)
    assert role.good(tasks_from="delete", **caller)
    assert role.buckets() == []
    assert OURS.isdisjoint(idle(site.api.needs("bucket"), *CLUSTER))


def parts(*names: str) -> list[Item]:
    """Parts of the role, one after the other."""
    include = "ansible.builtin.include_role"
    return [{"name": one, include: {"name": "trainium.cluster.parallelcluster", "tasks_from": one}} for one in names]
