"""The callback trainium.cluster.phases, by playbooks that ansible-playbook really runs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.callback.phases import CallbackModule
from ansible_collections.trainium.cluster.plugins.plugin_utils import _phases
from ansible_collections.trainium.cluster.plugins.plugin_utils._phases import printable
from ansible_collections.trainium.cluster.plugins.plugin_utils._run_log import RunLog

from tests.sandbox_driver import RECAP, REPOSITORY

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
HOSTS = {
    "localhost": LOCAL,
    "a": LOCAL,
    # Nobody listens at this port.
    "gone": {"ansible_host": "127.0.0.1", "ansible_port": 1},
}
# Only plugins of Ansible that need no module on the host, so that a run is quick.
PREPARE = """
- name: Prepare
  hosts: localhost:a
  gather_facts: false
  tasks:
    - name: Say what comes
      ansible.builtin.debug:
        msg: [loss 10.7, loss 2.1]
    - name: Hidden
      ansible.builtin.set_fact:
        word: hunter2
      no_log: true
    - name: Something that is mended
      block:
        - name: Break
          ansible.builtin.fail:
            msg: for a moment
      rescue:
        - name: Mend
          ansible.builtin.debug:
            msg: mended
    - name: Nobody minds
      ansible.builtin.fail:
        msg: never mind
      ignore_errors: true
    - name: Write
      ansible.builtin.copy:
        content: "one\\n"
        dest: "{{ playbook_dir }}/written"
        mode: "0600"
      when: inventory_hostname == 'a'
"""
WORK = """
- name: Work
  hosts: a:gone
  gather_facts: false
  tasks:
    - name: Reach
      ansible.builtin.raw: "true"
      changed_when: false
    - name: Wait
      ansible.builtin.pause:
        seconds: "{{ nap | default(0) }}"
      when: nap is defined
    - name: Refuse
      ansible.builtin.fail:
        msg: "The disk of {{ inventory_hostname }} is full; delete something."
      when: bad | default(true) | bool
"""
# A table as a message, and a value.
LAST = """
- name: Last
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Tell
      ansible.builtin.debug:
        msg:
          faults: ["no entry for {{ inventory_hostname }}"]
          count: 1
    - name: Show
      ansible.builtin.debug:
        var: playbook_dir | basename | length > 0
"""
SITE = """
- ansible.builtin.import_playbook: prepare.yml
- ansible.builtin.import_playbook: work.yml
- ansible.builtin.import_playbook: last.yml
"""


def write(folder: Path) -> list[str]:
    for name, text in {"prepare": PREPARE, "work": WORK, "last": LAST, "site": SITE}.items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": HOSTS}}), encoding="utf-8")
    return [str(Path(sys.executable).with_name("ansible-playbook")), "--inventory", str(folder / "hosts.json")]


def environment(folder: Path, **more: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "TRAINIUM_"))}
    ours = {"TRAINIUM_LOG_DIR": str(folder / "logs")}
    return {**clean, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), **ours, **more}


def play(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*write(folder), *arguments],
        cwd=folder,
        env=environment(folder, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    print(done.stdout)
    return done


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of which the second of three phases has a host that cannot be reached and another that fails."""
    folder = tmp_path_factory.mktemp("ran")
    done = play(folder, "site.yml")
    assert done.returncode != 0
    return folder, done.stdout


def test_a_phase_is_a_playbook_that_was_imported(ran: tuple[Path, str]) -> None:
    lines = ran[1].splitlines()
    assert [line for line in lines if re.match(r"\d/3 ", line)] == ["1/3 prepare", "2/3 work"]
    assert [line for line in lines if line.startswith(("PLAY [", "ok:", "changed:", "skipping:"))] == []


def test_messages_are_shown_without_their_wrapping(ran: tuple[Path, str]) -> None:
    said = ran[1].splitlines()
    assert {"    loss 10.7", "    a: loss 2.1", "    mended"} <= set(said)


