"""The policies of file systems, capacity and datasets: with one its module passes, without a statement it does not.

What a full life of a module needs is what the emulator noted; it judges actions, resources and conditions.
"""

from __future__ import annotations

import functools
import json
import urllib.request
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import unwrapped

from sandbox.emulator.access.permissions import S3
from tests.contract.conftest import REGION, REPOSITORY, Account, actions, idle, policy
from tests.contract.ecr.program import builder

Item = dict[str, Any]
LONGEST = 6144  # characters of a managed policy, without white space ("IAM and AWS STS quotas")


# Actions that are no operations (Service Authorization Reference).
PERMISSIONS = {
    *("iam:PassRole", "kms:ReEncryptFrom", "kms:ReEncryptTo", "lambda:InvokeFunction", "ssmmessages:OpenDataChannel"),
    *("s3:DeleteObjectVersion", "s3:GetObjectVersion"),
    *(f"s3:{action}" for action in S3.values()),
}
MODELS = {
    "elasticfilesystem": ["efs"],
    "elasticloadbalancing": ["elb", "elbv2"],
    "servicequotas": ["service-quotas"],
}


@functools.cache
def operations(service: str) -> set[str]:
    session = botocore.session.get_session()
    models = [session.get_service_model(name) for name in MODELS.get(service, [service])]
    return {name for model in models for name in model.operation_names}


def is_known(action: str) -> bool:
    service, _colon, name = action.partition(":")
    return action in PERMISSIONS or name in operations(service)


class User:
    """Somebody with one policy."""

    def __init__(self, cloud: Account, name: str) -> None:
        self.cloud, self.name = cloud, name
        cloud.api.limit(name, [name])
        cloud.environment["AWS_ACCESS_KEY_ID"] = name

    def client(self, service: str) -> Any:
        make: Any = boto3.client
        keys = {"aws_access_key_id": self.name, "aws_secret_access_key": "x"}
        return make(service, region_name=REGION, endpoint_url=self.cloud.api.url, **keys)

    def run(self, module: str, **arguments: Any) -> Item:
        found = self.cloud.run(module, arguments)
        assert not found.get("failed"), found.get("msg")
        return found

    def without(self, sid: str, module: str, **arguments: Any) -> str:
        """What a module says to somebody who has all but one statement."""
        rest = [one for one in policy(self.name) if one["Sid"] != sid]
        self.cloud.api.control("POST", "policies", {"access_key": self.name, "statements": rest})
        found = self.cloud.run(module, arguments)
        self.cloud.api.limit(self.name, [self.name])
        assert found.get("failed"), found
        return str(found["msg"])

    def check_use(self, *seldom: str) -> None:
        """Every action, but for those that are seldom needed, and every statement of the policy was needed."""
        assert self.cloud.api.used(self.name) == actions(self.name) - set(seldom)
        assert idle(self.cloud.api.needs(self.name), self.name) == []


def test_file_systems_of_fsx(cloud: Account) -> None:
    user = User(cloud, "fsx")
    wanted = {"name": "data", "cluster_name": "c1", "subnet_id": cloud.subnets[0], "security_groups": [cloud.group]}
    for sid in ("MakeThemForACluster", "LetFSxMakeItsRoles", "LetFSxLookAtTheNetwork"):
        assert "not authorized to perform" in user.without(sid, "fsx_lustre", **wanted)
    user.run("fsx_lustre", **wanted)
    user.run("fsx_lustre", **{**wanted, "name": "linked"}, import_path="s3://bucket/in")
    key = cloud.client("kms").create_key()["KeyMetadata"]["KeyId"]
    own = {**wanted, "name": "own", "kms_key_id": key}
    own.update(deployment_type="PERSISTENT_2", per_unit_storage_throughput=125)
    assert "not authorized to perform: kms:" in user.without("EncryptWithAKey", "fsx_lustre", **own)
    user.run("fsx_lustre", **own)
    user.run("fsx_lustre", **wanted, tags={"team": "speech"}, data_compression="NONE")
    theirs = cloud.client("fsx").create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=cloud.subnets[:1], LustreConfiguration={}
    )["FileSystem"]["FileSystemId"]
    with pytest.raises(Exception, match=r"AccessDenied.*fsx:DeleteFileSystem"):
        user.client("fsx").delete_file_system(FileSystemId=theirs)
    user.run("fsx_lustre", cluster_name="c1", state="absent")
    assert [item["FileSystemId"] for item in cloud.client("fsx").describe_file_systems()["FileSystems"]] == [theirs]
    user.check_use()


