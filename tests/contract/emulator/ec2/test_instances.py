"""Instances as EC2 shows them: interfaces, tokens, capacity, states, and what hangs on them."""

from __future__ import annotations

import time
from typing import Any

import pytest

TYPE = "trn1.32xlarge"


def test_one_interface_per_card_with_its_type_and_an_address_of_its_own(lab: Any) -> None:
    lab.run(MinCount=2, MaxCount=2)
    addresses = set()
    for instance in lab.shown():
        nics = instance["NetworkInterfaces"]
        places = [(nic["Attachment"]["NetworkCardIndex"], nic["Attachment"]["DeviceIndex"]) for nic in nics]
        assert places == [(card, min(card, 1)) for card in range(8)]
        assert {nic["InterfaceType"] for nic in nics} == {"efa"}
        assert instance["PrivateIpAddress"] == nics[0]["PrivateIpAddress"]
        assert [group["GroupId"] for group in instance["SecurityGroups"]] == [lab.group]
        addresses |= {nic["PrivateIpAddress"] for nic in nics}
    assert len(addresses) == 16
    # EC2 keeps the first four addresses of a subnet.
    assert not addresses & {f"10.66.0.{number}" for number in range(4)}
    assert lab.shown()[0]["PrivateDnsName"] == "ip-10-66-0-4.us-west-2.compute.internal"


def test_efa_only_interfaces_have_no_address(lab: Any) -> None:
    layout = [*lab.nics(1, "interface"), {**lab.nics(1, "efa-only")[0], "DeviceIndex": 1}, *lab.nics(8, "efa-only")[1:]]
    lab.run(NetworkInterfaces=layout)
    (instance,) = lab.shown()
    nics = instance["NetworkInterfaces"]
    assert [nic["InterfaceType"] for nic in nics] == ["interface"] + ["efa-only"] * 8
    assert [nic.get("PrivateIpAddress") for nic in nics] == ["10.66.0.4"] + [None] * 8
    (subnet,) = lab.ec2.describe_subnets(SubnetIds=[lab.subnet])["Subnets"]
    assert subnet["AvailableIpAddressCount"] == 4096 - 5 - 1


def test_interfaces_at_device_0_of_other_cards_are_not_the_primary_one(lab: Any) -> None:
    layout = [{**nic, "DeviceIndex": 0} for nic in reversed(lab.nics())]
    lab.run(NetworkInterfaces=layout)
    (instance,) = lab.shown()
    addresses = [nic["PrivateIpAddress"] for nic in instance["NetworkInterfaces"]]
    assert len(set(addresses)) == 8
    assert instance["PrivateIpAddress"] == addresses[0]


def test_tags_encryption_and_metadata_options_are_kept(lab: Any) -> None:
    kinds = ("instance", "volume", "network-interface")
    ebs = {"VolumeSize": 512, "VolumeType": "gp3", "Encrypted": True, "Iops": 4000, "Throughput": 250}
    lab.run(
        TagSpecifications=[lab.named(kind, kind=kind) for kind in kinds],
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": ebs}],
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
    )
    (instance,) = lab.shown(Filters=lab.by("tag:kind", "instance"))
    (volume,) = lab.ec2.describe_volumes(Filters=lab.by("tag:kind", "volume"))["Volumes"]
    wanted = {"Size": 512, "VolumeType": "gp3", "Encrypted": True, "Iops": 4000, "Throughput": 250}
    assert {key: volume[key] for key in wanted} == wanted
    found = lab.ec2.describe_network_interfaces(Filters=lab.by("tag:kind", "network-interface"))["NetworkInterfaces"]
    assert len(found) == 8
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    lab.ec2.modify_instance_metadata_options(InstanceId=instance["InstanceId"], HttpEndpoint="disabled")
    options = lab.shown()[0]["MetadataOptions"]
    assert (options["HttpTokens"], options["HttpPutResponseHopLimit"], options["HttpEndpoint"]) == (
        "required",
        2,
        "disabled",
    )


def test_a_client_token_launches_once(lab: Any) -> None:
    request = {"ClientToken": "one", "MinCount": 2, "MaxCount": 2}
    first = {instance["InstanceId"] for instance in lab.run(**request)}
    assert {instance["InstanceId"] for instance in lab.run(**request)} == first
    assert {i["InstanceId"] for i in lab.shown(Filters=lab.by("client-token", "one"))} == first
    changed = lab.request(ClientToken="one", InstanceType="trn1n.32xlarge")
    assert lab.code_of(lambda: lab.ec2.run_instances(**changed)) == "IdempotentParameterMismatch"
    assert len(lab.shown()) == 2