def test_failures_are_shown_whole_below_their_task(ran: tuple[Path, str]) -> None:
    said = ran[1]
    assert said.index("TASK [Refuse]") < said.rindex("fatal: [a]: FAILED!")
    assert 'FAILED! => {"changed": false, "msg": "The disk of a is full; delete something."}' in said
    assert said.index("TASK [Reach]") < said.index("fatal: [gone]: UNREACHABLE!")
    assert "never mind" not in said
    assert said.count("TASK [Refuse]") == 1


def test_the_summary_has_each_phase_and_the_recap_of_ansible(ran: tuple[Path, str]) -> None:
    said = ran[1]
    assert re.search(r"^prepare +\d+ s  2 hosts, 1 changed$", said, re.MULTILINE)
    assert re.search(r"^work +\d+ s  2 hosts, none changed, failed: a, gone$", said, re.MULTILINE)
    assert re.search(r"^last +-  did not begin$", said, re.MULTILINE)
    assert re.search(r"^together +\d+ s$", said, re.MULTILINE)
    recap = {host: counts for host, *counts in RECAP.findall(said)}
    # ok, changed, unreachable, failed
    assert recap["gone"] == ["0", "0", "1", "0"]
    assert recap["a"] == ["6", "1", "0", "1"]


def test_the_log_has_everything_but_secrets_and_only_its_owner_reads_it(ran: tuple[Path, str]) -> None:
    (log,) = (ran[0] / "logs").glob("*.log")
    assert ran[1].splitlines()[-1] == f"Details: {log}"
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    text = log.read_text(encoding="utf-8")
    for part in ("PLAY [Prepare]", "TASK [Hidden]", "never mind", "The disk of a is full", "PLAY RECAP"):
        assert part in text
    assert "hunter2" not in text + ran[1]


def test_a_run_that_failed_says_nothing_of_the_next_ones_seconds(ran: tuple[Path, str]) -> None:
    assert not (ran[0] / "logs/seconds.json").exists()


def test_check_mode_names_changes_and_a_second_run_what_it_expects(tmp_path: Path) -> None:
    first = play(tmp_path, "prepare.yml", "--check", "--diff")
    assert first.returncode == 0
    assert "prepare, check mode\n" in first.stdout
    assert "    a: would change: Write" in first.stdout
    assert "+one" in first.stdout
    kept = tmp_path / "logs/seconds.json"
    assert list(json.loads(kept.read_text(encoding="utf-8"))) == ["prepare trainium ec2 3 check"]
    kept.write_text(json.dumps({"last trainium ec2 3": {"last": 71.0}}), encoding="utf-8")
    # -v shows what Ansible shows as well.
    told = play(tmp_path, "last.yml", TRAINIUM_LOG_DIR=str(tmp_path / "other"))
    assert "    faults:\n    - no entry for localhost\n    count: 1\nTASK [Show]\nok: [localhost] => {" in told.stdout
    again = play(tmp_path, "last.yml", "-v")
    assert "last (expected: 1 min 11 s)" in again.stdout
    assert "TASK [Show]" in again.stdout
    # What was found takes the place of what was expected.
    assert json.loads(kept.read_text(encoding="utf-8"))["last trainium ec2 3"]["last"] < 71


def test_it_is_turned_off_by_one_variable(tmp_path: Path) -> None:
    done = play(tmp_path, "last.yml", ANSIBLE_STDOUT_CALLBACK="default")
    assert "PLAY [Last]" in done.stdout
    assert not (tmp_path / "logs").exists()


def test_a_folder_that_is_none_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = play(tmp_path, "last.yml", TRAINIUM_LOG_DIR=str(tmp_path / "file/logs"))
    assert done.returncode == 0
    assert "There is no log of the details" in " ".join(done.stdout.split())
    assert "Details:" not in done.stdout