def test_file_systems_of_efs(cloud: Account) -> None:
    user = User(cloud, "efs")
    wanted: Item = {"name": "data", "cluster_name": "c1", "subnets": cloud.subnets, "security_groups": [cloud.group]}
    for sid in ("LookAtFileSystems", "LookAtSubnets", "MakeThemForACluster", "TagWhatIsMade", "LetEfsMakeItsRole"):
        assert "not authorized to perform" in user.without(sid, "efs_file_system", **wanted)
    for sid in ("ChangeAndDeleteThoseOfClusters", "LetEfsUseTheNetwork"):
        assert "would not make the mount target" in user.without(sid, "efs_file_system", **wanted)
    user.run("efs_file_system", **wanted)
    group = cloud.ec2.create_security_group(GroupName="nfs", Description="nfs", VpcId=cloud.vpc)["GroupId"]
    change = {"security_groups": [group], "tags": {"team": "speech"}, "throughput_mode": "bursting"}
    user.run("efs_file_system", **{**wanted, **change})
    theirs = cloud.client("efs").create_file_system(CreationToken="x", Encrypted=True)["FileSystemId"]
    mine = user.client("efs")
    for call in (
        lambda: mine.delete_file_system(FileSystemId=theirs),
        lambda: mine.tag_resource(ResourceId=theirs, Tags=[{"Key": "trainium:cluster", "Value": "c1"}]),
        lambda: mine.create_file_system(CreationToken="y", Tags=[{"Key": "trainium:cluster", "Value": "c1"}]),
        lambda: user.client("ec2").create_network_interface(SubnetId=cloud.subnets[0]),
    ):
        with pytest.raises(Exception, match=r"AccessDenied|UnauthorizedOperation"):
            call()
    user.run("efs_file_system", cluster_name="c1", state="absent")
    assert [item["FileSystemId"] for item in cloud.client("efs").describe_file_systems()["FileSystems"]] == [theirs]
    user.check_use()


def test_images_of_trainings(cloud: Account, tmp_path: Path) -> None:
    user = User(cloud, "ecr")
    wanted = {"name": "trainium/c1/training", "cluster_name": "c1", "dockerfile": "FROM base\n"}
    wanted["kms_key_id"] = cloud.client("kms").create_key()["KeyMetadata"]["KeyId"]
    cloud.environment.update(builder(cloud, tmp_path))
    for sid in ("LookAtImages", "LogInToTheRegistry", "MakeARepositoryWithItsTag", "TagWhatIsMade", "EncryptWithAKey"):
        assert "not authorized to perform" in user.without(sid, "ecr_image", **wanted)
        for one in cloud.client("ecr").describe_repositories()["repositories"]:
            cloud.client("ecr").delete_repository(repositoryName=one["repositoryName"], force=True)
    user.run("ecr_image", **wanted)
    user.run("ecr_image", **wanted, tags={"team": "speech"})
    tags = [{"Key": "trainium:cluster", "Value": "c1"}]
    # What carries no tag and lies elsewhere cannot be made the cluster's, and nobody deletes one with this policy.
    for name in ("theirs", "trainium/c1/training"):
        arn = cloud.client("ecr").describe_repositories()["repositories"][0]["repositoryArn"].partition("/")[0]
        if name == "theirs":
            cloud.client("ecr").create_repository(repositoryName=name)
            with pytest.raises(Exception, match=r"AccessDenied.*ecr:TagResource"):
                user.client("ecr").tag_resource(resourceArn=f"{arn}/{name}", tags=tags)
        with pytest.raises(Exception, match=r"AccessDenied.*ecr:DeleteRepository"):
            user.client("ecr").delete_repository(repositoryName=name, force=True)
        with pytest.raises(Exception, match=r"AccessDenied.*ecr:PutImageTagMutability"):
            user.client("ecr").put_image_tag_mutability(repositoryName=name, imageTagMutability="MUTABLE")
    # What a program asks of the registry is no call of the API.
    pushing = {action for one in policy("ecr") if one["Sid"] in ("PushImages", "PullBases") for action in one["Action"]}
    # These were refused.
    refused = {"ecr:DeleteRepository", "ecr:PutImageTagMutability"}
    assert cloud.api.used("ecr") - refused == actions("ecr") - pushing
    assert idle(cloud.api.needs("ecr"), "ecr") == ["PushImages", "PullBases"]


