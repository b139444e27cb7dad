"""long_command in a play: what it shows, what it ends, what it says of a failure."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible, warm_python


def play(tmp_path: Path, *extra: str, **options: Any) -> subprocess.CompletedProcess[str]:
    task = {"name": "Work", "trainium.cluster.internal.long_command": options}
    document = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps(document), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(playbook), *extra]
    command += ["-e", f"ansible_python_interpreter={warm_python()}"]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


def test_a_long_command_is_said_to_go_on(tmp_path: Path) -> None:
    done = play(tmp_path, argv=["sh", "-c", "sleep 12; pwd > out"], chdir=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert "Work: localhost goes on, 10 s" in done.stderr
    assert (tmp_path / "out").read_text(encoding="utf-8").strip() == str(tmp_path)
    (tmp_path / "out").write_text("kept", encoding="utf-8")
    assert "changed=0" in play(tmp_path, argv=["sh", "-c", "pwd > out"], chdir=str(tmp_path), creates="out").stdout
    assert (tmp_path / "out").read_text(encoding="utf-8") == "kept"


def test_check_mode_runs_nothing(tmp_path: Path) -> None:
    assert play(tmp_path, "--check", argv=["touch", str(tmp_path / "made")]).returncode == 0
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"argv": ["sleep", "30"], "timeout": 1}, "sleep did not end within 1 s"),
        ({"argv": ["sh", "-c", "echo reason >&2; exit 3"]}, "reason"),
        ({"argv": ["no-such-program"]}, "No such file or directory"),
    ],
)
def test_a_failure_is_told(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    done = play(tmp_path, **options)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