def test_old_logs_go(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for day in range(10, 32):
        (folder / f"202001{day}T000000-1-site.log").write_text("", encoding="utf-8")
    (folder / "mine.log").write_text("", encoding="utf-8")
    assert play(tmp_path, "last.yml").returncode == 0
    names = sorted(path.name for path in folder.glob("*.log"))
    assert (len(names), names[0], names[-1]) == (21, "20200113T000000-1-site.log", "mine.log")


def test_ctrl_c_says_where_it_ended(tmp_path: Path) -> None:
    command = [*write(tmp_path), "site.yml", "--limit", "localhost,a", "--extra-vars", "nap=30 bad=false"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    said = ""
    for line in process.stdout:
        said += line
        if line.startswith("2/3 work"):
            break
    # The log tells when the task has begun.
    until = time.monotonic() + 300
    while "TASK [Wait]" not in "".join(log.read_text() for log in (tmp_path / "logs").glob("*.log")):
        assert time.monotonic() < until, said
        time.sleep(0.1)
    # Ansible itself hangs where it is interrupted while it starts the worker.
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    said += process.communicate(timeout=600)[0]
    assert process.returncode not in (0, None)
    assert re.search(r"^site ended early, in work after \d+ s\.$", said, re.MULTILINE), said
    assert "Details: " in said


def test_a_long_phase_says_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    callback = CallbackModule()
    phase = _phases.Phase("nodes", "")
    phase.started -= 14.8
    phase.task, phase.asked, phase.done = "neuron : Install the packages", 4, 1
    callback._phases = [phase]
    ended = callback._ended
    watch = threading.Thread(target=callback._watch, args=(ended,))
    watch.start()
    time.sleep(1.2)
    ended.set()
    watch.join()
    assert capsys.readouterr().out == "    15 s: neuron : Install the packages (1 of 4 hosts done)\n"


def test_it_says_so_seldom_where_a_phase_takes_hours() -> None:
    said = [second for second in range(1, 24 * 3600) if _phases.is_due(second)]
    assert said[:4] == [15, 30, 60, 120]
    assert len(said) < 90


def test_the_collections_own_playbooks_are_described() -> None:
    playbooks = {path.stem for path in _phases.PLAYBOOKS.glob("*.yml")}
    assert set(_phases.ABOUT) <= playbooks
    nodes: dict[str, Any] = {"name": "nodes", "path": str(_phases.PLAYBOOKS / "nodes.yml")}
    assert _phases.Phase(**nodes).about == _phases.ABOUT["nodes"]
    assert _phases.Phase("nodes", "/somewhere/nodes.yml").about == ""


def test_who_ends_it_is_told_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    callback = CallbackModule()
    callback._playbook, callback._phases = "site", [_phases.Phase("nodes", str(_phases.PLAYBOOKS / "nodes.yml"))]
    callback._ended_early()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "site ended early, in nodes after 0 s."
    assert said[1:] == [
        "Nodes and a training that were started go on, and cost, until teardown.yml.",
        "The same command takes up what was begun.",
    ]
    # At the end of the process it is not told again.
    callback._ended_early()
    assert capsys.readouterr().out == ""


def test_what_a_host_says_does_nothing_to_the_terminal() -> None:
    said = "a\033]0;title\007b\x9b2Kc\u202ed\te"
    assert printable(said) == "a\\x1b]0;title\\x07b\\x9b2Kc\\u202ed\te"


def test_logs_of_others_stay(tmp_path: Path) -> None:
    others = [tmp_path / f"TEAM-notes-{number:02}.log" for number in range(30)]
    own = [tmp_path / f"20260101T0000{number:02}-{number}-site.log" for number in range(30)]
    for path in (*others, *own):
        path.touch()
    log = RunLog(tmp_path, "site")
    assert log.path.exists()
    assert all(path.exists() for path in others)
    assert [path for path in own if path.exists()] == own[11:]
