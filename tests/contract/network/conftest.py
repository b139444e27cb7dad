"""Roles and playbooks that run on the controller, against the emulated AWS API over HTTP."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import CREDENTIALS, REGION, Api, client, controller_environment
from tests.contract.warm_python import warm_ansible, warm_python

Item = dict[str, Any]
RECAP = re.compile(r"localhost .*changed=(\d+)")


class Controller:
    """A controller with an account of its own, and ways to look into it."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api, self.folder = api, folder
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(folder / "lab")]
        subprocess.run(key, check=True)
        self.variables: Item = {
            "ansible_python_interpreter": warm_python(),
            "trainium_region": REGION,
            "trainium_ssh_private_key_file": str(folder / "lab"),
        }
        # The folder with Ansible's commands.
        self.commands = warm_ansible()
        # Further variables of the environment.
        self.environment: dict[str, str] = {"TRAINIUM_KNOWN_HOSTS": str(folder / "known_hosts")}
        self.ec2: Any = self.client("ec2")
        # That of whoever runs the playbooks.
        self.access_key = CREDENTIALS["AWS_ACCESS_KEY_ID"]

    def limit(self, name: str) -> None:
        """From now on whoever runs the playbooks may do what the policy in docs/iam allows, and nothing else."""
        self.access_key = name
        self.api.limit(name, [name])

    def client(self, service: str, region: str = REGION) -> Any:
        return client(service, self.api.url, region)

    def run(self, playbook: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """ansible-playbook on the controller."""
        environment = controller_environment(self.api.url, **{"AWS_ACCESS_KEY_ID": self.access_key, **self.environment})
        command = [str(self.commands / "ansible-playbook"), "--inventory", "localhost,", *options]
        return subprocess.run(
            [*command, str(playbook)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def role(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        """A play with a role; ``name`` may end in the file of its tasks, as in ``network:callers``."""
        return self.run(self.play([{"name": "Role", "ansible.builtin.include_role": _include(name)}]), *options)

    def cases(self, *cases: tuple[str, Item]) -> list[str]:
        """Several roles with variables of their own in one play: what each says that refuses, '' where it does not."""
        answer = self.folder / "said.json"
        tasks: list[Item] = []
        for number, (name, variables) in enumerate(cases):
            said = f"said_{number}"
            ran = {"name": "Role", "ansible.builtin.include_role": _include(name), "vars": variables}
            through = {"name": "It went through", "ansible.builtin.set_fact": {said: ""}}
            keep = {"name": "Keep", "ansible.builtin.set_fact": {said: "{{ ansible_failed_result.msg }}"}}
            tasks.append({"name": "Case", "block": [ran, through], "rescue": [keep]})
        every = ", ".join(f"said_{number}" for number in range(len(cases)))
        written = {"content": f"{{{{ [{every}] | to_json }}}}", "dest": str(answer), "mode": "0600"}
        done = self.run(self.play([*tasks, {"name": "Tell", "ansible.builtin.copy": written}]))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "duplicate mapping key" not in done.stderr
        found: list[str] = json.loads(answer.read_text())
        return found

    def play(self, tasks: list[Item]) -> Path:
        """A playbook with tasks on the controller."""
        play = {
            "name": "Test",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": self.variables,
            "roles": [{"role": "trainium.cluster.trainium"}],
            "tasks": tasks,
        }
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]))
        return path

    def deletions(self) -> list[str]:
        """The calls that changed the account, without two of the same in a row."""
        seen = self.api.writes()
        return [action for number, action in enumerate(seen) if number == 0 or seen[number - 1] != action]


def _include(name: str) -> Item:
    role, colon, tasks = name.partition(":")
    return {"name": f"trainium.cluster.{role}", "tasks_from": tasks if colon else "main"}


def changed(done: subprocess.CompletedProcess[str]) -> int:
    """How many tasks of a run that succeeded changed something."""
    assert done.returncode == 0, done.stdout + done.stderr
    found = RECAP.search(done.stdout)
    assert found, done.stdout
    return int(found.group(1))


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """An empty account, for all tests of a module."""
    api = Api(0.3)
    try:
        yield Controller(api, tmp_path_factory.mktemp("controller"))
    finally:
        api.stop()