def test_a_client_token_whose_instances_are_gone_is_refused(lab: Any) -> None:
    """EC2's table of error codes: "uses the same client token as a previous request ... terminated"."""
    request = {"ClientToken": "one", "MinCount": 2, "MaxCount": 2}
    first, second = (instance["InstanceId"] for instance in lab.run(**request))
    lab.ec2.terminate_instances(InstanceIds=[first])
    assert {instance["InstanceId"] for instance in lab.run(**request)} == {first, second}
    lab.terminate()
    assert lab.code_of(lambda: lab.run(**request)) == "IdempotentInstanceTerminated"


def test_a_forced_stop_takes_the_power(lab: Any) -> None:
    (identity,) = (instance["InstanceId"] for instance in lab.run())
    lab.wait("running")
    for force in (True, False):
        lab.ec2.stop_instances(InstanceIds=[identity], Force=force)
        assert [host["powered_off"] for host in lab.api.control("GET", "hosts")] == [force]
        lab.wait("stopped")
        lab.ec2.start_instances(InstanceIds=[identity])
        lab.wait("running")


def test_the_launch_time_is_that_of_the_last_start_and_the_attachment_stays(lab: Any) -> None:
    lab.run()
    lab.wait("running")
    before = lab.shown()[0]
    identity = [before["InstanceId"]]
    lab.ec2.stop_instances(InstanceIds=identity)
    lab.wait("stopped")
    # EC2 counts in seconds.
    while time.time() < before["LaunchTime"].timestamp() + 1:
        time.sleep(0.05)
    lab.ec2.start_instances(InstanceIds=identity)
    after = lab.shown()[0]
    assert after["LaunchTime"] > before["LaunchTime"]
    assert after["LaunchTime"].microsecond == 0
    attached = [nic["Attachment"]["AttachTime"] for nic in before["NetworkInterfaces"]]
    assert [nic["Attachment"]["AttachTime"] for nic in after["NetworkInterfaces"]] == attached
    assert attached[0] <= before["LaunchTime"]


def test_every_instance_of_a_launch_has_the_profile(lab: Any) -> None:
    lab.client("iam").create_instance_profile(InstanceProfileName="one")
    request = {"ClientToken": "one", "MinCount": 2, "MaxCount": 2, "IamInstanceProfile": {"Name": "one"}}
    # EC2 does not see it at once.
    assert lab.code_of(lambda: lab.run(**request)) == "InvalidParameterValue"
    time.sleep(0.5)
    lab.run(**request)
    lab.run(**request)
    arns = [instance["IamInstanceProfile"]["Arn"] for instance in lab.shown()]
    assert [arn.rpartition("/")[2] for arn in arns] == ["one", "one"]


def test_capacity_is_used_up_and_given_back(lab: Any) -> None:
    lab.api.capacity(TYPE, lab.zones[0], 3)
    assert len(lab.run(MaxCount=2)) == 2
    assert len(lab.run(MaxCount=9)) == 1
    assert lab.code_of(lab.run) == "InsufficientInstanceCapacity"
    lab.terminate()
    assert lab.api.control("GET", "capacity") == [{"instance_type": TYPE, "zone": lab.zones[0], "count": 3}]


def test_a_capacity_reservation_is_used_up(lab: Any) -> None:
    made = lab.ec2.create_capacity_reservation(
        InstanceType=TYPE,
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=lab.zones[0],
        InstanceCount=1,
        InstanceMatchCriteria="targeted",
        TagSpecifications=[lab.named("capacity-reservation", team="speech")],
    )
    reservation = made["CapacityReservation"]["CapacityReservationId"]
    # Nothing but the reservation is left in the zone.
    lab.api.capacity(TYPE, lab.zones[0], 0)
    target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
    (instance,) = lab.run(CapacityReservationSpecification=target)
    assert instance["CapacityReservationId"] == reservation
    assert lab.code_of(lambda: lab.run(CapacityReservationSpecification=target)) == "ReservationCapacityExceeded"

    def available() -> int:
        found = lab.ec2.describe_capacity_reservations(Filters=lab.by("tag:team", "speech"))["CapacityReservations"]
        return int(found[0]["AvailableInstanceCount"])

    assert available() == 0
    lab.terminate()
    assert available() == 1


