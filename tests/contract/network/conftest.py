"""Roles and playbooks that run on the controller, against the emulated AWS API over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.contract.conftest import CREDENTIALS, REGION, REPOSITORY, Api

Item = dict[str, Any]
RECAP = re.compile(r"localhost .*changed=(\d+)")


class Controller:
    """A controller with an account of its own, and ways to look into it."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api, self.folder = api, folder
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(folder / "lab")]
        subprocess.run(key, check=True)
        self.variables: Item = {
            "ansible_python_interpreter": sys.executable,
            "trainium_region": REGION,
            "trainium_ssh_private_key_file": str(folder / "lab"),
        }
        # Further variables of the environment.
        self.environment: dict[str, str] = {}
        self.ec2: Any = self.client("ec2")

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.api.url,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def run(self, playbook: Path, *options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        """ansible-playbook on the controller."""
        (self.folder / "variables.json").write_text(json.dumps({**self.variables, **variables}))
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("AWS_", "ANSIBLE_", "TRAINIUM_")) and not key.lower().endswith("_proxy")
        }
        environment.update(CREDENTIALS, AWS_ENDPOINT_URL=self.api.url, AWS_EC2_METADATA_DISABLED="true")
        environment.update(self.environment, ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"))
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "--inventory", "localhost,", *options]
        return subprocess.run(
            [*command, "--extra-vars", f"@{self.folder / 'variables.json'}", str(playbook)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def role(self, name: str, *options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        """A play with a role; ``name`` may end in the file of its tasks, as in ``network:callers``."""
        role, colon, tasks = name.partition(":")
        include = {"name": f"trainium.cluster.{role}", "tasks_from": tasks if colon else "main"}
        play = {
            "name": "Test",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "roles": [{"role": "trainium.cluster.trainium"}],
            "tasks": [{"name": "Role", "ansible.builtin.include_role": include}],
        }
        (self.folder / "play.yml").write_text(json.dumps([play]))
        return self.run(self.folder / "play.yml", *options, **variables)

    def deletions(self) -> list[str]:
        """The calls that changed the account, without two of the same in a row."""
        seen = self.api.writes()
        return [action for number, action in enumerate(seen) if number == 0 or seen[number - 1] != action]


def changed(done: subprocess.CompletedProcess[str]) -> int:
    """How many tasks of a run that succeeded changed something."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = RECAP.search(done.stdout)
    assert found, done.stdout
    return int(found.group(1))


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """What a run says that must fail."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """An empty account, for all tests of a module."""
    api = Api(0.3)
    try:
        yield Controller(api, tmp_path_factory.mktemp("controller"))
    finally:
        api.stop()
