"""The call log, faults, and the control API."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.parsers import ResponseParserError

TYPE = "trn1.32xlarge"
KEY = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJbBq5vhVtOXAbOXSFvEkzyBk+VyrmGa6vKTmm7ycVS someone@example.com"


def test_dry_runs_change_nothing_and_are_reads(lab: Any) -> None:
    lab.api.clear_calls()
    for call in (
        lambda: lab.ec2.create_vpc(CidrBlock="10.67.0.0/16", DryRun=True),
        lambda: lab.ec2.delete_vpc(VpcId=lab.vpc, DryRun=True),
        lambda: lab.ec2.create_placement_group(GroupName="a", DryRun=True),
    ):
        assert lab.code_of(call) == "DryRunOperation"
    assert lab.api.writes() == []
    assert [call["error"] for call in lab.api.calls()] == ["DryRunOperation"] * 3
    assert lab.ec2.describe_vpcs(Filters=lab.by("cidr", "10.67.0.0/16"))["Vpcs"] == []


def test_what_the_sandbox_lacks_is_an_error_of_ec2(lab: Any) -> None:
    assert lab.code_of(lab.ec2.describe_capacity_blocks) == "InvalidAction"
    assert lab.code_of(lambda: lab.shown(Filters=lab.by("nonsense", "x"))) == "InvalidParameterValue"
    assert lab.code_of(lambda: lab.client("bedrock").list_foundation_models()) == "UnsupportedOperation"


def test_every_call_is_logged_with_its_parameters(lab: Any) -> None:
    lab.api.clear_calls()
    lab.run()
    lab.shown()
    lab.client("ssm").put_parameter(Name="/a", Value="b", Type="String")
    launch, listing, parameter = lab.api.calls()
    assert (launch["service"], launch["action"], launch["write"], launch["status"]) == (
        "ec2",
        "RunInstances",
        True,
        200,
    )
    devices = [
        value
        for name, value in launch["parameters"].items()
        if name.startswith("NetworkInterface.") and name.endswith(".DeviceIndex")
    ]
    assert sorted(devices) == ["0"] + ["1"] * 7
    assert (listing["action"], listing["write"]) == ("DescribeInstances", False)
    assert (parameter["service"], parameter["parameters"]["Name"], parameter["write"]) == ("ssm", "/a", True)
    assert abs(launch["time"] - time.time()) < 60


def test_faults_come_as_often_as_asked_for(lab: Any) -> None:
    lab.api.fault("DescribeInstances", "RequestLimitExceeded", times=2, status=503)
    assert lab.code_of(lab.shown) == "RequestLimitExceeded"
    assert lab.code_of(lab.shown) == "RequestLimitExceeded"
    assert lab.shown() == []
    lab.api.fault("CreateVpc", "VpcLimitExceeded", match={"CidrBlock": "10.70.0.0/16"})
    lab.ec2.create_vpc(CidrBlock="10.71.0.0/16")
    assert lab.code_of(lambda: lab.ec2.create_vpc(CidrBlock="10.70.0.0/16")) == "VpcLimitExceeded"
    lab.api.fault("GetParameter", "ThrottlingException")
    assert lab.code_of(lambda: lab.client("ssm").get_parameter(Name="/a")) == "ThrottlingException"


def test_a_fault_after_the_call_loses_the_answer(lab: Any) -> None:
    lab.api.fault("RunInstances", "InternalError", after=True, status=500)
    assert lab.code_of(lambda: lab.run(ClientToken="one")) == "InternalError"
    (instance,) = lab.run(ClientToken="one")
    assert [i["InstanceId"] for i in lab.shown()] == [instance["InstanceId"]]


def test_a_launch_can_fail_late(lab: Any) -> None:
    code = "Server.InsufficientInstanceCapacity"
    lab.api.capacity(TYPE, lab.zones[0], 3)
    lab.api.control("POST", "faults", {"action": "RunInstances", "late": code, "count": 2})
    # As RunInstances answers: whoever asks later, and late, sees more.
    assert {instance["State"]["Name"] for instance in lab.run(MinCount=3, MaxCount=3)} == {"pending"}
    deadline = time.monotonic() + 300
    while lab.shown("pending"):
        assert time.monotonic() < deadline, lab.shown()
        time.sleep(0.05)
    states = [(i["State"]["Name"], i.get("StateReason", {}).get("Code") or "") for i in lab.shown()]
    assert sorted(states) == [("running", ""), ("terminated", code), ("terminated", code)]
    # They hold nothing any more.
    assert len(lab.ec2.describe_network_interfaces()["NetworkInterfaces"]) == 8
    assert lab.api.control("GET", "capacity") == [{"instance_type": TYPE, "zone": lab.zones[0], "count": 2}]
    lab.run()
    lab.api.control("DELETE", "faults")


def test_an_answer_that_is_not_of_aws_and_calls_that_pass_first(lab: Any) -> None:
    page = "<html><body><h1>502 Bad Gateway</h1><hr></body></html>"
    lab.api.control("POST", "faults", {"action": "DescribeInstances", "body": page, "status": 200, "skip": 1})
    assert lab.shown() == []
    with pytest.raises(ResponseParserError):
        lab.shown()
    assert lab.shown() == []


def test_delays(lab: Any) -> None:
    lab.api.control("POST", "faults", {"action": "DescribeInstances", "delay": 0.3})
    start = time.monotonic()
    assert lab.shown() == []
    assert time.monotonic() - start >= 0.3
    lab.api.control("POST", "latency", {"seconds": 0.2})
    start = time.monotonic()
    lab.ec2.describe_vpcs()
    assert time.monotonic() - start >= 0.2


def test_hosts_say_what_a_host_needs(lab: Any) -> None:
    lab.ec2.import_key_pair(KeyName="mine", PublicKeyMaterial=KEY)
    lab.run(KeyName="mine", UserData="#!/bin/sh\necho", TagSpecifications=[lab.named("instance", team="speech")])
    (host,) = lab.api.control("GET", "hosts")
    (instance,) = lab.shown()
    wanted = {
        "instance_id": instance["InstanceId"],
        "private_ip": instance["PrivateIpAddress"],
        "private_dns_name": instance["PrivateDnsName"],
        "hostname": "ip-10-66-0-4",
        "vpc_id": lab.vpc,
        "vpc_cidr": "10.66.0.0/16",
        "public_ips": [],
        "image_id": lab.image,
        "instance_type": TYPE,
        "user_data": "IyEvYmluL3NoCmVjaG8=",
        "public_key": KEY.decode(),
        "efa_interfaces": 8,
        "tags": {"team": "speech"},
    }
    assert {key: host[key] for key in wanted} == wanted


def test_the_control_api_says_what_is_wrong(lab: Any) -> None:
    assert "instance_type" in lab.api.control("POST", "capacity", {"count": 1})["error"]
    assert "no such path" in lab.api.control("GET", "nonsense")["error"]


def test_names_are_those_of_instances_and_hosted_zones(lab: Any) -> None:
    lab.run()
    instance = lab.shown()[0]
    route53 = lab.client("route53")
    zone = route53.create_hosted_zone(Name="demo.pcluster", CallerReference="1")["HostedZone"]["Id"]
    record = {"Name": "train-dy-a-1.demo.pcluster", "Type": "A", "TTL": 1, "ResourceRecords": [{"Value": "10.77.0.9"}]}
    changes = {"Changes": [{"Action": "UPSERT", "ResourceRecordSet": record}]}
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=changes)
    names = lab.api.control("GET", "names")
    assert names[instance["PrivateDnsName"].split(".")[0]] == instance["PrivateIpAddress"]
    assert names["train-dy-a-1.demo.pcluster"] == "10.77.0.9"


def test_a_reset_forgets_what_is_under_way(lab: Any) -> None:
    (instance,) = lab.run()
    lab.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    after = type(lab)(lab.api)
    after.api.capacity(TYPE, after.zones[0], 1)
    after.run()
    # Its change comes after that of the other, which would have given its capacity back.
    after.wait("running")
    assert after.api.control("GET", "capacity") == [{"instance_type": TYPE, "zone": after.zones[0], "count": 0}]
