"""The role network: what it makes, what it takes for its own, and what it refuses."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from sandbox.emulator.server.control import CALLER
from tests.contract.conftest import actions, idle, policy
from tests.contract.network.conftest import Controller, changed

NAME = "bert"
CIDR = "10.77.0.0/16"
MINE = [{"Name": "tag:trainium:cluster", "Values": [NAME]}, {"Name": "tag:trainium:role", "Values": ["network"]}]
Item = dict[str, Any]


class Proxy(http.server.BaseHTTPRequestHandler):
    """Answers every request by itself and keeps what was asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        Proxy.asked.append(self.path)
        body = b"<html>log in first</html>" if self.path.endswith("/login") else b"203.0.113.7\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the screen."""


@pytest.fixture
def proxy() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def tags(item: Item) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


@pytest.fixture(scope="module")
def foreign(controller: Controller) -> Item:
    """A VPC with the name and CIDR of the cluster, and a key pair of that name that is not its own but holds our key.

    A second key pair holds somebody else's key.
    """
    controller.variables.update(
        trainium_cluster_name=NAME,
        trainium_key_name="own",
        trainium_backend="pcluster",
        trainium_public_ip="primary",
        network_address_service=f"{controller.api.url}/sandbox-api/address",
    )
    named = [{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": NAME}]}]
    vpc = controller.ec2.create_vpc(CidrBlock=CIDR, TagSpecifications=named)["Vpc"]["VpcId"]
    controller.ec2.import_key_pair(KeyName=NAME, PublicKeyMaterial=(controller.folder / "lab.pub").read_bytes())
    controller.ec2.create_key_pair(KeyName="planted")
    return dict(look(controller, vpc))


def look(controller: Controller, vpc: str) -> Item:
    """All that there is to see of a VPC and of the key pair."""
    ec2, inside = controller.ec2, [{"Name": "vpc-id", "Values": [vpc]}]
    return {
        "vpc": ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"],
        "names": ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"],
        "subnets": ec2.describe_subnets(Filters=inside)["Subnets"],
        "groups": ec2.describe_security_groups(Filters=inside)["SecurityGroups"],
        "key": ec2.describe_key_pairs(KeyNames=[NAME])["KeyPairs"],
    }


def known(controller: Controller) -> Item:
    """The names of what belongs to the cluster."""
    ec2 = controller.ec2
    return {
        "VPCs": {item["VpcId"] for item in ec2.describe_vpcs(Filters=MINE)["Vpcs"]},
        "subnets": {item["SubnetId"] for item in ec2.describe_subnets(Filters=MINE)["Subnets"]},
        "tables": {item["RouteTableId"] for item in ec2.describe_route_tables(Filters=MINE)["RouteTables"]},
        "gateways": {item["InternetGatewayId"] for item in ec2.describe_internet_gateways()["InternetGateways"]},
        "NAT gateways": {item["NatGatewayId"] for item in ec2.describe_nat_gateways()["NatGateways"]},
        "addresses": {item["AllocationId"] for item in ec2.describe_addresses()["Addresses"]},
        "endpoints": {item["VpcEndpointId"] for item in ec2.describe_vpc_endpoints()["VpcEndpoints"]},
        "groups": {item["GroupId"] for item in ec2.describe_security_groups(Filters=MINE)["SecurityGroups"]},
        "keys": {item["KeyName"] for item in ec2.describe_key_pairs()["KeyPairs"]},
    }


@pytest.fixture(scope="module")
def made(controller: Controller, foreign: Item) -> int:
    """The network that the tests share; how many tasks changed something."""
    controller.limit("network")
    controller.api.clear_calls()
    return changed(controller.role("network"))


def test_nothing_foreign_is_taken_for_its_own(controller: Controller, foreign: Item, made: int) -> None:
    assert look(controller, foreign["vpc"][0]["VpcId"]) == foreign
    (vpc,) = controller.ec2.describe_vpcs(Filters=MINE)["Vpcs"]
    assert vpc["VpcId"] != foreign["vpc"][0]["VpcId"]
    assert vpc["CidrBlock"] == CIDR


def test_everything_carries_its_owner(controller: Controller, made: int) -> None:
    ec2 = controller.ec2
    arn = controller.client("sts").get_caller_identity()["Arn"]
    for items in (
        ec2.describe_vpcs(Filters=MINE)["Vpcs"],
        ec2.describe_subnets(Filters=MINE)["Subnets"],
        ec2.describe_addresses(Filters=MINE)["Addresses"],
        ec2.describe_nat_gateways(Filters=MINE)["NatGateways"],
        ec2.describe_vpc_endpoints(Filters=MINE)["VpcEndpoints"],
        ec2.describe_security_groups(Filters=MINE)["SecurityGroups"],
    ):
        assert items
        assert {tags(item).get("trainium:owner") for item in items} == {arn}


def test_the_address_of_the_gateway_is_tagged_when_it_is_allocated(controller: Controller, made: int) -> None:
    (call,) = controller.api.calls("AllocateAddress")
    sent = {value for key, value in call["parameters"].items() if key.startswith("TagSpecification.1.Tag.")}
    assert {"trainium:cluster", NAME} <= sent
    (address,) = controller.ec2.describe_addresses()["Addresses"]
    (gateway,) = controller.ec2.describe_nat_gateways()["NatGateways"]
    assert gateway["NatGatewayAddresses"][0]["AllocationId"] == address["AllocationId"]


def test_every_subnet_reaches_s3_without_the_nat_gateway(controller: Controller, made: int) -> None:
    (endpoint,) = controller.ec2.describe_vpc_endpoints()["VpcEndpoints"]
    assert endpoint["ServiceName"] == "com.amazonaws.us-west-2.s3"
    assert endpoint["VpcEndpointType"] == "Gateway"
    tables = controller.ec2.describe_route_tables(Filters=MINE)["RouteTables"]
    assert sorted(endpoint["RouteTableIds"]) == sorted(table["RouteTableId"] for table in tables)
    associated = {entry["SubnetId"] for table in tables for entry in table["Associations"]}
    assert associated == {item["SubnetId"] for item in controller.ec2.describe_subnets(Filters=MINE)["Subnets"]}


def test_its_policy_allows_what_it_does_and_nothing_else(controller: Controller, made: int) -> None:
    used = controller.api.used("network")
    assert used <= actions("network") | {"sts:GetCallerIdentity"}
    # What only a run needs that finds another key, route or rule than the wanted one, or a region that names no zones.
    # What the playbook does beside is in test_policies.py.
    others = [set(one["Action"]) for one in policy("network") if one["Sid"] in ("ChangeIt", "WorkAlone")]
    others.append({"ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTypes"})
    assert actions("network") - used == set().union(*others)


def test_ssh_comes_from_the_callers_public_address(controller: Controller, made: int) -> None:
    (group,) = controller.ec2.describe_security_groups(Filters=MINE)["SecurityGroups"]
    (rule,) = [rule for rule in group["IpPermissions"] if rule.get("FromPort") == 22]
    assert sorted(item["CidrIp"] for item in rule["IpRanges"]) == [CIDR, f"{CALLER}/32"]


def test_the_second_run_changes_nothing(controller: Controller, made: int) -> None:
    controller.api.clear_calls()
    done = controller.role("network")
    assert changed(done) == 0
    assert "WARNING" not in done.stdout + done.stderr
    assert controller.api.writes() == []


class Metadata(http.server.BaseHTTPRequestHandler):
    """The instance metadata service, version 2, of an instance in ``vpc``."""

    vpc = ""
    PATHS = "/latest/meta-data/"

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_PUT(self) -> None:
        self._answer(200 if self.path == "/latest/api/token" else 404, "token")

    def do_GET(self) -> None:
        mac = "02:00:00:00:00:01"
        known = {
            f"{self.PATHS}mac": mac,
            f"{self.PATHS}network/interfaces/macs/{mac}/vpc-id": Metadata.vpc,
        }
        if self.headers.get("X-aws-ec2-metadata-token") != "token":
            self._answer(401, "")
        else:
            self._answer(200 if self.path in known else 404, known.get(self.path, ""))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the screen."""


@pytest.fixture
def metadata() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_what_cannot_work_is_refused_in_one_sentence(controller: Controller, made: int, proxy: str) -> None:
    """On a laptop behind a proxy: no address, nodes out of reach, a cluster of another owner, a foreign key."""
    service, private = "http://checkip.example.com/", {"trainium_backend": "ec2", "network_public_ip": "none"}
    controller.environment = {"http_proxy": proxy, "no_proxy": "127.0.0.1"}
    controller.api.clear_calls()
    try:
        through, page, silent, laptop, head, private_access, session, own_subnets, other, planted, shared = (
            controller.cases(
                ("network:callers", {"network_address_service": service}),
                ("network:callers", {"network_address_service": f"{service}login"}),
                ("network:callers", {"network_address_service": "http://127.0.0.1:9/"}),
                ("network:reach", private),
                ("network:reach", {**private, "trainium_backend": "pcluster"}),
                ("network:reach", {**private, "trainium_private_access": True}),
                ("network:reach", {**private, "trainium_connection": "ssm"}),
                ("network:reach", {**private, "trainium_subnet_ids": ["subnet-1"]}),
                ("network", {"trainium_owner": "somebody"}),
                ("network", {"network_key_name": "planted"}),
                ("network:key", {"network_key_name": NAME}),
            )
        )
    finally:
        controller.environment = {}
    assert through == ""
    assert Proxy.asked == [service, f"{service}login"]
    assert f"could not be learned from {service}login (it did not answer with an IPv4 address)" in page
    assert "could not be learned from http://127.0.0.1:9/" in silent
    assert "set trainium_ssh_allowed_cidrs to the networks from which you use ssh" in silent
    assert laptop.startswith(f"Nobody could log in to the nodes of {NAME}: trainium_public_ip is none, there is no")
    assert head == laptop.replace("trainium_connection to ssm, ", "")
    assert private_access == session == own_subnets == ""
    assert other.startswith(f"The cluster {NAME} in us-west-2 belongs to arn:aws:")
    assert "and you are somebody; take another trainium_cluster_name" in other
    assert shared == ""
    assert "key pair planted in us-west-2 is not this cluster's and holds another public key" in planted
    assert controller.api.writes() == []


def test_an_instance_in_the_clusters_vpc_reaches_the_nodes(controller: Controller, made: int, metadata: str) -> None:
    private = {"trainium_backend": "ec2", "network_public_ip": "none"}
    Metadata.vpc = controller.ec2.describe_vpcs(Filters=MINE)["Vpcs"][0]["VpcId"]
    controller.environment = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    try:
        inside, elsewhere = controller.cases(
            ("network:reach", private), ("network:reach", {**private, "network_cluster_name": "another"})
        )
    finally:
        controller.environment = {}
    assert inside == ""
    assert "Nobody could log in to the nodes of another" in elsewhere


def test_a_subnet_of_somebody_in_the_clusters_vpc_is_not_taken(controller: Controller, made: int) -> None:
    """It would get the cluster's tag, and teardown.yml would delete it."""
    mark = [{"Key": "trainium:cluster", "Value": "shared"}, {"Key": "trainium:role", "Value": "network"}]
    tagged = [{"ResourceType": "vpc", "Tags": mark}]
    vpc = controller.ec2.create_vpc(CidrBlock=CIDR, TagSpecifications=tagged)["Vpc"]["VpcId"]
    cidrs = {item["CidrBlock"] for item in controller.ec2.describe_subnets(Filters=MINE)["Subnets"]}
    subnet = controller.ec2.create_subnet(VpcId=vpc, CidrBlock=min(cidrs))["Subnet"]["SubnetId"]
    controller.api.clear_calls()
    (said,) = controller.cases(("network", {"network_cluster_name": "shared"}))
    assert f"{subnet} ({min(cidrs)}) is in {vpc}, the VPC of the cluster shared, and carries no tag" in said
    assert controller.api.writes() == []


def test_a_change_takes_the_statements_that_the_first_run_does_not(controller: Controller, made: int) -> None:
    """A further tag is given to what is there, and makes nothing twice."""
    before = known(controller)
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(controller.folder / "newer")]
    subprocess.run(key, check=True)
    newer = controller.folder / "newer.pub"
    other = {"network_ssh_allowed_cidrs": ["192.0.2.0/24"], "network_tags": {"team": "speech"}}
    assert controller.cases(("network", {**other, "network_public_key_file": str(newer)})) == [""]
    assert known(controller) == before
    (pair,) = controller.ec2.describe_key_pairs(KeyNames=["own"], IncludePublicKey=True)["KeyPairs"]
    assert pair["PublicKey"].split()[:2] == newer.read_text().split()[:2]
    tables = controller.ec2.describe_route_tables(Filters=MINE)["RouteTables"]
    assert {tags(table).get("team") for table in tables} == {"speech"}
    assert idle(controller.api.needs("network"), "network") == ["WorkAlone"]
