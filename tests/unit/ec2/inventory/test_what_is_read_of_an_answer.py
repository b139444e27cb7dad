"""The inventory has of an answer of DescribeInstances only what it reads parsed; its records are as of the whole."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.narrow import narrow
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import READ, reduce_instance
from ansible_collections.trainium.cluster.plugins.plugin_utils._lighten import lighten
from botocore.parsers import create_parser

INTERFACE = """
<item>
  <networkInterfaceId>eni-{card}</networkInterfaceId><subnetId>subnet-{card}</subnetId><vpcId>vpc-1</vpcId>
  <description>of &lt;somebody&gt;</description><ownerId>1</ownerId><status>in-use</status>
  <macAddress>02:00</macAddress>
  <privateIpAddress>10.0.1.{card}</privateIpAddress><privateDnsName>ip-10-0-1-{card}</privateDnsName>
  <groupSet><item><groupId>sg-1</groupId><groupName>efa</groupName></item></groupSet><sourceDestCheck>true</sourceDestCheck>
  <attachment>
    <attachmentId>eni-attach-{card}</attachmentId><deviceIndex>{device}</deviceIndex><networkCardIndex>{card}</networkCardIndex>
    <status>attached</status><attachTime>2026-11-27T04:00:0{card}.000Z</attachTime>
    <deleteOnTermination>true</deleteOnTermination>
  </attachment>
  <association><publicIp>192.0.2.9</publicIp><publicDnsName>other</publicDnsName><ipOwnerId>1</ipOwnerId></association>
  <privateIpAddressesSet><item><privateIpAddress>10.0.1.{card}</privateIpAddress><primary>true</primary></item>
  </privateIpAddressesSet><ipv6AddressesSet/><interfaceType>{kind}</interfaceType>
</item>"""
ANSWER = """<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><reservationSet><item>
<reservationId>r-1</reservationId><ownerId>1</ownerId><groupSet/><instancesSet><item>
  <instanceId>i-1</instanceId><imageId>ami-1</imageId><instanceState><code>16</code><name>running</name></instanceState>
  <privateDnsName>ip-10-0-0-1</privateDnsName><dnsName>ec2-192-0-2-1</dnsName><reason/><keyName>key</keyName>
  <amiLaunchIndex>3</amiLaunchIndex><productCodes/><instanceType>trn1.32xlarge</instanceType>
  <launchTime>2026-11-27T04:00:00.000Z</launchTime><privateIpAddress>10.0.0.1</privateIpAddress>
  <placement><availabilityZone>us-west-2a</availabilityZone><groupName>near</groupName><tenancy>default</tenancy></placement>
  <monitoring><state>disabled</state></monitoring><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId>
  <ipAddress>192.0.2.1</ipAddress><sourceDestCheck>true</sourceDestCheck>
  <groupSet><item><groupId>sg-1</groupId><groupName>efa</groupName></item></groupSet>
  <blockDeviceMapping><item><deviceName>/dev/sda1</deviceName><ebs><volumeId>vol-1</volumeId><status>attached</status>
    <attachTime>2026-11-27T04:00:00.000Z</attachTime><deleteOnTermination>true</deleteOnTermination></ebs></item>
  </blockDeviceMapping>
  <metadataOptions><state>applied</state><httpTokens>required</httpTokens></metadataOptions>
  <tagSet><item><key>trainium:generation</key><value>4</value></item>
    <item><key>note</key><value>&lt;status&gt;x&lt;/status&gt; {{{{ 1 }}}}</value></item></tagSet>
  <networkInterfaceSet>{interfaces}</networkInterfaceSet>
</item></instancesSet></item></reservationSet><nextToken>more</nextToken></DescribeInstancesResponse>"""


@pytest.fixture(scope="module")
def session() -> Any:
    return botocore.session.get_session()


def shape_of(session: Any) -> Any:
    return session.get_service_model("ec2").operation_model("DescribeInstances").output_shape


def parsed(session: Any, body: bytes, wanted: dict[str, Any] | None) -> dict[str, Any]:
    shape = shape_of(session)
    narrow(shape, wanted)
    return dict(create_parser("ec2").parse({"body": body, "headers": {}, "status_code": 200}, shape))


def test_records_are_those_of_the_whole_answer(session: Any) -> None:
    kinds = ("efa", "efa-only", "interface")
    interfaces = (INTERFACE.format(card=card, device=min(card, 1), kind=kind) for card, kind in enumerate(kinds))
    body = ANSWER.format(interfaces="".join(interfaces)).encode()
    light: dict[str, Any] = {"body": body, "status_code": 200}
    lighten(light, operation_model=None)
    assert len(light["body"]) < 0.7 * len(body)
    whole, read = parsed(session, body, None), parsed(session, light["body"], READ)
    assert set(read) == {"Reservations", "NextToken", "ResponseMetadata"}
    assert (read["NextToken"], read["ResponseMetadata"]["RequestId"]) == ("more", "r")
    (before,), (after,) = (answer["Reservations"][0]["Instances"] for answer in (whole, read))
    assert len(after) < len(before)
    # Nor what is not taken from the text before it is parsed.
    assert not {"KeyName", "VpcId", "SecurityGroups", "MetadataOptions"} & set(after)
    assert set(read["Reservations"][0]) == {"Instances"}
    assert len(after["NetworkInterfaces"][0]) < len(before["NetworkInterfaces"][0])
    record = reduce_instance(after, "us-west-2")
    assert record == reduce_instance(before, "us-west-2")
    assert {key for key, value in record.items() if not value} == {"node_role", "cluster_name"}
    assert (record["efa_interface_count"], record["attach_time"]) == (2, "2026-11-27T04:00:00.000+00:00")
    assert record["instance_tags"]["note"] == "<status>x</status> {{ 1 }}"


def test_where_botocore_knows_other_members_everything_is_parsed(session: Any) -> None:
    shape = shape_of(session)
    known = list(shape.members)
    narrow(shape, {"Reservations": None, "Other": None})
    assert list(shape.members) == known
    narrow(object(), READ)


@pytest.mark.parametrize("body", [b"", b"<html>log in first</html>", b"<status>", None])
def test_another_answer_stays_as_it_is(body: bytes | None) -> None:
    answer = {"body": body}
    lighten(answer)
    assert answer == {"body": body}
