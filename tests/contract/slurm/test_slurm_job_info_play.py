"""slurm_job_info in a play, with a controller that sometimes does not answer."""

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
    - trainium.cluster.slurm_job_info:
        job_id: 7
        wait: {wait}
"""
SCONTROL = """\
#!/bin/sh
# Answers at the third question.
echo >> {count}
if [ "$(wc -l < {count})" -lt 3 ]; then
  echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2
  exit 1
fi
echo 'JobId=7 JobName=a JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=n1 BatchHost=n1'
"""


def run(tmp_path: Path, wait: str) -> subprocess.CompletedProcess[str]:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "scontrol").write_text(SCONTROL.format(count=tmp_path / "count"), encoding="utf-8")
    (tools / "scontrol").chmod(0o755)
    playbook = tmp_path / "play.yml"
    playbook.write_text(PLAY.format(wait=wait), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(playbook)]
    command += ["-e", f"ansible_python_interpreter={warm_python()}"]
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)


def test_a_wait_outlives_a_controller_that_is_busy(tmp_path: Path) -> None:
    done = run(tmp_path, "true")
    assert done.returncode == 0, done.stdout
    assert done.stderr.count("Slurm does not answer") == 1
    assert "It is asked again." in done.stderr


def test_a_single_look_says_so_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "false")
    assert done.returncode == 2
    assert "Slurm does not answer" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
