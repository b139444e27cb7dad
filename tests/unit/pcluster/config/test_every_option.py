"""Every option of pcluster_config is taken by the module, and becomes the key that ParallelCluster has for it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.render import (
    known_reservations,
    render,
)

from tests.unit.pcluster.pcluster_samples import GROUP, IMAGE, OTHER, PRIVATE, PUBLIC, RESERVATION

Item = dict[str, Any]
POLICY, OWN = "arn:aws:iam::aws:policy/A", "arn:aws:iam::aws:policy/B"
SCRIPT = "https://example.com/a.sh"
NODE: Item = {
    "custom_ami": IMAGE,
    "security_groups": ["sg-1"],
    "additional_security_groups": ["sg-2"],
    "custom_actions": {"on_node_start": [{"script": SCRIPT, "args": [1]}]},
    "iam_policies": [OWN],
}
NETWORK = {"SecurityGroups": ["sg-1"], "AdditionalSecurityGroups": ["sg-2"]}
ACTIONS = {"OnNodeStart": {"Script": SCRIPT, "Args": ["1"]}}
POLICIES = [{"Policy": POLICY}, {"Policy": OWN}]


def made(run: Any, **variables: Any) -> Item:
    result = run(lint="none", **variables)
    assert not result["failed"], result
    found: Item = result["configuration"]
    return found


def test_the_options_of_the_head_node(run: Any) -> None:
    head = {
        **NODE,
        "instance_type": "m5.large",
        "subnet_id": PUBLIC,
        "elastic_ip": "eipalloc-1",
        "shared_storage_type": "Efs",
        "dcv": True,
        "root_volume_size": 99,
        "s3_access": [{"bucket": "own", "key": "a/*", "write": True}],
    }
    found = made(
        run, head_node=head, key_name="lab", allowed_ips="pl-1", iam_policies=[POLICY], s3_access=[{"bucket": "all"}]
    )
    assert found["HeadNode"] == {
        "InstanceType": "m5.large",
        "Networking": {"SubnetId": PUBLIC, "ElasticIp": "eipalloc-1", **NETWORK},
        "Ssh": {"KeyName": "lab", "AllowedIps": "pl-1"},
        "LocalStorage": {"RootVolume": {"Size": 99, "VolumeType": "gp3", "Encrypted": True}},
        "SharedStorageType": "Efs",
        "Dcv": {"Enabled": True, "AllowedIps": "pl-1"},
        "CustomActions": ACTIONS,
        "Iam": {
            "AdditionalIamPolicies": POLICIES,
            "S3Access": [
                {"BucketName": "all"},
                {"BucketName": "own", "KeyName": "a/*", "EnableWriteAccess": True},
            ],
        },
        "Imds": {"Secured": True},
        "Image": {"CustomAmi": IMAGE},
    }


@pytest.mark.parametrize(
    ("given", "becomes"), [("true", True), ("YES", True), ("no", False), ("False", False), ("eipalloc-1", "eipalloc-1")]
)
def test_an_elastic_ip_is_an_answer_or_an_id(given: str, becomes: Any) -> None:
    assert render({"head_node": {"elastic_ip": given}})["HeadNode"]["Networking"] == {"ElasticIp": becomes}


def test_a_head_node_of_which_nothing_is_said() -> None:
    found = render({})
    assert found["Image"] == {"Os": "ubuntu2404"}
    assert (found["Imds"], found["Scheduling"]) == ({"ImdsSupport": "v2.0"}, {"Scheduler": "slurm"})
    assert found["HeadNode"]["InstanceType"] == "m5.2xlarge"
    assert found["HeadNode"]["LocalStorage"]["RootVolume"]["Size"] == 200
    assert "Dcv" not in found["HeadNode"]
    logs = {"Enabled": True, "RetentionInDays": 30}
    assert found["Monitoring"] == {"Logs": {"CloudWatch": logs}}


def test_the_options_of_a_pool_of_login_nodes(run: Any) -> None:
    pool = {
        **NODE,
        "name": "front",
        "instance_type": "m5.large",
        "count": 3,
        "gracetime_period": 7,
        "subnet_id": OTHER,
        "allowed_ips": "198.51.100.8/32",
    }
    common = {"allowed_ips": "pl-1", "iam_policies": [POLICY], "s3_access": [{"bucket": "all"}]}
    first, second = made(run, login_nodes=[pool, {}], head_node={"subnet_id": PUBLIC}, **common)["LoginNodes"]["Pools"]
    assert first == {
        "Name": "front",
        "InstanceType": "m5.large",
        "Count": 3,
        "GracetimePeriod": 7,
        "Networking": {"SubnetIds": [OTHER], **NETWORK},
        "Ssh": {"AllowedIps": "198.51.100.8/32"},
        "CustomActions": ACTIONS,
        "Iam": {"AdditionalIamPolicies": POLICIES},
        "Image": {"CustomAmi": IMAGE},
    }
    assert second == {
        "Name": "login",
        "InstanceType": "m5.xlarge",
        "Count": 1,
        "Networking": {"SubnetIds": [PUBLIC]},
        "Ssh": {"AllowedIps": "pl-1"},
        "Iam": {"AdditionalIamPolicies": [{"Policy": POLICY}]},
    }


def test_the_options_of_a_queue_and_its_compute_resources(run: Any) -> None:
    resource = {
        "name": "a",
        "instance_type": "m5.large",
        "min_count": 1,
        "max_count": 3,
        "efa": True,
        "gdr_support": True,
        "capacity_reservation": {"id": RESERVATION, "owner": "self"},
        "disable_hyperthreading": True,
        "spot_price": 1.5,
        "schedulable_memory": 1000,
    }
    queue = {
        **NODE,
        "name": "q",
        "compute_resources": [resource, {"name": "b", "instance_types": ["m5.large", "m5.xlarge"]}],
        "capacity_type": "SPOT",
        "allocation_strategy": "lowest-price",
        "capacity_reservation": {"resource_group_arn": GROUP},
        "job_exclusive_allocation": False,
        "subnet_ids": [PRIVATE],
        "placement_group": "group",
        "ephemeral_dir": "/own",
        "root_volume_size": 77,
        "custom_slurm_settings": {"GraceTime": 1},
        "tags": {"team": "speech"},
        "s3_access": [{"bucket": "own"}],
    }
    found = made(run, queues=[queue], compute_subnet_ids=[OTHER], ephemeral_dir="/all", placement_group="false")
    (only,) = found["Scheduling"]["SlurmQueues"]
    assert only == {
        "Name": "q",
        "CapacityType": "SPOT",
        "AllocationStrategy": "lowest-price",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": GROUP},
        "JobExclusiveAllocation": False,
        "ComputeResources": [
            {
                "Name": "a",
                "InstanceType": "m5.large",
                "MinCount": 1,
                "MaxCount": 3,
                "Efa": {"Enabled": True, "GdrSupport": True},
                "CapacityReservationTarget": {"CapacityReservationId": RESERVATION},
                "DisableSimultaneousMultithreading": True,
                "SpotPrice": 1.5,
                "SchedulableMemory": 1000,
            },
            {
                "Name": "b",
                "Instances": [{"InstanceType": "m5.large"}, {"InstanceType": "m5.xlarge"}],
                "MinCount": 0,
                "MaxCount": 10,
            },
        ],
        "ComputeSettings": {
            "LocalStorage": {
                "RootVolume": {"Size": 77, "VolumeType": "gp3", "Encrypted": True},
                "EphemeralVolume": {"MountDir": "/own"},
            }
        },
        "Networking": {"SubnetIds": [PRIVATE], "PlacementGroup": {"Name": "group"}, **NETWORK},
        "CustomActions": ACTIONS,
        "Iam": {"AdditionalIamPolicies": [{"Policy": OWN}], "S3Access": [{"BucketName": "own"}]},
        "Image": {"CustomAmi": IMAGE},
        "CustomSlurmSettings": {"GraceTime": 1},
        "Tags": [{"Key": "team", "Value": "speech"}],
    }
    assert (found["Scheduling"]["Scheduler"], "Tags" in found) == ("slurm", False)


def test_what_a_queue_does_not_say_is_the_clusters(run: Any) -> None:
    queues = [{"name": "q", "compute_resources": [{"name": "a"}]}]
    whole = {"instance_type": "trn1.32xlarge", "min_count": 12, "capacity_reservation": {"id": RESERVATION}}
    found = made(run, queues=queues, compute_subnet_ids=[OTHER], ephemeral_dir="/all", placement_group="yes", **whole)
    (only,) = found["Scheduling"]["SlurmQueues"]
    assert only["ComputeResources"] == [
        {
            "Name": "a",
            "InstanceType": "trn1.32xlarge",
            "MinCount": 12,
            # More than ParallelCluster's default of 10.
            "MaxCount": 12,
            "Efa": {"Enabled": True},
            "CapacityReservationTarget": {"CapacityReservationId": RESERVATION},
        }
    ]
    assert only["Networking"] == {"SubnetIds": [OTHER], "PlacementGroup": {"Enabled": True}}
    assert only["ComputeSettings"]["LocalStorage"]["EphemeralVolume"] == {"MountDir": "/all"}
    assert (only["JobExclusiveAllocation"], "CapacityType" in only) == (True, False)


def test_the_options_of_the_cluster(run: Any) -> None:
    found = made(
        run,
        region="us-west-2",
        os="rocky9",
        custom_ami=IMAGE,
        head_bootstrap_timeout=3000,
        compute_bootstrap_timeout=2500,
        scaling_strategy="best-effort",
        scaledown_idletime=5,
        queue_update_strategy="DRAIN",
        custom_slurm_settings={"A": 1, "B": 2},
        accounting={"uri": "db:3306", "user_name": "slurm", "password_secret_arn": "arn:x", "database_name": "acct"},
        monitoring={
            "detailed": True,
            "dashboard": False,
            "alarms": True,
            "log_retention_days": 7,
            "log_deletion_policy": "Retain",
        },
        tags={"team": "speech", "cost": 7},
    )
    assert (found["Region"], found["Image"]) == ("us-west-2", {"Os": "rocky9", "CustomAmi": IMAGE})
    assert found["DevSettings"] == {"Timeouts": {"HeadNodeBootstrapTimeout": 3000, "ComputeNodeBootstrapTimeout": 2500}}
    assert found["Scheduling"]["ScalingStrategy"] == "best-effort"
    assert found["Scheduling"]["SlurmSettings"] == {
        "ScaledownIdletime": 5,
        "QueueUpdateStrategy": "DRAIN",
        "CustomSlurmSettings": [{"A": 1}, {"B": 2}],
        "Database": {"Uri": "db:3306", "UserName": "slurm", "PasswordSecretArn": "arn:x", "DatabaseName": "acct"},
    }
    assert found["Monitoring"] == {
        "DetailedMonitoring": True,
        "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 7, "DeletionPolicy": "Retain"}},
        "Dashboards": {"CloudWatch": {"Enabled": False}},
        "Alarms": {"Enabled": True},
    }
    assert found["Tags"] == [{"Key": "team", "Value": "speech"}, {"Key": "cost", "Value": "7"}]


@pytest.mark.parametrize(("key", "name"), [("instance_profile", "InstanceProfile"), ("instance_role", "InstanceRole")])
def test_a_role_or_a_profile_of_each_kind_of_node(run: Any, key: str, name: str) -> None:
    queues = [{"name": "q", key: "arn:q", "compute_resources": [{"name": "a", "instance_type": "m5.large"}]}]
    given = {"head_node": {key: "arn:h"}, "login_nodes": [{key: "arn:l"}], "queues": queues, "iam_policies": [POLICY]}
    found = made(run, **given)
    assert found["HeadNode"]["Iam"] == {name: "arn:h"}
    assert found["LoginNodes"]["Pools"][0]["Iam"] == {name: "arn:l"}
    assert found["Scheduling"]["SlurmQueues"][0]["Iam"] == {name: "arn:q"}


def test_slurm_settings_may_be_a_list_as_well() -> None:
    settings = [{"A": 1}, {"A": 2}]
    found = render({"custom_slurm_settings": settings})["Scheduling"]["SlurmSettings"]
    assert found["CustomSlurmSettings"] == settings
    empty: tuple[Any, ...] = (None, [], {})
    for nothing in empty:
        assert "SlurmSettings" not in render({"custom_slurm_settings": nothing})["Scheduling"]


def test_the_owners_of_reservations_are_collected_wherever_they_are_named() -> None:
    resource = {"capacity_reservation": {"id": "cr-3", "owner": "aws"}}
    queues = [
        {"capacity_reservation": {"resource_group_arn": GROUP, "owner": "self"}, "compute_resources": [resource, {}]},
        {"capacity_reservation": {"id": "cr-4"}},
    ]
    found = known_reservations({"capacity_reservation": {"id": "cr-1", "owner": "aws"}, "queues": queues})
    assert found == {"self": [GROUP], "aws": ["cr-1", "cr-3"]}
    assert known_reservations({}) == {"self": [], "aws": []}
