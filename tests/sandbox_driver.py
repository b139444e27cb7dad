"""The sandbox as a user drives it: its command line, the real playbooks, and an AWS client beside them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from sandbox.account import environment as account
from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[1]
# After the demo's 100 steps on two nodes with two processes each, by whatever launcher; CPUs differ in the last digits.
DEMO_LOSS = 6.4386
RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


@dataclass
class Run:
    """What a finished command left behind."""

    returncode: int
    output: str
    seconds: float

    @property
    def changed(self) -> dict[str, int]:
        """Host -> number of changed tasks, from the play recap."""
        return {host: int(changed) for host, _ok, changed, _unreachable, _failed in RECAP.findall(self.output)}


class Sandbox:
    """The sandbox on this machine and what can be asked of it."""

    def __init__(self) -> None:
        self.command("up")
        exports = self.command("env").output
        pairs = re.findall(r"^export (\w+)=(.*)$", exports, re.MULTILINE)
        self.environment = {name: value.strip("'\"") for name, value in pairs}
        self.reports = Path(self.environment["TRAINIUM_REPORT_DIR"])

    def warm(self) -> dict[str, str]:
        """What makes playbooks take interpreters that have imported already what modules import, as molecule does.

        ParallelCluster's library has none here.
        """
        controller = REPOSITORY / "molecule/shared/inventory/controller.yml"
        return {
            "ANSIBLE_INVENTORY": f"{self.environment['ANSIBLE_INVENTORY']},{controller}",
            "TRAINIUM_WARM_PYTHON": warm_python(),
            "TRAINIUM_SANDBOX_PYTHON": "/usr/local/bin/sandbox-python",
        }

    @staticmethod
    def command(*arguments: str) -> Run:
        """``python -m sandbox ARGUMENTS``, which must succeed."""
        return execute([sys.executable, "-m", "sandbox", *arguments], {}, check=True)

    def client(self, service: str) -> Any:
        session = boto3.Session(
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
            region_name=self.environment["AWS_REGION"],
        )
        make: Callable[..., Any] = session.client
        return make(service, endpoint_url=self.environment["AWS_ENDPOINT_URL"])

    def calls(self) -> list[dict[str, Any]]:
        """The API calls since the last ``forget``."""
        return json.loads(self.command("calls", "--json").output)

    def forget(self) -> None:
        self.command("calls", "--clear")

    def writes(self) -> list[str]:
        """Actions that change the account, without dry runs."""
        return [call["action"] for call in self.calls() if call["write"]]

    def launches(self) -> list[dict[str, Any]]:
        """Parameters of the RunInstances calls that were no dry runs."""
        return [call["parameters"] for call in self.calls() if call["action"] == "RunInstances" and call["write"]]

    def instances(self, *states: str) -> list[dict[str, Any]]:
        filters = [{"Name": "instance-state-name", "Values": list(states or ("pending", "running"))}]
        pages = self.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        return [i for page in pages for reservation in page["Reservations"] for i in reservation["Instances"]]

    def on_node(self, address: str, command: str) -> Run:
        """Run a command as root on a node, over ssh with the sandbox's key; it must succeed."""
        key = self.reports.parent / "ssh" / "id_ed25519"
        options = ["-q", "-i", str(key), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
        return execute(["ssh", *options, f"ubuntu@{address}", f"sudo sh -c {shlex.quote(command)}"], {}, check=True)

    def playbook(self, name: str, *arguments: str) -> Run:
        """Run ``playbooks/NAME.yml`` to its end, whatever that is."""
        warm = "TRAINIUM_WARM_PYTHON" in self.environment
        folder = warm_ansible() if warm else Path(sys.executable).parent
        return execute([str(folder / "ansible-playbook"), f"playbooks/{name}.yml", *arguments], self.environment)

    def why(self, output: str) -> str:
        """How a run failed and what its hosts are, in few lines: of a long output often only the beginning is kept."""
        fatal = [line for line in output.splitlines() if re.match(r"(fatal|failed|\[ERROR\]|ERROR|make)", line)]
        log = self.reports.parent / "logs" / "reconciler.log"
        told = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return "\n".join([*fatal[-4:], self.command("status").output, *told[-12:]])

    def kill_playbook_when(self, name: str, condition: Callable[[], bool], *arguments: str) -> None:
        """Start a playbook and send it SIGKILL as soon as the condition holds."""
        command = [str(Path(sys.executable).parent / "ansible-playbook"), f"playbooks/{name}.yml", *arguments]
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**account.inside(os.environ), **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + 900
        while not condition():
            assert process.poll() is None, "the playbook ended before it was killed"
            assert time.monotonic() < until, "what the kill waited for did not happen"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers_ssh(address: str) -> bool:
    """Whether sshd greets there."""
    with contextlib.suppress(OSError), socket.create_connection((address, 22), 2) as connection:
        return connection.recv(4) == b"SSH-"
    return False


def execute(command: list[str], environment: dict[str, str], check: bool = False) -> Run:
    """Run a command in the checkout; its output is shown when a test fails."""
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**account.inside(os.environ), "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"$ {' '.join(command)}\n{done.stdout}")
    if check:
        assert done.returncode == 0, done.stdout
    return Run(done.returncode, done.stdout, time.monotonic() - started)
