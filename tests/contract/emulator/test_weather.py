"""How calls fare on a bad day, and how EC2's descriptions lag behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from sandbox.emulator.server.weather import KINDS, Weather
from tests.contract.conftest import CREDENTIALS, REGION, Account, client


def weather(cloud: Account, kind: str, **more: Any) -> Any:
    """An EC2 client that tries once, while every call meets one kind."""
    cloud.api.control("POST", "weather", {"share": 1, "kinds": [kind], **more})
    return client("ec2", cloud.api.url, retries=0)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("throttled", "RequestLimitExceeded"),
        ("failed", "InternalError"),
        ("unavailable", "Unavailable"),
        ("html", "502"),
        ("expired", "RequestExpired"),
    ],
)
def test_a_call_is_refused(cloud: Account, kind: str, code: str) -> None:
    ec2 = weather(cloud, kind)
    with pytest.raises(ClientError) as caught:
        ec2.create_vpc(CidrBlock="10.1.0.0/16")
    assert caught.value.response["Error"]["Code"] == code
    cloud.api.control("DELETE", "weather")
    assert "10.1.0.0/16" not in [one["CidrBlock"] for one in cloud.ec2.describe_vpcs()["Vpcs"]]


@pytest.mark.parametrize(
    ("service", "call", "code", "status"),
    [
        ("sts", "get_caller_identity", "ExpiredToken", 403),
        ("elbv2", "describe_load_balancers", "ExpiredToken", 403),
        ("route53", "list_hosted_zones", "ExpiredToken", 403),
        ("s3", "list_buckets", "ExpiredToken", 400),
        ("ssm", "describe_parameters", "ExpiredTokenException", 400),
        ("eks", "list_clusters", "ExpiredTokenException", 403),
    ],
)
def test_services_say_in_their_own_words_that_credentials_have_expired(
    cloud: Account, service: str, call: str, code: str, status: int
) -> None:
    """Whoever has other credentials is answered."""
    weather(cloud, "expired", access_key=CREDENTIALS["AWS_ACCESS_KEY_ID"])
    boto3.client(
        "ec2", REGION, endpoint_url=cloud.api.url, aws_access_key_id="x", aws_secret_access_key="x"
    ).describe_vpcs()
    with pytest.raises(ClientError, match="expired") as caught:
        getattr(client(service, cloud.api.url, retries=0), call)()
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize(("kind", "made"), [("lost", 1), ("cut", 0)])
def test_a_connection_is_cut_after_or_before_the_work(cloud: Account, kind: str, made: int) -> None:
    ec2 = weather(cloud, kind)
    with pytest.raises(ConnectionClosedError):
        ec2.create_vpc(CidrBlock="10.1.0.0/16")
    assert cloud.api.control("GET", "weather") == {kind: 1}
    cloud.api.control("DELETE", "weather")
    assert [one["CidrBlock"] for one in cloud.ec2.describe_vpcs()["Vpcs"]].count("10.1.0.0/16") == made


def test_an_answer_is_late(cloud: Account) -> None:
    began = time.monotonic()
    weather(cloud, "late", late=2, seed="1").describe_vpcs()
    assert time.monotonic() - began > 0.1


def test_what_calls_meet_goes_by_the_seed() -> None:
    def met(seed: str, share: float) -> list[Any]:
        one = Weather()
        one.change({"share": share, "seed": seed, "late": 1})
        return [one.draw("ec2", f"Describe{number % 9}") for number in range(900)]

    assert met("a", 0.3) == met("a", 0.3) != met("b", 0.3)
    assert 200 < sum(one is not None for one in met("a", 0.3)) < 340
    assert {one is None for one in met("a", 0)} == {True}
    with pytest.raises(ValueError, match="no such weather: fog"):
        Weather().change({"share": 1, "kinds": ["fog", *KINDS]})


def test_what_was_made_shows_later(cloud: Account) -> None:
    ec2 = cloud.ec2
    before = {one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]}
    # So long that it does not end before everything has been looked at.
    cloud.api.control("POST", "lag", {"seconds": 36000, "seed": "2"})
    new = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="late", Description="x", VpcId=new)["GroupId"]
    # What changes it works at once.
    ec2.modify_vpc_attribute(VpcId=new, EnableDnsHostnames={"Value": True})
    launch = {"ImageId": cloud.image, "InstanceType": "t3.micro", "MinCount": 2, "MaxCount": 2}
    instances = [one["InstanceId"] for one in ec2.run_instances(**launch)["Instances"]]
    looks: list[tuple[Callable[[], Any], str]] = [
        (lambda: ec2.describe_vpcs(VpcIds=[new]), "InvalidVpcID.NotFound"),
        (lambda: ec2.describe_security_groups(GroupIds=[group]), "InvalidGroup.NotFound"),
        (lambda: ec2.describe_instances(InstanceIds=instances), "InvalidInstanceID.NotFound"),
    ]
    for look, code in looks:
        with pytest.raises(ClientError) as caught:
            look()
        assert caught.value.response["Error"]["Code"] == code
    assert {one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]} == before
    filters = [{"Name": "vpc-id", "Values": [new]}]
    assert "late" not in [one["GroupName"] for one in ec2.describe_security_groups(Filters=filters)["SecurityGroups"]]
    assert ec2.describe_instances()["Reservations"] == []
    cloud.api.control("DELETE", "lag")
    for look, _code in looks:
        look()
    assert new in {one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]}
    assert len(ec2.describe_instances()["Reservations"][0]["Instances"]) == 2


def test_what_was_made_shows_by_itself(cloud: Account) -> None:
    cloud.api.control("POST", "lag", {"seconds": 1, "seed": "2"})
    new = cloud.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    until = time.monotonic() + 60
    while new not in {one["VpcId"] for one in cloud.ec2.describe_vpcs()["Vpcs"]}:
        assert time.monotonic() < until
        time.sleep(0.1)