def test_states_take_time_and_everything_is_given_back(lab: Any) -> None:
    (instance,) = lab.run()
    assert [i["State"]["Name"] for i in lab.shown()] == ["pending"]
    lab.wait("running")
    identity = [instance["InstanceId"]]
    lab.ec2.stop_instances(InstanceIds=identity)
    lab.wait("stopped")
    lab.ec2.start_instances(InstanceIds=identity)
    lab.wait("running")
    lab.ec2.terminate_instances(InstanceIds=identity)
    assert [i["State"]["Name"] for i in lab.shown()] == ["shutting-down"]
    lab.ec2.terminate_instances(InstanceIds=identity)
    lab.wait("terminated")
    lab.ec2.terminate_instances(InstanceIds=identity)
    assert lab.shown()[0].get("NetworkInterfaces", []) == []
    assert lab.ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert lab.ec2.describe_volumes()["Volumes"] == []


def test_a_reset_in_the_middle_of_a_change_stops_no_later_change(lab: Any) -> None:
    lab.run()
    lab.wait("running")
    lab.ec2.terminate_instances(InstanceIds=[lab.shown()[0]["InstanceId"]])
    after = type(lab)(lab.api)
    after.run()
    after.wait("running")


def test_what_is_in_use_cannot_be_deleted(lab: Any) -> None:
    (instance,) = lab.run()
    nic = instance["NetworkInterfaces"][0]["NetworkInterfaceId"]
    other = lab.ec2.create_security_group(GroupName="other", Description="other", VpcId=lab.vpc)["GroupId"]
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
    lab.ec2.authorize_security_group_ingress(GroupId=lab.group, IpPermissions=rule)
    assert lab.code_of(lambda: lab.ec2.delete_security_group(GroupId=lab.group)) == "DependencyViolation"
    assert lab.code_of(lambda: lab.ec2.delete_security_group(GroupId=other)) == "DependencyViolation"
    assert lab.code_of(lambda: lab.ec2.delete_subnet(SubnetId=lab.subnet)) == "DependencyViolation"
    assert lab.code_of(lambda: lab.ec2.delete_vpc(VpcId=lab.vpc)) == "DependencyViolation"
    assert lab.code_of(lambda: lab.ec2.delete_network_interface(NetworkInterfaceId=nic)) == "InvalidParameterValue"
    lab.terminate()
    lab.ec2.delete_security_group(GroupId=lab.group)
    lab.ec2.delete_security_group(GroupId=other)
    lab.ec2.delete_subnet(SubnetId=lab.subnet)
    lab.ec2.delete_vpc(VpcId=lab.vpc)


def test_elastic_addresses(lab: Any) -> None:
    (instance,) = lab.run()
    made = lab.ec2.allocate_address(Domain="vpc", TagSpecifications=[lab.named("elastic-ip", team="speech")])
    address, public = made["AllocationId"], made["PublicIp"]
    assert public.startswith("198.51.100.")
    several = {"AllocationId": address, "InstanceId": instance["InstanceId"]}
    assert lab.code_of(lambda: lab.ec2.associate_address(**several)) == "InvalidInstanceID"
    nic = instance["NetworkInterfaces"][0]["NetworkInterfaceId"]
    lab.ec2.associate_address(AllocationId=address, NetworkInterfaceId=nic)
    assert lab.shown()[0]["PublicIpAddress"] == public
    (found,) = lab.ec2.describe_addresses(Filters=lab.by("tag:team", "speech"))["Addresses"]
    assert (found["InstanceId"], found["NetworkInterfaceId"]) == (instance["InstanceId"], nic)
    assert lab.code_of(lambda: lab.ec2.release_address(AllocationId=address)) == "InvalidIPAddress.InUse"
    assert [host["public_ips"] for host in lab.api.control("GET", "hosts")] == [[public]]
    lab.terminate()
    lab.ec2.release_address(AllocationId=address)
    assert lab.ec2.describe_addresses()["Addresses"] == []


def test_placement_groups(lab: Any) -> None:
    request = {"GroupName": "speech", "Strategy": "cluster"}
    made = lab.ec2.create_placement_group(**request, TagSpecifications=[lab.named("placement-group", team="speech")])
    identity = made["PlacementGroup"]["GroupId"]
    assert lab.code_of(lambda: lab.ec2.create_placement_group(**request)) == "InvalidPlacementGroup.Duplicate"
    lab.ec2.create_tags(Resources=[identity], Tags=[{"Key": "year", "Value": "2026"}])
    lab.ec2.delete_tags(Resources=[identity], Tags=[{"Key": "team"}])
    (found,) = lab.ec2.describe_placement_groups(Filters=lab.by("tag:year", "20*"))["PlacementGroups"]
    assert found["Tags"] == [{"Key": "year", "Value": "2026"}]
    assert lab.ec2.describe_placement_groups(Filters=lab.by("tag:team", "speech"))["PlacementGroups"] == []
    lab.run(Placement={"GroupName": "speech"})
    assert len(lab.shown(Filters=lab.by("placement-group-name", "speech"))) == 1
    assert lab.code_of(lambda: lab.ec2.delete_placement_group(GroupName="speech")) == "InvalidPlacementGroup.InUse"
    lab.terminate()
    lab.ec2.delete_placement_group(GroupName="speech")
    assert lab.ec2.describe_placement_groups()["PlacementGroups"] == []


