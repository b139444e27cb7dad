"""slurm_job in a play, with a Slurm that is slow, or takes a job and says that it did not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.calls import SlurmBusyError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.run import present

from tests.contract.warm_python import warm_ansible, warm_python

# A Slurm of three commands, whose queue is a file with a line "id|state|comment" for each job.
TOOLS = {
    "squeue": """\
if [ -e {folder}/busy ]; then
  rm {folder}/busy
  echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2
  exit 1
fi
cat {folder}/queue
""",
    "scontrol": """\
while IFS='|' read -r id state comment; do
  if [ "$5" = "$id" ] || [ "$4" = "$id" ]; then
    echo "JobId=$id JobName=a JobState=$state Reason=None ExitCode=0:0 NodeList=n1 BatchHost=n1 Comment=$comment"
    exit 0
  fi
done < {folder}/queue
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
""",
    "sbatch": """\
printf '%s\\n' "$@" > {folder}/arguments
env > {folder}/environment
sleep "$(cat {folder}/delay)"
id=$(($(wc -l < {folder}/queue) + 1))
echo "$id|COMPLETED|${{2#--comment=}}" >> {folder}/queue
if [ -e {folder}/torn ]; then
  rm {folder}/torn
  echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
  exit 1
fi
echo "$id"
""",
    # A connection that breaks after the command has run, once.
    "ssh": """\
for last; do [ "$last" != -O ] || exit 255; done
sh -c "$last"
code=$?
if [ -e {folder}/cut ] && [ -s {folder}/queue ]; then
  rm {folder}/cut
  echo 'ssh: connect to host head port 22: Connection timed out' >&2
  exit 255
