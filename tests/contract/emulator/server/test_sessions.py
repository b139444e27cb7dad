"""Session Manager of the emulator: who is registered, and a session that carries TCP to a port of the instance."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.hosts import Options, connection
from botocore.exceptions import ClientError

from sandbox import standins
from tests.contract.conftest import CREDENTIALS, Account, idle, policy

POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


class Lab:
    """Instances in a VPC whose addresses are this machine's own."""

    def __init__(self, cloud: Account) -> None:
        self.cloud, self.ec2, self.ssm = cloud, cloud.ec2, cloud.client("ssm")
        self.vpc = self.ec2.create_vpc(CidrBlock="127.77.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock="127.77.0.0/20")["Subnet"]["SubnetId"]
        for name, policies in (("allowed", [POLICY]), ("other", [])):
            cloud.profile(name, policies)

    def way_out(self) -> None:
        for name in ("ssm", "ssmmessages"):
            self.ec2.create_vpc_endpoint(
                VpcId=self.vpc, ServiceName=f"com.amazonaws.us-west-2.{name}", VpcEndpointType="Interface"
            )

    def launch(self, profile: str) -> dict[str, Any]:
        request = {"ImageId": self.cloud.image, "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
        more = {"IamInstanceProfile": {"Name": profile}} if profile else {}
        return dict(self.ec2.run_instances(**request, SubnetId=self.subnet, **more)["Instances"][0])

    def online(self) -> list[str]:
        return [item["InstanceId"] for item in self.ssm.describe_instance_information()["InstanceInformationList"]]

    def wait_online(self, node: dict[str, Any]) -> None:
        deadline = time.monotonic() + 300
        while self.online() != [node["InstanceId"]]:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def lab(cloud: Account) -> Lab:
    return Lab(cloud)


@pytest.fixture
def greeter() -> Iterator[Any]:
    """A server that greets as sshd does and keeps what it is told first; made for an address."""
    heard: list[bytes] = []
    with contextlib.ExitStack() as stack:

        def serve(address: str) -> tuple[int, list[bytes]]:
            server = stack.enter_context(socket.create_server((address, 0)))

            def run() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        client, _peer = server.accept()
                        with client:
                            client.sendall(b"SSH-2.0-greeter\r\n")
                            heard.append(client.recv(64))

            threading.Thread(target=run, daemon=True).start()
            return int(server.getsockname()[1]), heard

        yield serve


def test_an_agent_needs_a_role_a_way_out_and_some_time(lab: Lab) -> None:
    lab.launch("")
    lab.launch("other")
    allowed = lab.launch("allowed")
    running = lab.ec2.get_waiter("instance_running")
    running.wait(InstanceIds=[allowed["InstanceId"]], WaiterConfig={"Delay": 0.1})
    assert lab.online() == []
    time.sleep(1)
    assert lab.online() == []
    lab.way_out()
    lab.wait_online(allowed)
    late = lab.launch("allowed")["InstanceId"]
    with pytest.raises(lab.ssm.exceptions.TargetNotConnected):
        lab.ssm.start_session(Target=late, DocumentName="AWS-StartSSHSession")


def test_ssh_reaches_an_instance_as_the_inventory_says(lab: Lab, greeter: Any, tmp_path: Any) -> None:
    lab.way_out()
    node = lab.launch("allowed")
    lab.wait_online(node)
    port, heard = greeter(node["PrivateIpAddress"])
    record = {"instance_id": node["InstanceId"], "aws_region": "us-west-2", "public_address": "", "private_address": ""}
    variables = connection(record, Options(connection="ssm"), "")
    environment = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": lab.cloud.api.url, "HOME": str(tmp_path)}
    environment["PATH"] = f"{standins.CONTROLLER}{os.pathsep}{os.environ['PATH']}"
    line = f"ssh -F none -p {port} {variables['ansible_ssh_common_args']} {variables['ansible_host']} true"
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert [text[:8] for text in heard] == [b"SSH-2.0-"], done.stderr
    (call,) = lab.cloud.api.calls("StartSession")
    assert call["parameters"]["Parameters"] == {"portNumber": [str(port)]}


def test_a_session_is_for_one_connection_and_who_knows_its_word(lab: Lab) -> None:
    lab.way_out()
    node = lab.launch("allowed")
    lab.wait_online(node)
    answer = lab.ssm.start_session(Target=node["InstanceId"], DocumentName="AWS-StartSSHSession")
    for one in ({**answer, "TokenValue": "guessed"}, answer):
        assert "403 Forbidden" in connect({"SESSION": json.dumps(one)})


def test_the_policy_lets_in_to_nodes_of_clusters_by_ssh_alone(lab: Lab) -> None:
    lab.way_out()
    node = lab.launch("allowed")
    identity = node["InstanceId"]
    lab.wait_online(node)
    keys: Any = {"aws_access_key_id": "sessions", "aws_secret_access_key": "x"}
    ssm: Any = boto3.client("ssm", region_name="us-west-2", endpoint_url=lab.cloud.api.url, **keys)
    lab.cloud.api.limit("sessions", ["sessions"])
    with pytest.raises(ClientError, match="not authorized to perform: ssm:StartSession"):
        ssm.start_session(Target=identity, DocumentName="AWS-StartSSHSession")
    lab.ec2.create_tags(Resources=[identity], Tags=[{"Key": "trainium:cluster", "Value": "bert"}])
    # Without a document it is a shell.
    with pytest.raises(ClientError, match="not authorized to perform: ssm:StartSession"):
        ssm.start_session(Target=identity)
    without = [one for one in policy("sessions") if one["Sid"] != "OwnSessions"]
    for statements, said in ((without, "403 Forbidden"), (policy("sessions"), "502 Bad Gateway")):
        lab.cloud.api.control("POST", "policies", {"access_key": "sessions", "statements": statements})
        answer = ssm.start_session(
            Target=identity, DocumentName="AWS-StartSSHSession", Parameters={"portNumber": ["1"]}
        )
        assert said in connect({"SESSION": json.dumps(answer)})
    # The others are for the nodes' role, and tried with it (test_session_manager.py).
    needed = {"LogIn", "OnlyForSsh", "OwnSessions"}
    assert needed.isdisjoint(idle(lab.cloud.api.needs("sessions"), "sessions"))


def connect(environment: dict[str, str]) -> str:
    """What the plugin says of the session in a variable."""
    command = [str(standins.CONTROLLER / "session-manager-plugin"), "SESSION", "us-west-2", "StartSession"]
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("\nStarting session with SessionId: sandbox-")
    return done.stdout
