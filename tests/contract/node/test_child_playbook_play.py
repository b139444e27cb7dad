"""child_playbook in a play: what it hands on, what it shows and keeps, and how a failure can be caught."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.contract.warm_python import warm_ansible, warm_python

Item = dict[str, Any]


def play(tmp_path: Path, child: list[Item], *extra: str, **options: Any) -> subprocess.CompletedProcess[str]:
    local = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    (tmp_path / "child.yml").write_text(json.dumps([{**local, "tasks": child}]), encoding="utf-8")
    arguments = {"playbook": str(tmp_path / "child.yml"), "log": str(tmp_path / "logs/child.log"), **options}
    tasks = [
        {
            "block": [{"trainium.cluster.internal.child_playbook": arguments, "register": "ran"}],
            "rescue": [{"ansible.builtin.debug": {"msg": "caught: {{ ansible_failed_result.msg }}"}}],
        }
    ]
    (tmp_path / "play.yml").write_text(json.dumps([{**local, "tasks": tasks}]), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(tmp_path / "play.yml")]
    command += ["-e", f"ansible_python_interpreter={warm_python()}"]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"), "TRAINIUM_LOG_DIR": str(tmp_path)}
    return subprocess.run([*command, *extra], capture_output=True, text=True, env=environment, check=False, timeout=600)


def test_it_has_the_variables_of_the_run_and_those_that_come_before_them(tmp_path: Path) -> None:
    said = {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} {{ ours }} {{ both }} {{ count + 1 }}"}}
    extra = ("-e", "ours=1", "-e", "both=theirs")
    done = play(tmp_path, [said], *extra, variables={"both": "mine", "count": 2})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "localhost 1 mine 3" in (tmp_path / "logs/child.log").read_text(encoding="utf-8")
    # It is shown as it comes, beside what a program would read.
    assert "localhost 1 mine 3" in done.stderr
    # A variable may be a password.
    assert list((tmp_path / "tmp").glob("**/variables-*")) == []


def test_a_failure_is_one_sentence_that_can_be_caught(tmp_path: Path) -> None:
    done = play(tmp_path, [{"ansible.builtin.fail": {"msg": 'No room for "two" nodes.'}}])
    assert done.returncode == 0, done.stdout + done.stderr
    text = json.dumps(done.stdout.split("caught: ")[1])
    assert "child failed (exit code 2): No room for" in text
    assert f"nodes; all of its words are in {tmp_path}/logs/child.log." in text


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = play(tmp_path, [{"ansible.builtin.command": {"argv": ["sleep", "60"]}}], timeout=3)
    assert "caught: child did not end within 3 s and was ended" in done.stdout, done.stdout + done.stderr


def test_nothing_that_it_began_goes_on(tmp_path: Path) -> None:
    """A worker has a session of its own, and a call of EC2 that it is in would launch after the teardown has looked."""
    number = tmp_path / "number"
    began = f"echo $$ > {number}; trap '' INT TERM; while :; do sleep 0.2; done"
    inner = f"import subprocess; subprocess.Popen(['sh', '-c', {began!r}], start_new_session=True).wait()"
    outer = f"""
from pathlib import Path
from ansible_collections.trainium.cluster.plugins.action.internal.child_playbook import run_limited
print(run_limited(['-c', {inner!r}], Path({str(tmp_path / "log")!r}), 3))
"""
    done = subprocess.run([sys.executable, "-c", outer], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "124\n"
    assert not Path("/proc", number.read_text(encoding="utf-8").strip()).exists()


def test_what_it_says_is_for_its_owner_and_goes_where_it_was_to(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "other").write_text("stays", encoding="utf-8")
    log = tmp_path / "logs/child.log"
    log.symlink_to(tmp_path / "other")
    assert play(tmp_path, [{"ansible.builtin.debug": {"msg": "x"}}]).returncode == 0
    assert log.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "other").read_text(encoding="utf-8") == "stays"


def test_check_mode_runs_nothing(tmp_path: Path) -> None:
    assert play(tmp_path, [{"ansible.builtin.debug": {"msg": "x"}}], "--check").returncode == 0
    assert not (tmp_path / "logs").exists()


def test_no_module_comes_from_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    """Anybody may have put it there."""
    (tmp_path / "ctypes.py").write_text("open('taken', 'w').close()\n", encoding="utf-8")
    outer = f"""
from pathlib import Path
from ansible_collections.trainium.cluster.plugins.action.internal.child_playbook import run_limited
print(run_limited(['-I', '-c', 'pass'], Path({str(tmp_path / "log")!r}), 60))
"""
    # The test itself takes nothing from there either.
    done = subprocess.run(
        [sys.executable, "-I", "-c", outer], capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert not (tmp_path / "taken").exists()
