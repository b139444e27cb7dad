"""The calls that the daemons of a cluster's head node make, over boto3 as they do: launches, states, names, records."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr

Item = dict[str, Any]
SCRIPT = base64.b64encode(b"#!/bin/sh\ntrue\n").decode()
NAME = "demo-train-trn1"
OWN = {"LaunchTemplate": {"LaunchTemplateName": NAME, "Version": "$Latest"}}


class Cluster:
    """A stack with a head node and the launch template of a compute resource."""

    def __init__(self, lab: Any) -> None:
        self.lab, self.ec2 = lab, lab.ec2
        self.ec2.create_key_pair(KeyName="lab")
        self.ec2.create_placement_group(GroupName="near", Strategy="cluster")
        self.cfn = lab.client("cloudformation")
        body = json.dumps({"Resources": self.resources()})
        self.cfn.create_stack(StackName="demo", TemplateBody=body)
        self.wait("demo", "CREATE_COMPLETE")

    def wait(self, name: str, status: str) -> None:
        deadline = time.monotonic() + 300
        while (stack := self.cfn.describe_stacks(StackName=name)["Stacks"][0])["StackStatus"] != status:
            assert stack["StackStatus"].endswith("IN_PROGRESS"), stack["StackStatus"]
            assert time.monotonic() < deadline, stack["StackStatus"]
            time.sleep(0.05)

    def resources(self) -> Item:
        nics = self.lab.nics(1, "interface")
        nics += [{**nic, "DeviceIndex": 1} for nic in self.lab.nics(8, "efa-only")]
        data = {
            "ImageId": self.lab.image,
            "InstanceType": "trn1.32xlarge",
            "KeyName": "lab",
            "UserData": SCRIPT,
            "NetworkInterfaces": nics,
            "Placement": {"GroupName": "near"},
            "MetadataOptions": {"HttpTokens": "required"},
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/xvdba", "VirtualName": "ephemeral0"},
                {"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": True, "VolumeType": "gp3"}},
            ],
            "TagSpecifications": [
                self.lab.named("instance", **{"parallelcluster:node-type": "Compute"}, **self.cluster_tag()),
                self.lab.named("volume", **self.cluster_tag()),
            ],
        }
        head = {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": {"Ref": "Interface"}}]}
        head_data = {
            **{key: data[key] for key in ("ImageId", "KeyName", "UserData")},
            **head,
            "InstanceType": "m5.xlarge",
        }
        version = {"Fn::GetAtt": ["HeadTemplate", "LatestVersionNumber"]}
        interface = {"SubnetId": self.lab.subnet, "GroupSet": [self.lab.group]}
        return {
            "Template": _resource("EC2::LaunchTemplate", LaunchTemplateName=NAME, LaunchTemplateData=data),
            "Interface": _resource("EC2::NetworkInterface", **interface),
            "HeadTemplate": _resource("EC2::LaunchTemplate", LaunchTemplateData=head_data),
            "HeadNode": _resource(
                "EC2::Instance",
                LaunchTemplate={"LaunchTemplateId": {"Ref": "HeadTemplate"}, "Version": version},
                Tags=[{"Key": "Name", "Value": "HeadNode"}],
            ),
            "Zone": _resource("Route53::HostedZone", Name="demo.pcluster."),
        }

    @staticmethod
    def cluster_tag() -> dict[str, str]:
        return {"parallelcluster:cluster-name": "demo"}

    def computes(self) -> list[Item]:
        """As clustermgtd finds them."""
        filters = self.lab.by("tag:parallelcluster:cluster-name", "demo")
        filters += self.lab.by("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down")
        filters += self.lab.by("tag:parallelcluster:node-type", "Compute")
        pages = self.ec2.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"PageSize": 100}
        )
        return list(pages.search("Reservations[].Instances[]"))

    def fleet(self, count: int, *overrides: Item, **options: Any) -> Item:
        """CreateFleet as slurm_resume asks for it."""
        template = {"LaunchTemplateName": NAME, "Version": "$Latest"}
        common = {"SingleInstanceType": False, "SingleAvailabilityZone": True, "MinTargetCapacity": 1, **options}
        found: Item = self.ec2.create_fleet(
            LaunchTemplateConfigs=[{"LaunchTemplateSpecification": template, "Overrides": list(overrides)}],
            TargetCapacitySpecification={"TotalTargetCapacity": count, "DefaultTargetCapacityType": "on-demand"},
            Type="instant",
            OnDemandOptions={
                **common,
                "CapacityReservationOptions": {"UsageStrategy": "use-capacity-reservations-first"},
            },
        )
        return found


def _resource(kind: str, **properties: Any) -> Item:
    return {"Type": f"AWS::{kind}", "Properties": properties}


@pytest.fixture
def cluster(lab: Any) -> Cluster:
    lab.api.control("POST", "waiting", {"delay": 0})
    return Cluster(lab)


def test_the_head_node_comes_from_its_template_and_goes_with_the_stack(cluster: Cluster) -> None:
    (head,) = cluster.lab.shown()
    (host,) = cluster.lab.api.control("GET", "hosts")
    (nic,) = head["NetworkInterfaces"]
    assert (head["InstanceType"], head["KeyName"], head["SubnetId"]) == ("m5.xlarge", "lab", cluster.lab.subnet)
    assert host["user_data"] == SCRIPT
    assert host["private_ip"] == nic["PrivateIpAddress"]
    assert host["tags"]["Name"] == "HeadNode"
    assert host["tags"]["aws:cloudformation:logical-id"] == "HeadNode"
    stack = cluster.cfn.describe_stacks(StackName="demo")["Stacks"][0]["StackId"]
    cluster.cfn.delete_stack(StackName="demo")
    cluster.wait(stack, "DELETE_COMPLETE")
    assert [instance["State"]["Name"] for instance in cluster.lab.shown()] == ["terminated"]
    assert not cluster.ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert not cluster.ec2.describe_launch_templates()["LaunchTemplates"]


def test_run_instances_takes_all_of_the_template(cluster: Cluster) -> None:
    launched = cluster.ec2.run_instances(MinCount=1, MaxCount=2, **OWN)["Instances"]
    assert len(launched) == 2
    first = cluster.computes()[0]
    nics = first["NetworkInterfaces"]
    places = [(nic["Attachment"]["NetworkCardIndex"], nic["Attachment"]["DeviceIndex"]) for nic in nics]
    assert places == [(0, 0)] + [(card, 1) for card in range(8)]
    assert [nic["InterfaceType"] for nic in nics] == ["interface"] + ["efa-only"] * 8
    # What slurm_resume reads of each instance.
    assert {"InstanceId", "PrivateIpAddress", "PrivateDnsName", "LaunchTime", "NetworkInterfaces"} <= set(first)
    assert (first["Placement"]["GroupName"], first["MetadataOptions"]["HttpTokens"]) == ("near", "required")
    tags = {tag["Key"]: tag["Value"] for tag in first["Tags"]}
    assert tags["aws:ec2launchtemplate:version"] == "1"
    hosts = [host for host in cluster.lab.api.control("GET", "hosts") if host["efa_interfaces"] == 8]
    assert [(host["user_data"], host["tags"]["parallelcluster:cluster-name"]) for host in hosts] == [
        (SCRIPT, "demo")
    ] * 2
    (volume,) = cluster.ec2.describe_volumes(Filters=cluster.lab.by("attachment.instance-id", first["InstanceId"]))[
        "Volumes"
    ]
    assert (volume["Encrypted"], volume["Size"]) == (True, 40)
    cluster.ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in launched])
    deadline = time.monotonic() + 300
    while cluster.computes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(cluster.ec2.describe_network_interfaces()["NetworkInterfaces"]) == 1


def test_overrides_win_and_the_checks_of_a_launch_hold(cluster: Cluster) -> None:
    lab = cluster.lab
    changed = {"InstanceType": "m5.large", "NetworkInterfaces": lab.nics(1, "interface"), "UserData": "other"}
    tagged = [lab.named("instance", job="7")]
    (made,) = lab.ec2.run_instances(MinCount=1, MaxCount=1, TagSpecifications=tagged, **changed, **OWN)["Instances"]
    tags = {tag["Key"]: tag["Value"] for tag in made["Tags"]}
    assert (made["InstanceType"], tags["job"], tags["parallelcluster:node-type"]) == ("m5.large", "7", "Compute")
    lab.api.capacity("trn1.32xlarge", lab.zones[0], 1)
    short = {"MinCount": 2, "MaxCount": 2, **OWN}
    assert lab.code_of(lambda: lab.ec2.run_instances(**short)) == "InsufficientInstanceCapacity"
    wrong = {"MinCount": 1, "MaxCount": 1, "InstanceType": "trn1.2xlarge", **OWN}
    assert lab.code_of(lambda: lab.ec2.run_instances(**wrong)) in ("InvalidParameterValue", "UnsupportedOperation")
    dry = {"MinCount": 1, "MaxCount": 1, "DryRun": True}
    assert lab.code_of(lambda: lab.ec2.run_instances(**dry, **OWN)) == "DryRunOperation"
    assert lab.code_of(lambda: lab.ec2.run_instances(**{**wrong, "DryRun": True})) != "DryRunOperation"
    unknown = {"LaunchTemplateName": "none", "Version": "$Latest"}
    assert "NotFound" in lab.code_of(lambda: lab.ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=unknown))


def test_an_instant_fleet_takes_the_next_type_where_one_is_short(cluster: Cluster) -> None:
    lab = cluster.lab
    lab.api.capacity("trn1.32xlarge", lab.zones[0], 1)
    kinds = [{"InstanceType": kind, "SubnetId": lab.subnet} for kind in ("trn1.32xlarge", "p4d.24xlarge")]
    answer = cluster.fleet(2, *kinds)
    # A p4d has four cards, and the template has interfaces for eight.
    assert [len(made["InstanceIds"]) for made in answer["Instances"]] == [1]
    assert [error["ErrorCode"] for error in answer["Errors"]] == ["InvalidParameterValue"]
    assert len(cluster.computes()) == 1
    none = cluster.fleet(2, kinds[0], MinTargetCapacity=2)
    assert (none["Instances"], none["Errors"][0]["ErrorCode"]) == ([], "InsufficientInstanceCapacity")
    assert len(cluster.computes()) == 1


def test_states_of_instances(cluster: Cluster) -> None:
    cluster.lab.wait("running")
    paginator = cluster.ec2.get_paginator("describe_instance_status")
    everything = list(paginator.paginate().search("InstanceStatuses"))
    assert [(one["InstanceStatus"]["Status"], one["SystemStatus"]["Status"]) for one in everything] == [("ok", "ok")]
    for name, values in (
        ("instance-status.status", ("initializing", "impaired")),
        ("system-status.status", ("initializing", "impaired")),
        ("event.code", ("instance-reboot", "system-maintenance")),
    ):
        pages = paginator.paginate(Filters=cluster.lab.by(name, *values), PaginationConfig={"PageSize": 1000})
        assert list(pages.search("InstanceStatuses")) == [], name
    identity = everything[0]["InstanceId"]
    assert cluster.ec2.get_console_output(InstanceId=identity)["InstanceId"] == identity


def test_names_and_records_of_nodes(cluster: Cluster) -> None:
    api = cluster.lab.api
    route53, dynamodb = cluster.lab.client("route53"), cluster.lab.client("dynamodb")
    (zone,) = route53.list_hosted_zones()["HostedZones"]
    name = "train-dy-trn1-1.demo.pcluster"
    record = {"Name": name, "ResourceRecords": [{"Value": "10.66.0.9"}], "Type": "A", "TTL": 120}
    change = {"Action": "UPSERT", "ResourceRecordSet": record}
    for _again in range(2):
        route53.change_resource_record_sets(HostedZoneId=zone["Id"], ChangeBatch={"Changes": [change]})
    pages = route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone["Id"])
    found = [one for one in pages.search("ResourceRecordSets") if one["Type"] == "A"]
    assert [one["Name"].rstrip(".") for one in found] == [name]
    key = {"AttributeName": "Id"}
    dynamodb.create_table(
        TableName="fleet",
        AttributeDefinitions=[{**key, "AttributeType": "S"}],
        KeySchema=[{**key, "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    resource: Any = boto3.resource(
        "dynamodb",
        region_name="us-west-2",
        endpoint_url=api.url,
        aws_access_key_id="testing-id",
        aws_secret_access_key="testing-secret",
    )
    table = resource.Table("fleet")
    with table.batch_writer() as writer:
        for number in (1, 2):
            writer.put_item(Item={"Id": f"train-dy-trn1-{number}", "InstanceId": f"i-{number}"})
    wanted = [{"Id": "train-dy-trn1-1"}, {"Id": "train-dy-trn1-2"}]
    query = {"fleet": {"Keys": wanted, "ProjectionExpression": "Id, InstanceId"}}
    assert len(resource.batch_get_item(RequestItems=query)["Responses"]["fleet"]) == 2
    table.put_item(Item={"Id": "COMPUTE_FLEET", "Data": {"status": "RUNNING"}})
    table.put_item(
        Item={"Id": "COMPUTE_FLEET", "Data": {"status": "STOPPED"}},
        ConditionExpression=Attr("Data.status").eq("RUNNING"),
    )
    with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException):
        table.put_item(Item={"Id": "COMPUTE_FLEET"}, ConditionExpression=Attr("Data.status").eq("RUNNING"))
    assert table.get_item(ConsistentRead=True, Key={"Id": "COMPUTE_FLEET"})["Item"]["Data"]["status"] == "STOPPED"
