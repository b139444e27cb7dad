"""A cluster from its first day to its last, with the real pcluster: each test takes it where the one before left it."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

Item = dict[str, Any]
STORAGE = [
    {
        "Name": "fsx",
        "MountDir": "/fsx",
        "StorageType": "FsxLustre",
        "FsxLustreSettings": {
            "StorageCapacity": 1200,
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
        },
    },
    {"Name": "efs", "MountDir": "/efs", "StorageType": "Efs", "EfsSettings": {"Encrypted": True}},
]
LOGS = {"Logs": {"CloudWatch": {"DeletionPolicy": "Delete"}}}


@pytest.fixture(scope="module")
def configuration(site: Any) -> Item:
    made: Item = site.configuration(SharedStorage=STORAGE, Monitoring=LOGS)
    made["HeadNode"]["Networking"]["ElasticIp"] = True
    return made


def _update(site: Any, configuration: Item, code: int = 0) -> Any:
    path = site.written(configuration)
    given = ("--cluster-configuration", path, "--suppress-validators", "ALL")
    return site.pcluster("update-cluster", "--cluster-name", "demo", *given, code=code)


def _files(step: Item) -> Item:
    """The files that one step of cfn-init writes."""
    found: Item = step.get("files", {})
    return found


def _with_maximum(configuration: Item, count: int) -> Item:
    changed = copy.deepcopy(configuration)
    changed["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = count
    return changed


def test_a_dry_run_with_all_validators_makes_nothing(site: Any, configuration: Item) -> None:
    path = site.written(configuration)
    given = ("--cluster-name", "demo", "--cluster-configuration", path, "--dryrun", "true")
    assert site.pcluster("create-cluster", *given, code=1)["message"].startswith("Request would have succeeded")
    assert site.left() == {}


def test_created_described_and_listed(site: Any, configuration: Item) -> None:
    given = ("--cluster-configuration", site.written(configuration), "--suppress-validators", "ALL")
    made = site.pcluster("create-cluster", "--cluster-name", "demo", *given)
    assert made["cluster"]["clusterStatus"] == "CREATE_IN_PROGRESS"
    site.wait("demo", "CREATE_COMPLETE")
    # The head node has come, and says that the fleet is there.
    site.until(lambda: site.client("dynamodb").scan(TableName="parallelcluster-demo")["Items"])
    shown = site.pcluster("describe-cluster", "--cluster-name", "demo")
    assert (shown["clusterStatus"], shown["computeFleetStatus"]) == ("CREATE_COMPLETE", "RUNNING")
    assert shown["headNode"]["state"] == "running"
    assert shown["headNode"]["publicIpAddress"].startswith("198.51.100.")
    (bucket,) = site.client("s3").list_buckets()["Buckets"]
    assert site.client("s3").get_bucket_versioning(Bucket=bucket["Name"])["Status"] == "Enabled"
    made = site.left()
    assert len(made["file systems"]) == 2
    assert "demo-train-trn1" in made["templates"]


def test_the_head_node_finds_what_it_needs(site: Any) -> None:
    """Its user data, and the metadata that cfn-init reads."""
    (host,) = site.api.control("GET", "hosts")
    assert host["tags"]["parallelcluster:node-type"] == "HeadNode"
    assert host["user_data"]
    detail = site.client("cloudformation").describe_stack_resource(
        StackName="demo", LogicalResourceId="HeadNodeLaunchTemplate"
    )["StackResourceDetail"]
    init = json.loads(detail["Metadata"])["AWS::CloudFormation::Init"]
    files = {path: file for step in init.values() if isinstance(step, dict) for path, file in _files(step).items()}
    handle = next(file["content"] for path, file in files.items() if path.endswith("wait_condition_handle.txt"))
    assert handle.startswith(f"{site.api.url}/wait-conditions/")
    described = next(file["content"] for path, file in files.items() if path.endswith("dna.json"))
    assert json.loads(described)["cluster"]["stack_name"] == "demo"
    assert detail["ResourceStatus"] == "CREATE_COMPLETE"


def test_instances_and_logs(site: Any) -> None:
    template = {"LaunchTemplateName": "demo-train-trn1", "Version": "$Latest"}
    site.ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=template)
    nodes = site.pcluster("describe-cluster-instances", "--cluster-name", "demo")["instances"]
    assert sorted((node["nodeType"], node.get("queueName")) for node in nodes) == [
        ("ComputeNode", "train"),
        ("HeadNode", None),
    ]
    logs, (group,) = site.client("logs"), [name for name in site.left()["log groups"] if "/demo-" in name]
    logs.create_log_stream(logGroupName=group, logStreamName="ip-10-0-0-4.i-1.slurmctld")
    event = {"timestamp": int(time.time() * 1000), "message": "slurmctld started"}
    logs.put_log_events(logGroupName=group, logStreamName="ip-10-0-0-4.i-1.slurmctld", logEvents=[event])
    streams = site.pcluster("list-cluster-log-streams", "--cluster-name", "demo")["logStreams"]
    assert [stream["logStreamName"] for stream in streams] == ["ip-10-0-0-4.i-1.slurmctld"]


def test_updates_that_are_refused_that_need_a_stopped_fleet_and_that_pass(site: Any, configuration: Item) -> None:
    refused = _update(site, _with_maximum(configuration, 1), code=1)
    (fault,) = refused["updateValidationErrors"]
    assert fault["parameter"].endswith("MaxCount")
    asked = site.pcluster("update-compute-fleet", "--cluster-name", "demo", "--status", "STOP_REQUESTED")
    assert asked["status"] in ("STOP_REQUESTED", "STOPPING", "STOPPED")
    key = {"Id": {"S": "COMPUTE_FLEET"}}
    table = {"TableName": "parallelcluster-demo", "Key": key}
    status = ("M", "status", "S")

    def stopped() -> bool:
        value: Any = site.client("dynamodb").get_item(**table)["Item"]["Data"]
        for part in status:
            value = value[part]
        return bool(value == "STOPPED")

    site.until(stopped)
    changed = _with_maximum(configuration, 1)
    changed["Scheduling"]["SlurmQueues"].append(
        {**copy.deepcopy(changed["Scheduling"]["SlurmQueues"][0]), "Name": "more"}
    )
    assert _update(site, changed)["cluster"]["clusterStatus"] == "UPDATE_IN_PROGRESS"
    site.wait("demo", "UPDATE_COMPLETE")
    templates = site.left()["templates"]
    assert {"demo-train-trn1", "demo-more-trn1"} <= set(templates)


def test_deleted_and_nothing_left(site: Any) -> None:
    template = {"LaunchTemplateName": "demo-more-trn1", "Version": "$Latest"}
    site.ec2.run_instances(MinCount=1, MaxCount=2, LaunchTemplate=template)
    (zone,) = site.client("route53").list_hosted_zones()["HostedZones"]
    record = {"Name": "a.demo.pcluster", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    change = {"Action": "UPSERT", "ResourceRecordSet": record}
    site.client("route53").change_resource_record_sets(HostedZoneId=zone["Id"], ChangeBatch={"Changes": [change]})
    identity = site.stack("demo")["StackId"]
    shown = site.pcluster("delete-cluster", "--cluster-name", "demo")
    assert shown["cluster"]["clusterStatus"] == "DELETE_IN_PROGRESS"
    site.wait(identity, "DELETE_COMPLETE")
    # The log groups, too, as the configuration wants it.
    assert site.left() == {}
    (bucket,) = site.client("s3").list_buckets()["Buckets"]
    found = site.client("s3").list_objects_v2(Bucket=bucket["Name"])["Contents"]
    assert [item["Key"] for item in found] == ["parallelcluster/.bootstrapped"]
