"""efa_instance as a task of a play: its action plugin, module defaults, progress on the screen, and a killed play."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible, warm_python

Account = Any
REPOSITORY = Path(__file__).resolve().parents[3]


class Play:
    """A playbook with one efa_instance task that takes its region from module_defaults."""

    def __init__(self, cloud: Account, folder: Path) -> None:
        self.cloud = cloud
        task = {"name": "Nodes", "trainium.cluster.efa_instance": cloud.arguments(), "register": "result"}
        shown = {"name": "Result", "ansible.builtin.debug": {"msg": "ids {{ result.instance_ids | sort | join(' ') }}"}}
        play = {
            "name": "Test",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": {"group/trainium.cluster.aws": {"region": "us-west-2"}},
            "tasks": [task, shown],
        }
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(
            json.dumps({"all": {"hosts": {"localhost": {"ansible_python_interpreter": warm_python()}}}})
        )
        self.file = folder / "play.yml"
        self.file.write_text(json.dumps([play]))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "ANSIBLE_"))}
        environment.update(
            AWS_ENDPOINT_URL=self.cloud.api.url,
            AWS_ACCESS_KEY_ID="testing-id",
            AWS_SECRET_ACCESS_KEY="testing-secret",
            AWS_EC2_METADATA_DISABLED="true",
            ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"),
            ANSIBLE_INVENTORY=str(self.inventory),
        )
        command = [str(warm_ansible() / "ansible-playbook"), str(self.file), *arguments]
        return subprocess.Popen(
            command,
            cwd=self.file.parent,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[str, str]:
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, output + errors
        return output, errors


@pytest.fixture
def play(cloud: Account, tmp_path: Path) -> Play:
    return Play(cloud, tmp_path)


def test_progress_is_shown_and_only_on_stderr(play: Play) -> None:
    output, errors = play.run()
    assert "efa_instance: 2 of 2 running" in errors
    assert "efa_instance:" not in output
    assert "changed=1" in output
    for instance in play.cloud.instances("running"):
        assert instance["InstanceId"] in output
    output, errors = play.run()
    assert "changed=0" in output
    assert errors == ""


def test_check_mode_and_diff_reach_the_module(play: Play) -> None:
    output, _errors = play.run("--check", "--diff")
    assert '+        "(new 1)": {' in output
    assert play.cloud.api.writes() == []


def test_a_killed_play_launches_once(play: Play) -> None:
    process = play.start()
    deadline = time.monotonic() + 300
    while not play.cloud.api.calls("RunInstances"):
        assert process.poll() is None, "the play ended before the launch"
        assert time.monotonic() < deadline, "no launch"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    play.run()
    assert len(play.cloud.instances()) == 2
    assert len(play.cloud.instances("running")) == 2
