"""node_ready in a play: a node that answers late, and one that never does."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path

from tests.contract.warm_python import warm_ansible, warm_python

PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Wait
      trainium.cluster.internal.node_ready:
        gather_subset: ["!all", "!min", distribution]
        timeout: {timeout}
    - name: Show
      ansible.builtin.debug:
        var: ansible_facts['distribution']
"""


def play(tmp_path: Path, timeout: int, variables: str) -> subprocess.CompletedProcess[str]:
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAY.format(timeout=timeout), encoding="utf-8")
    inventory = tmp_path / "hosts"
    inventory.write_text(f"node {variables}\n", encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", str(inventory), str(playbook)]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_HOST_KEY_CHECKING": "false"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def assert_given_up(run: subprocess.CompletedProcess[str]) -> None:
    """In one sentence, and nothing was done on the node."""
    assert run.returncode != 0
    assert "fatal: [node]: " in run.stdout
    assert "TASK [Show]" not in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_facts_of_a_node_that_answers(tmp_path: Path) -> None:
    run = play(tmp_path, 10, f"ansible_connection=local ansible_python_interpreter={warm_python()}")
    assert run.returncode == 0, run.stdout
    assert "ansible_facts['distribution']" in run.stdout
    assert "VARIABLE IS NOT DEFINED" not in run.stdout


def test_a_node_that_never_answers_is_unreachable(tmp_path: Path) -> None:
    run = play(tmp_path, 3, f"ansible_host=127.0.0.1 ansible_port={closed_port()}")
    assert run.returncode == 4, run.stdout
    assert "node did not answer over ssh for 3 s: look at its console" in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


def test_a_server_that_speaks_late_is_tried_again(tmp_path: Path) -> None:
    port = closed_port()
    tried = threading.Event()

    def serve() -> None:
        # Nobody listens at first, as on a node that boots.
        time.sleep(2)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(30)
            server.accept()[0].close()
            tried.set()

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    run = play(tmp_path, 8, f"ansible_host=127.0.0.1 ansible_port={port}")
    assert tried.is_set()
    assert_given_up(run)


def test_a_server_that_says_nothing_is_left_after_seconds(tmp_path: Path) -> None:
    heard: list[float] = []

    def serve() -> None:
        held = []
        while len(heard) < 2:
            held.append(server.accept()[0])
            heard.append(time.monotonic())
        for connection in held:
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        run = play(tmp_path, 7, f"ansible_host=127.0.0.1 ansible_port={server.getsockname()[1]}")
    assert heard[1] - heard[0] < 12
    assert_given_up(run)
