"""Modules against the emulated AWS API over HTTP: an emulator process and an account with a network."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sandbox.account import token
from sandbox.emulator.access.statements import allowed
from tests.contract.warm_python import EMULATOR, warm_python

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "us-west-2"
MODULES = "ansible_collections.trainium.cluster.plugins.modules"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing-id", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
FIRST_BOOT = """\
Cloud-init v. 24.4 running 'init-local' at Thu, 01 Jan 2026 00:00:00 +0000. Up 5.00 seconds.
-----BEGIN SSH HOST KEY KEYS-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAABWZpcnN0 root@node
-----END SSH HOST KEY KEYS-----
"""
Result = dict[str, Any]


def controller_environment(url: str, **more: str) -> dict[str, str]:
    """That of Ansible on a controller which knows an emulator's account, and no other of whoever runs the tests."""
    own = ("AWS_", "ANSIBLE_", "TRAINIUM_")
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(own) and not key.lower().endswith("_proxy")
    }
    account = {**CREDENTIALS, "AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_DISABLED": "true"}
    return {**kept, **account, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), **more}


@functools.cache
def client(service: str, url: str, region: str = REGION, retries: int | None = None) -> Any:
    """A client for an emulator, made once: it reads a service's whole model."""
    make: Any = boto3.client
    config = None if retries is None else Config(retries={"max_attempts": retries})
    credentials = {key.lower(): value for key, value in CREDENTIALS.items()}
    return make(service, region_name=region, endpoint_url=url, config=config, **credentials)


@functools.cache
def zones_with(instance_type: str, url: str) -> tuple[str, ...]:
    """The zones that offer a type, in order; a reset does not change them."""
    found = client("ec2", url).describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )
    return tuple(sorted(item["Location"] for item in found["InstanceTypeOfferings"]))


@functools.cache
def any_image(url: str) -> str:
    """An image of AWS's; a reset does not change them."""
    return str(client("ec2", url).describe_images(Owners=["amazon"])["Images"][0]["ImageId"])


class Api:
    """An emulator process and its control API."""

    def __init__(self, pending: float) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory()
        self._token = token.make(Path(self._folder.name) / "token")
        command = [warm_python(*EMULATOR), "-m", "sandbox.emulator", "--port", str(self.port)]
        command += ["--pending", str(pending), "--token-file", f"{self._folder.name}/token"]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while True:
            with contextlib.suppress(OSError):
                self.control("GET", "health")
                return
            assert self._process.poll() is None, "the emulator ended"
            assert time.monotonic() < deadline, "the emulator does not answer"
            time.sleep(0.05)

    @property
    def headers(self) -> dict[str, str]:
        """What every control call has."""
        return {"Content-Type": "application/json", token.HEADER: self._token}

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, json.dumps(body), self.headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def control(self, method: str, path: str, body: Any = None) -> Any:
        return self._request(method, f"/sandbox-api/{path}", body)

    def reset(self) -> None:
        self._request("POST", "/moto-api/reset")
        self.control("POST", "clear")

    def boots(self, identity: str) -> None:
        """An instance writes to its console what cloud-init does at a first boot, by which its host key is known."""
        self.control("POST", "console", {"instance_id": identity, "text": FIRST_BOOT})

    def calls(self, action: str = "") -> list[dict[str, Any]]:
        return [call for call in self.control("GET", "calls") if action in ("", call["action"])]

    def writes(self) -> list[str]:
        return [call["action"] for call in self.calls() if call["write"]]

    def clear_calls(self) -> None:
        self.control("POST", "calls/clear")

    def fault(self, action: str, code: str, **more: Any) -> None:
        self.control("POST", "faults", {"action": action, "code": code, "message": "for the test", **more})

    def capacity(self, instance_type: str, zone: str, count: int) -> None:
        self.control("POST", "capacity", {"instance_type": instance_type, "zone": zone, "count": count})

    def limit(self, access_key: str, policies: list[str]) -> None:
        """Let an access key do what the policies in docs/iam allow, and nothing else."""
        statements = [one for name in policies for one in policy(name)]
        self.control("POST", "policies", {"access_key": access_key, "statements": statements})

    def used(self, access_key: str) -> set[str]:
        """The actions that a limited access key has needed, or may do without being asked."""
        return {need["action"] for need in self.needs(access_key)}

    def needs(self, access_key: str) -> list[dict[str, Any]]:
        """The same with the resources and the context of each call, as the emulator judges them."""
        found: list[dict[str, Any]] = self.control("GET", "policies").get(access_key, [])
        return found

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=600)
        self._folder.cleanup()


def policy(name: str) -> list[dict[str, Any]]:
    """The statements of a policy in docs/iam."""
    found: list[dict[str, Any]] = json.loads((REPOSITORY / "docs" / "iam" / f"{name}.json").read_text())["Statement"]
    return found


def idle(needs: list[dict[str, Any]], *names: str) -> list[str]:
    """The statements of policies without which everything that was needed would be allowed all the same."""
    whole = [one for name in names for one in policy(name)]
    assert all(allowed(whole, need) for need in needs)
    return [
        one["Sid"] for one in whole if all(allowed([other for other in whole if other != one], need) for need in needs)
    ]


def actions(name: str) -> set[str]:
    """The actions of a policy in docs/iam."""
    return {action for statement in policy(name) for action in statement["Action"]}


