"""Each preset is clean for the offline checks, and the real pcluster would create it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.contract.conftest import CREDENTIALS
from tests.contract.pcluster.rehearsals import ACCEPTED, rehearse
from tests.unit.pcluster.pcluster_samples import ALL_PRESETS, configuration_of, findings_of, variables_of

Variables = dict[str, Any]
HOME = "us-west-2"
# Where EC2's offerings have Trainium2.
OTHER = "us-east-2"
REGIONS = {"trn2": OTHER, "capacity_block": OTHER}


class Region:
    """A VPC in a region, with a subnet in every zone, a key and what presets ask for."""

    def __init__(self, site: Any, region: str) -> None:
        self.site, self.region = site, region
        self.ec2 = self.client("ec2")
        vpc = self.ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
        zones = [zone["ZoneName"] for zone in self.ec2.describe_availability_zones()["AvailabilityZones"]]
        self.subnets = {
            zone: str(
                self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.78.{16 * number}.0/20", AvailabilityZone=zone)[
                    "Subnet"
                ]["SubnetId"]
            )
            for number, zone in enumerate(zones)
        }
        key = Path(site.home / "lab.pub").read_bytes()
        self.ec2.import_key_pair(KeyName="presets", PublicKeyMaterial=key)

    def client(self, service: str) -> Any:
        make: Any = boto3.client
        return make(
            service,
            region_name=self.region,
            endpoint_url=self.site.api.url,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def zone(self, preset: str) -> str:
        """A zone that offers every type of a preset's nodes."""
        kinds = {
            resource["InstanceType"]
            for queue in configuration_of(preset)["Scheduling"]["SlurmQueues"]
            for resource in queue["ComputeResources"]
        }
        offers = self.ec2.describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": sorted(kinds)}]
        )["InstanceTypeOfferings"]
        zones = [{item["Location"] for item in offers if item["InstanceType"] == kind} for kind in kinds]
        return min(set.intersection(*zones))

    def network(self, preset: str) -> Variables:
        subnet = self.subnets[self.zone(preset)]
        return {
            "region": self.region,
            "key_name": "presets",
            "head_node": {"subnet_id": subnet},
            "compute_subnet_ids": [subnet],
        }

    def image(self) -> Variables:
        wanted = [{"Name": "name", "Values": ["aws-parallelcluster-*-ubuntu-2404-*-x86_64-*"]}]
        return {"custom_ami": self.ec2.describe_images(Filters=wanted)["Images"][0]["ImageId"]}

    def reserved(self, preset: str, instance_type: str, count: int, **tags: str) -> Any:
        """A reservation in a preset's zone."""
        return self.ec2.create_capacity_reservation(
            InstanceType=instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=self.zone(preset),
            InstanceCount=count,
            InstanceMatchCriteria="targeted",
            TagSpecifications=[
                {
                    "ResourceType": "capacity-reservation",
                    "Tags": [{"Key": key, "Value": value} for key, value in {"Name": preset, **tags}.items()],
                }
            ],
        )["CapacityReservation"]

    def reservation(self, preset: str, instance_type: str, count: int, **tags: str) -> Variables:
        return {
            "capacity_reservation": {"id": self.reserved(preset, instance_type, count, **tags)["CapacityReservationId"]}
        }

    def group(self, preset: str, instance_type: str, count: int) -> Variables:
        """A resource group with one reservation in it."""
        groups, name = self.client("resource-groups"), f"group-{preset}"
        generic = [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}]
        groups.create_group(
            Name=name,
            Configuration=[
                {"Type": "AWS::EC2::CapacityReservationPool"},
                {"Type": "AWS::ResourceGroups::Generic", "Parameters": generic},
            ],
        )
        arn = self.reserved(preset, instance_type, count)["CapacityReservationArn"]
        groups.group_resources(Group=name, ResourceArns=[arn])
        return {"capacity_reservation": {"resource_group_arn": groups.get_group(Group=name)["Group"]["GroupArn"]}}


@pytest.fixture(scope="module")
def variables(site: Any) -> Callable[[str], Variables]:
    """What a preset needs of the account; all of it exists."""
    home, other = Region(site, HOME), Region(site, OTHER)
    bucket = {"LocationConstraint": HOME}
    home.client("s3").create_bucket(Bucket="example-bucket", CreateBucketConfiguration=bucket)
    home.client("s3").put_object(Bucket="example-bucket", Key="scripts/setup.sh", Body=b"#!/bin/sh\n")
    secret = home.client("secretsmanager").create_secret(Name="slurm", SecretString="not one")["ARN"]
    block = {"aws:ec2capacityreservation:capacityReservationType": "capacity-block"}
    needs: dict[str, Callable[[], Variables]] = {
        "p4de_custom_ami": lambda: {**home.image(), **home.reservation("p4de_custom_ami", "p4de.24xlarge", 4)},
        "p4de_postinstall": lambda: home.group("p4de_postinstall", "p4de.24xlarge", 4),
        "p4de_g5_inference": home.image,
        "trn1_custom_ami": lambda: {**home.image(), **home.reservation("trn1_custom_ami", "trn1.32xlarge", 4)},
        "capacity_block": lambda: other.reservation("capacity_block", "trn2.48xlarge", 2, **block),
        "accounting": lambda: {"accounting": {"uri": "db.example.com:3306", "password_secret_arn": secret}},
    }

    def of(preset: str) -> Variables:
        region = other if REGIONS.get(preset) == OTHER else home
        return {**region.network(preset), **needs.get(preset, dict)()}

    return of


def test_the_real_pcluster_accepts_every_preset(site: Any, variables: Callable[[str], Variables]) -> None:
    requests = []
    for number, preset in enumerate(ALL_PRESETS):
        given = variables(preset)
        configuration = configuration_of(preset, **given)
        assert not findings_of(configuration, variables=variables_of(preset, **given))
        arguments = {
            "cluster_name": f"c{number}",
            "cluster_configuration": configuration,
            "region": configuration["Region"],
        }
        requests.append(("create_cluster", arguments))
    refused = {
        preset: [
            item["message"]
            for item in answer["content"].get("configuration_validation_errors", [answer["content"]])
            if item.get("level", "ERROR") == "ERROR"
        ]
        for preset, answer in zip(ALL_PRESETS, rehearse(site, requests))
        if answer["code"] != ACCEPTED
    }
    assert refused == {}