fi
exit $code
""",
    "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1",
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Slurm with an empty queue."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    for name, text in TOOLS.items():
        tool = tmp_path / "bin" / name
        tool.write_text("#!/bin/sh\n" + text.format(folder=tmp_path), encoding="utf-8")
        tool.chmod(0o755)
    (tmp_path / "queue").write_text("", encoding="utf-8")
    (tmp_path / "delay").write_text("0", encoding="utf-8")
    (tmp_path / "job.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    return tmp_path


def run(folder: Path, *extra: str, **options: Any) -> tuple[int, str, str]:
    """A play with the module."""
    task = {"trainium.cluster.slurm_job": {**options_of(folder), **options}}
    document = [{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]
    playbook = folder / "play.yml"
    playbook.write_text(json.dumps(document), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", str(playbook)]
    command += ["-e", f"ansible_connection=local ansible_python_interpreter={warm_python()}", *extra]
    environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


def options_of(folder: Path) -> dict[str, Any]:
    record = str(folder / "state" / "record.json")
    return {"name": "a", "script": str(folder / "job.sh"), "record": record, "chdir": str(folder)}


def submitted(folder: Path, **options: Any) -> bool:
    """Whether the module, without its play, submits a job."""
    result = present({"resubmit": "failed", **options_of(folder), **options}, b"#!/bin/sh\n", False)
    return bool(result["submitted"])


def queue(folder: Path) -> list[str]:
    return (folder / "queue").read_text(encoding="utf-8").splitlines()


def test_a_job_that_was_taken_with_an_error_is_not_submitted_again(slurm: Path) -> None:
    (slurm / "torn").touch()
    code, out, err = run(slurm, wait=True)
    assert code == 0, out
    assert "Slurm does not answer (Socket timed out" in err
    assert len(queue(slurm)) == 1
    assert not submitted(slurm)


def test_a_connection_that_is_lost_right_after_sbatch(slurm: Path) -> None:
    (slurm / "cut").touch()
    ssh = {
        "ansible_connection": "ssh",
        "ansible_ssh_executable": str(slurm / "bin" / "ssh"),
        "ansible_pipelining": True,
    }
    code, out, err = run(slurm, "-e", json.dumps(ssh), wait=True)
    assert code == 0, out
    assert "the head node cannot be reached (" in err and "It is asked again." in err
    assert len(queue(slurm)) == 1


def test_a_wait_outlives_a_controller_that_is_away(slurm: Path) -> None:
    (slurm / "busy").touch()
    code, out, err = run(slurm, wait=True)
    assert code == 0, out
    assert "Unable to contact slurm controller (connect failure)); check slurmctld" in err
    assert "It is asked again." in err


def test_two_runs_at_once_submit_one_job(slurm: Path) -> None:
    (slurm / "delay").write_text("1", encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        results = [run.result() for run in [pool.submit(submitted, slurm), pool.submit(submitted, slurm)]]
    assert sorted(results) == [False, True]
    assert len(queue(slurm)) == 1


def test_a_run_that_is_killed_while_slurm_takes_its_job_keeps_the_next_one_waiting(slurm: Path) -> None:
    """sbatch goes on without it, and holds the lock until the job is in the queue."""
    (slurm / "delay").write_text("3", encoding="utf-8")
    code = f"import sys; from tests.contract.slurm.test_slurm_job_play import *; submitted(Path({str(slurm)!r}))"
    first = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 60
    while not (slurm / "environment").exists():
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.02)
    first.kill()
    first.wait()
    assert not submitted(slurm)
    assert len(queue(slurm)) == 1


def test_a_job_that_can_never_start_goes_from_the_queue(slurm: Path) -> None:
    """Else it would lie beside its successor, and count for the limits of its user."""
    assert submitted(slurm)
    told = (slurm / "bin" / "scontrol").read_text(encoding="utf-8")
    never = told.replace("Reason=None", "Reason=DependencyNeverSatisfied")
    (slurm / "bin" / "scontrol").write_text(never, encoding="utf-8")
    text = (slurm / "queue").read_text(encoding="utf-8")
    (slurm / "queue").write_text(text.replace("COMPLETED", "PENDING"), encoding="utf-8")
    (slurm / "bin" / "scancel").write_text(f"#!/bin/sh\necho $* >> {slurm}/cancelled\n", encoding="utf-8")
    (slurm / "bin" / "scancel").chmod(0o755)
    assert submitted(slurm)
    assert (slurm / "cancelled").read_text(encoding="utf-8") == "1\n"


def test_without_waiting_it_is_said_at_once(slurm: Path) -> None:
    (slurm / "busy").touch()
    with pytest.raises(SlurmBusyError, match="Slurm does not answer"):
        submitted(slurm)
    assert queue(slurm) == []


def test_the_session_of_ansible_is_no_part_of_the_job(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    assert submitted(slurm, environment={"WORDS": "a, b\n$(id)"}, args=["$(id)", "a b"])
    environment = (slurm / "environment").read_text(encoding="utf-8")
    assert "SBATCH_PARTITION" not in environment
    assert "hidden" not in environment
    assert "SLURM_TIME_FORMAT" not in environment
    assert "WORDS=a, b\n$(id)\n" in environment
    assert (slurm / "arguments").read_text(encoding="utf-8").splitlines()[-2:] == ["$(id)", "a b"]


@pytest.mark.parametrize(("resubmit", "again"), [("failed", True), ("never", False), ("always", True)])
def test_a_job_that_failed_is_submitted_again_as_one_likes(slurm: Path, resubmit: str, again: bool) -> None:
    assert submitted(slurm)
    text = (slurm / "queue").read_text(encoding="utf-8")
    (slurm / "queue").write_text(text.replace("COMPLETED", "FAILED"), encoding="utf-8")
    assert submitted(slurm, resubmit=resubmit) is again


def test_the_record_knows_what_slurm_has_forgotten(slurm: Path) -> None:
    assert submitted(slurm)
    (slurm / "queue").write_text("", encoding="utf-8")
    assert not submitted(slurm)


@pytest.mark.parametrize(("noted", "again"), [("1 0\n", False), ("1 3\n", True)])
def test_the_script_may_note_its_end_itself(slurm: Path, noted: str, again: bool) -> None:
    forget_the_end(slurm)
    (slurm / "state" / "record.json.end").write_text(noted, encoding="utf-8")
    assert submitted(slurm) is again


@pytest.mark.parametrize("noted", ["", "0 0\n", "torn"])
def test_a_job_whose_end_nobody_knows_is_not_done_twice_by_mistake(slurm: Path, noted: str) -> None:
    forget_the_end(slurm)
    (slurm / "state" / "record.json.end").write_text(noted, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Slurm has forgotten job 1 .* resubmit=always"):
        submitted(slurm)
    assert submitted(slurm, resubmit="always")


def forget_the_end(folder: Path) -> None:
    """Submit a job, be killed before its end is noted, and come back after Slurm has forgotten it."""
    assert submitted(folder)
    record = folder / "state" / "record.json"
    noted = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({**noted, "ended": False}), encoding="utf-8")
    (folder / "queue").write_text("", encoding="utf-8")


@pytest.mark.parametrize(("steps", "again"), [(8, False), (9, True)])
def test_a_log_with_all_steps_tells_that_a_forgotten_job_ended_well(slurm: Path, steps: int, again: bool) -> None:
    forget_the_end(slurm)
    line = "LOG Sat Nov 21 16:10:20 2026 - (0, 8) step_loss : 10.1 learning_rate : 2.80e-06 throughput : 64.36\n"
    (slurm / "train.log").write_text(line, encoding="utf-8")
    assert submitted(slurm, log=str(slurm / "train.log"), steps=steps) is again


def test_a_new_cluster_that_counts_from_one_again_is_no_reason_to_wait(slurm: Path) -> None:
    assert submitted(slurm)
    (slurm / "queue").write_text(f"1|RUNNING|trainium:{'0' * 16}\n", encoding="utf-8")
    record = slurm / "state" / "record.json"
    record.write_text(json.dumps({**json.loads(record.read_text(encoding="utf-8")), "ended": False}), encoding="utf-8")
    with pytest.raises(ValueError, match="Slurm has forgotten job 1"):
        submitted(slurm)


def test_check_mode_submits_nothing(slurm: Path) -> None:
    (slurm / "bin" / "sbatch").write_text("#!/bin/sh\necho 'sbatch: Job 7 to start at noon' >&2\n", encoding="utf-8")
    code, out, _err = run(slurm, "--check", "--diff")
    assert code == 0, out
    assert "changed=1" in out and "+sbatch --comment=trainium:" in out
    assert not (slurm / "state").exists()
    # Neither the script nor Slurm need be there yet.
    assert "changed=1" in run(slurm, "--check", script=str(slurm / "later.sh"))[1]