def test_capacity_reservations(cloud: Account) -> None:
    user = User(cloud, "capacity")
    wanted = {"name": "pool", "cluster_name": "c1", "instance_type": "trn1.32xlarge", "count": 2}
    wanted["availability_zone"] = cloud.zones[0]
    said = user.without("ReserveForACluster", "capacity_reservation", **wanted)
    assert "UnauthorizedOperation" in said
    reservation = user.run("capacity_reservation", **wanted, resource_group="g1")["capacity_reservation_id"]
    user.run("neuron_capacity_info", instance_type="trn1.32xlarge", capacity_reservation_id=reservation)
    markets = ["on-demand", "spot", "reservation", "capacity-block"]
    found = user.run("neuron_capacity_info", instance_type="trn1.32xlarge", markets=markets)
    assert {one["market"] for one in found["options"]} == set(markets)
    assert "warnings" not in found
    user.run("capacity_reservation", **{**wanted, "count": 3}, resource_group="g2", tags={"team": "speech"})
    block = {"name": "block", "cluster_name": "c1", "instance_type": "trn1.32xlarge", "block_hours": 24}
    block.update(ends_before="2099-01-01", accept_price_up_to=2000, purchase_pause=0)
    assert "UnauthorizedOperation" in user.without("BuyCapacityBlocks", "capacity_reservation", **block)
    user.run("capacity_reservation", **block)
    theirs = cloud.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=cloud.zones[0],
        InstanceCount=1,
    )["CapacityReservation"]["CapacityReservationId"]
    with pytest.raises(Exception, match=r"UnauthorizedOperation.*ec2:CancelCapacityReservation"):
        user.client("ec2").cancel_capacity_reservation(CapacityReservationId=theirs)
    user.run("capacity_reservation", cluster_name="c1", state="absent")
    # It is asked for where EC2 does not show the group of a reservation yet.
    user.check_use("resource-groups:GetGroup")


def test_a_dataset_of_one_bucket(cloud: Account) -> None:
    s3 = cloud.client("s3")
    for bucket in ("example-datasets", "others"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket=bucket, Key="wiki/a.bin", Body=b"text")
    user = User(cloud, "datasets")
    assert "must not be read" in user.without(
        "ListTheDataset", "dataset_source_info", source="s3://example-datasets/wiki/"
    )
    (file,) = user.run("dataset_source_info", source="s3://example-datasets/wiki/")["files"]
    # Whoever has the address acts for whoever has signed it.
    with urllib.request.urlopen(unwrapped(file["url"]), timeout=300) as answer:  # noqa: S310
        assert answer.read() == b"text"
    refused = cloud.run("dataset_source_info", {"source": "s3://others/wiki/"})
    assert "must not be read" in refused["msg"]
    user.check_use()


@pytest.mark.parametrize("path", sorted((REPOSITORY / "docs" / "iam").glob("*.json")), ids=lambda path: path.stem)
def test_a_policy_is_one_that_IAM_takes(path: Any) -> None:  # noqa: N802
    text = path.read_text(encoding="utf-8")
    assert len("".join(text.split())) <= LONGEST
    whole = json.loads(text)
    assert (whole["Version"], set(whole)) == ("2012-10-17", {"Version", "Statement"})
    sids = [one["Sid"] for one in whole["Statement"]]
    assert all(sid.isalnum() for sid in sids)
    assert len(set(sids)) == len(sids)
    for one in whole["Statement"]:
        assert set(one) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
        assert one["Action"] == sorted(one["Action"])
        assert "*" not in one["Action"]
        for action in one["Action"]:
            assert "*" in action or is_known(action), f"there is no {action}"