class Account:
    """A VPC with a subnet in each zone that offers trn1.32xlarge, an EFA security group, a key and an image."""

    def __init__(self, api: Api) -> None:
        self.api = api
        # Further variables for the modules.
        self.environment: dict[str, str] = {}
        self.ec2 = self.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]
        self.zones = self.offering("trn1.32xlarge")
        self.subnets = [self.subnet(zone, number) for number, zone in enumerate(self.zones)]
        self.group = self.ec2.create_security_group(GroupName="efa", Description="efa", VpcId=self.vpc)["GroupId"]
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}]
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=rule)
        self.ec2.authorize_security_group_egress(GroupId=self.group, IpPermissions=rule)
        self.image = any_image(api.url)
        api.clear_calls()

    def client(self, service: str) -> Any:
        return client(service, self.api.url)

    def offering(self, instance_type: str) -> list[str]:
        """The zones that offer a type, in order."""
        return list(zones_with(instance_type, self.api.url))

    def subnet(self, zone: str, number: int) -> str:
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.77.{16 * number}.0/20", AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def instances(self, *states: str) -> list[dict[str, Any]]:
        """What DescribeInstances shows, only those in the given states if any are given."""
        found = self.ec2.describe_instances()["Reservations"]
        every = [instance for reservation in found for instance in reservation["Instances"]]
        return [instance for instance in every if not states or instance["State"]["Name"] in states]

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """Arguments of efa_instance for two nodes."""
        return {
            "name": "bert",
            "count": 2,
            "instance_type": "trn1.32xlarge",
            "image_id": self.image,
            "subnets": self.subnets,
            "security_groups": [self.group],
            **changes,
        }

    def profile(self, name: str, policies: list[str]) -> None:
        """An instance profile whose role has managed policies, when EC2 knows it."""
        iam, trust = self.client("iam"), {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}}
        document = {"Version": "2012-10-17", "Statement": [{**trust, "Action": "sts:AssumeRole"}]}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))
        for arn in policies:
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        request = {"ImageId": self.image, "MinCount": 1, "MaxCount": 1, "IamInstanceProfile": {"Name": name}}
        deadline, said = time.monotonic() + 300, ""
        while "DryRunOperation" not in said:
            assert time.monotonic() < deadline, said
            with pytest.raises(ClientError) as caught:
                self.ec2.run_instances(**request, DryRun=True)
            said = str(caught.value)

    # --- running modules as processes ---

    def start(
        self, module: str, arguments: dict[str, Any], check: bool = False, python: str = ""
    ) -> subprocess.Popen[str]:
        """A module as a process of its own, with its arguments on the way in; ``python`` is the interpreter."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TRAINIUM_"))}
        environment.update(CREDENTIALS, AWS_ENDPOINT_URL=self.api.url, AWS_EC2_METADATA_DISABLED="true")
        environment.update(self.environment)
        process = subprocess.Popen(
            [python or warm_python(), "-m", f"{MODULES}.{module}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        private = {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_remote_tmp": tempfile.gettempdir()}
        assert process.stdin
        process.stdin.write(json.dumps({"ANSIBLE_MODULE_ARGS": {"region": REGION, **arguments, **private}}))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, module: str, arguments: dict[str, Any], check: bool = False) -> Result:
        """The module's result; fails the test when it printed a traceback or nothing."""
        output, errors = self.start(module, arguments, check).communicate(timeout=600)
        assert "Traceback" not in output + errors, errors
        result: Result = json.loads(output)
        # A warning through AnsibleAWSModule makes Ansible say that something is deprecated, which no user can change.
        assert "deprecations" not in result, result["deprecations"]
        return result

    def efa(self, check: bool = False, **changes: Any) -> Result:
        """efa_instance, which must succeed."""
        result = self.run("efa_instance", self.arguments(**changes), check)
        assert not result.get("failed"), result.get("msg")
        return result

    def refused(self, check: bool = False, **changes: Any) -> str:
        """What efa_instance says when it must fail."""
        result = self.run("efa_instance", self.arguments(**changes), check)
        assert result.get("failed"), result
        return str(result["msg"])

    def kill_after(self, action: str, arguments: dict[str, Any]) -> None:
        """SIGKILL for efa_instance as soon as the API has seen a call."""
        # The very process is to be killed, not what stands for it.
        process = self.start("efa_instance", arguments, python=sys.executable)
        deadline = time.monotonic() + 300
        while not self.api.calls(action):
            assert process.poll() is None, "the module ended before the call"
            assert time.monotonic() < deadline, f"no {action}"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()


def _serve(pending: float) -> Iterator[Api]:
    api = Api(pending)
    try:
        yield api
    finally:
        api.stop()


@pytest.fixture(scope="session")
def api() -> Iterator[Api]:
    """An emulator whose instances run soon."""
    yield from _serve(0.3)


@pytest.fixture(scope="session")
def slow_api() -> Iterator[Api]:
    """An emulator whose instances stay pending."""
    yield from _serve(3600)


@pytest.fixture
def unhurried_api() -> Iterator[Api]:
    """An emulator that takes longer for each thing than a module for its answer, on a slow machine too."""
    yield from _serve(5)


@pytest.fixture
def cloud(api: Api) -> Account:
    """An account with a network and no instance."""
    api.reset()
    return Account(api)


@pytest.fixture
def slow_cloud(slow_api: Api) -> Account:
    """The same, where instances never get running."""
    slow_api.reset()
    return Account(slow_api)


@pytest.fixture
def unhurried_cloud(unhurried_api: Api) -> Account:
    """The same, where whatever is made can be looked at before it is there."""
    return Account(unhurried_api)
