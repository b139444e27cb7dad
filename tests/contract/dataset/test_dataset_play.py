"""The action of dataset in a play: progress on the screen, one sentence for a failure, no secret anywhere."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.dataset.range_server import RangeServer
from tests.contract.warm_python import warm_ansible, warm_python

SIZE = 4 * 1024 * 1024


@pytest.fixture
def server() -> Iterator[RangeServer]:
    made = RangeServer()
    made.files["data.bin"] = os.urandom(SIZE)
    yield made
    made.stop()


def play(tmp_path: Path, *extra: str, **options: Any) -> subprocess.CompletedProcess[str]:
    task = {"name": "Fetch", "trainium.cluster.dataset": {"destination": str(tmp_path / "data"), **options}}
    document = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(document), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(playbook), *extra]
    command += ["-e", f"ansible_python_interpreter={warm_python()}"]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


def test_progress_is_on_the_screen(server: RangeServer, tmp_path: Path) -> None:
    # 256 blocks over 8 connections: more than the time of the first look.
    server.pause = 0.25
    done = play(
        tmp_path,
        "-vvv",
        source="s3://bucket/data.bin",
        chunk_size="512K",
        files=[{"path": "data.bin", "url": f"{server.url}/data.bin?X-Amz-Signature=hidden", "size": SIZE}],
    )
    assert done.returncode == 0, done.stdout
    assert "dataset: localhost: fetching " in done.stderr
    assert " of 4.0 MiB (" in done.stderr
    assert "/s, " in done.stderr
    assert "hidden" not in done.stdout + done.stderr
    assert server.total() == SIZE
    assert (tmp_path / "data" / "data.bin").read_bytes() == server.files["data.bin"]


def test_a_failure_is_one_sentence(server: RangeServer, tmp_path: Path) -> None:
    done = play(tmp_path, source=f"{server.url}/missing")
    assert done.returncode == 2
    assert "missing (HTTP 404); check the source." in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_check_mode_fetches_nothing(server: RangeServer, tmp_path: Path) -> None:
    done = play(tmp_path, "--check", source=f"{server.url}/data.bin")
    assert "changed=1" in done.stdout
    assert not server.requests
    assert not (tmp_path / "data").exists()