@pytest.mark.parametrize("market", ["spot", "capacity-block"])
def test_the_market_is_shown(lab: Any, market: str) -> None:
    lab.run(InstanceMarketOptions={"MarketType": market})
    assert [i["InstanceLifecycle"] for i in lab.shown(Filters=lab.by("instance-lifecycle", market))] == [market]


def test_pages_count_instances(lab: Any) -> None:
    lab.run(MinCount=4, MaxCount=4)
    lab.run(MinCount=3, MaxCount=3)
    pages = lab.ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 3})
    found = [[i["InstanceId"] for r in page["Reservations"] for i in r["Instances"]] for page in pages]
    assert [len(page) for page in found] == [3, 3, 1]
    assert len({identity for page in found for identity in page}) == 7


def test_quotas_are_shown_and_enforced(lab: Any) -> None:
    lab.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": 128})
    quota = lab.client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-2C3B7624")["Quota"]
    assert quota["Value"] == 128
    listed = {}
    for operation in ("list_service_quotas", "list_aws_default_service_quotas"):
        pages = lab.client("service-quotas").get_paginator(operation).paginate(ServiceCode="ec2")
        listed[operation] = [item["QuotaName"] for page in pages for item in page["Quotas"]]
    # What the account never had raised is among the defaults only.
    assert listed.pop("list_service_quotas") == ["Running On-Demand Trn instances"]
    assert "All Trn Spot Instance Requests" in listed.pop("list_aws_default_service_quotas")
    lab.run()
    assert lab.code_of(lab.run) == "VcpuLimitExceeded"


def test_images_have_parameters_and_exist(lab: Any) -> None:
    prefix = "/aws/service/neuron/dlami"
    found = lab.client("ssm").get_parameters_by_path(Path=prefix, Recursive=True)["Parameters"]
    names = {f"{prefix}/{kind}/latest/image_id" for kind in ("base/ubuntu-24.04", "base/amazon-linux-2023")}
    assert names < {parameter["Name"] for parameter in found}
    images = lab.ec2.describe_images(ImageIds=[parameter["Value"] for parameter in found])["Images"]
    assert len(images) == 3
    assert {image["ImageOwnerAlias"] for image in images} == {"amazon"}
    older = lab.by("description", "*Neuron SDK 2.29.1*")
    names = {image["Name"] for image in lab.ec2.describe_images(Owners=["amazon"], Filters=older)["Images"]}
    assert names == {f"Deep Learning {kind} (Ubuntu 24.04) 20260501" for kind in ("Base Neuron AMI", "AMI Neuron")}


def test_nat_gateways_are_found_by_their_tags(lab: Any) -> None:
    made = []
    for cluster in ("one", "two"):
        tags = [{"ResourceType": "natgateway", "Tags": [{"Key": "trainium:cluster", "Value": cluster}]}]
        address = lab.ec2.allocate_address(Domain="vpc")["AllocationId"]
        gateway = lab.ec2.create_nat_gateway(SubnetId=lab.subnet, AllocationId=address, TagSpecifications=tags)
        made.append(gateway["NatGateway"]["NatGatewayId"])
    by_tag = lab.ec2.describe_nat_gateways(Filters=[{"Name": "tag:trainium:cluster", "Values": ["two"]}])
    assert [gateway["NatGatewayId"] for gateway in by_tag["NatGateways"]] == made[1:]


@pytest.mark.parametrize(
    ("asked", "ended"),
    [({}, "stopped"), ({"InstanceInitiatedShutdownBehavior": "terminate"}, "terminated")],
)
def test_a_shutdown_from_within_does_what_the_launch_said(lab: Any, asked: dict[str, str], ended: str) -> None:
    (instance,) = lab.run(**asked)
    lab.wait("running")
    lab.api.control("POST", "shutdown", {"instance_id": instance["InstanceId"]})
    lab.wait(ended)
    (found,) = lab.shown(ended)
    assert found["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"
