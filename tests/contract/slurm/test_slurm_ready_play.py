"""slurm_ready in a play, with an sinfo whose answers change."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.contract.warm_python import warm_ansible, warm_python

PLAY = """\
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - trainium.cluster.slurm_ready: {arguments}
      register: found
    - ansible.builtin.debug:
        msg: "ready {{{{ found.ready | join(',') }}}}, awaited {{{{ found.awaited | join(',') }}}}."
"""
# Each answer is a file; the last one is given again and again.
SINFO = """\
#!/bin/sh
echo "$@" >> {folder}/asked
number=$(wc -l < {folder}/asked)
[ -e {folder}/$number ] || number={last}
cat {folder}/$number
! grep -q error {folder}/$number
"""
BUSY = "slurm_load_node error: Unable to contact slurm controller\n"
READY = "a|idle|Unknown|static,trn1|none\nb|idle~|Unknown|dynamic,trn1|none\n"
STARTING = "a|idle~|Unknown|static,trn1|none\nb|idle~|Unknown|dynamic,trn1|none\n"
DOWN = "a|down*|slurm|(null)|Not responding\nb|idle|Unknown|(null)|none\n"


def run(tmp_path: Path, arguments: str, *answers: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    for number, answer in enumerate(answers, 1):
        (tmp_path / str(number)).write_text(answer, encoding="utf-8")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sinfo").write_text(SINFO.format(folder=tmp_path, last=len(answers)), encoding="utf-8")
    (tools / "sinfo").chmod(0o755)
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAY.format(arguments=arguments), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(playbook)]
    command += ["-e", f"ansible_python_interpreter={warm_python()}", *(["--check"] if check else [])]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_it_waits_for_a_node_that_is_always_there_and_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "{}", BUSY + "error", "", STARTING, READY)
    assert done.returncode == 0, done.stdout
    assert "ready a,b, awaited ." in done.stdout
    assert "Slurm does not answer (" in done.stderr
    assert "no node is known to Slurm" in done.stderr
    assert "1 of 2 nodes take jobs, waiting for a (idle~)" in done.stderr


def test_one_that_is_ready_is_asked_once(tmp_path: Path) -> None:
    done = run(tmp_path, "{partition: trn1}", READY)
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert len(asked) == 1
    assert asked[0].endswith("--partition=trn1")


def test_a_node_that_does_not_come_is_named_at_the_end_of_the_time(tmp_path: Path) -> None:
    done = run(tmp_path, "{timeout: 1}", DOWN)
    assert done.returncode == 2
    assert "1 of 2 nodes take jobs, waiting for a (down*, Not responding), still after 1 s; look into" in done.stdout


def test_any_node_is_enough_where_that_is_asked(tmp_path: Path) -> None:
    done = run(tmp_path, "{timeout: 0, require: any}", DOWN)
    assert done.returncode == 0, done.stdout
    assert "ready b, awaited a (down*, Not responding)." in done.stdout


def test_check_mode_only_looks(tmp_path: Path) -> None:
    done = run(tmp_path, "{}", DOWN, check=True)
    assert done.returncode == 0, done.stdout
    assert "awaited a (down*, Not responding)." in done.stdout


def test_a_controller_that_does_not_answer_is_a_failure_in_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, "{timeout: 1}", BUSY + "error")
    assert done.returncode == 2
    assert "Slurm does not answer" in done.stdout
