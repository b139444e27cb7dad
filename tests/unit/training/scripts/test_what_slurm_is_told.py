"""All that a job says to Slurm, and all that it records: directives, options of srun, how each node's part ended."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.scripts.job_scripts import Job

WITHOUT_SLURM = {"SLURM_JOB_ID": "", "TRAINIUM_NODE_RANK": "0"}


def directives(job: Job, name: str) -> list[str]:
    lines = (job.folder / name).read_text().splitlines()
    return [line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")]


def test_the_directives_are_these(tmp_path: Path) -> None:
    job = Job(tmp_path, {"name": "bert", "time_limit": "2:00:00", "compile": {"enabled": True, "time_limit": "30:00"}})
    for name, limit, log in (("train", "2:00:00", "log"), ("compile", "30:00", "compile_log")):
        assert directives(job, f"{name}.batch") == [
            *('job-name="bert"', 'nodes="1"', f'time="{limit}"', f'output="{job.job[log]}"'),
            *('open-mode="append"', 'chdir="/tmp"', "exclusive", "requeue"),
        ]
    # bash reads them as a script, of which Slurm looks at the first lines alone.
    assert (job.folder / "train.batch").read_text().startswith("#!/usr/bin/env bash\n#SBATCH")


def test_a_job_that_does_not_go_on_says_so_to_slurm(tmp_path: Path) -> None:
    assert "no-requeue" in directives(Job(tmp_path, {"requeue": False}), "train.batch")


def asked_of_srun(job: Job) -> Path:
    """srun writes down its arguments, then does what it did."""
    asked = job.work.parent / "asked of srun"
    stub = Path(job.job_bin()) / "srun"
    stub.write_text(stub.read_text().replace("#!/bin/bash\n", f'#!/bin/bash\necho "$*" >> "{asked}"\n', 1))
    return asked


def test_a_part_runs_once_on_each_node_and_all_end_with_the_first_that_fails(tmp_path: Path) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}})
    asked = asked_of_srun(job)
    done = job.run("train.batch", SLURM_JOB_NUM_NODES="1", SAYS="Total failed compilations: 0")
    assert done.returncode == 0, done.stderr
    options = "--nodes=1 --ntasks=1 --ntasks-per-node=1 --kill-on-bad-exit=1"
    parts = ("cold", "compile", "train")
    assert asked.read_text().splitlines() == [f"{options} bash {job.folder}/job.sh {part}" for part in parts]


def test_the_system_of_each_node_is_asked_once_and_beside_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    script = job.folder / "restart.sh"
    script.write_text(script.read_text().replace("SHUTDOWN_SECONDS=10", "SHUTDOWN_SECONDS=1"))
    # Nobody answers there, so that the node counts as lost; where it does, its system is asked.
    asked = asked_of_srun(job)
    (Path(job.job_bin()) / "timeout").write_text('#!/bin/bash\n[ "$1" = 5 ] && exit 0\nexec /usr/bin/timeout "$@"\n')
    (Path(job.job_bin()) / "timeout").chmod(0o755)
    done = job.run("train.batch", ENDS_WITH="3")
    assert done.returncode == 3
    assert asked.read_text().splitlines()[1].startswith("--overlap --nodes=2 --ntasks-per-node=1 bash -c ")


def test_one_node_alone_is_not_looked_for(tmp_path: Path) -> None:
    """It runs the script that would look."""
    job = Job(tmp_path, {})
    asked = asked_of_srun(job)
    assert job.run("train.batch", ENDS_WITH="3", SLURM_JOB_NUM_NODES="1").returncode == 3
    assert len(asked.read_text().splitlines()) == 1


def test_the_end_of_a_job_is_kept_for_when_slurm_has_forgotten_it(tmp_path: Path) -> None:
    job = Job(tmp_path, {"requeue": False})
    assert job.run("train.batch", ENDS_WITH="3").returncode == 3
    assert (job.folder / "end").read_text() == "7 3\n"
    assert job.run("train.batch").returncode == 0
    assert (job.folder / "end").read_text() == "7 0\n"
    # One that a user submits by hand has no such file.
    assert job.run("train.batch", TRAINIUM_END_FILE="").returncode == 0


def test_nothing_of_an_earlier_run_counts(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    (job.folder / "stopped.0").touch()
    assert job.run("train.batch").returncode == 0
    assert not (job.folder / "stopped.0").exists()
    assert not Path(f"{job.shown}.slurm").exists()


def test_the_batch_script_leaves_no_folder(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    seen = tmp_path / "seen"
    stub = Path(job.job_bin()) / "torchrun"
    stub.write_text(f'#!/bin/bash\necho "$TRAINIUM_ENDED" > "{seen}"\n')
    assert job.run("train.batch").returncode == 0
    pipe = Path(seen.read_text().strip())
    assert pipe.name == "ended"
    assert not pipe.parent.exists()


def test_what_a_script_says_while_it_is_ended_is_read(tmp_path: Path) -> None:
    """SIGTERM reaches all processes of the step; what looks at the lines stays until the last."""
    job = Job(tmp_path, {"requeue": False})
    stub = Path(job.job_bin()) / "torchrun"
    stub.write_text(
        "#!/bin/bash\ntrap 'echo saved after the signal; echo \"exitcode : 85\"; exit 1' TERM\n"
        f"touch '{tmp_path}/ready'\nsleep 30 & wait\n"
    )
    process = job.start("job.sh", "train")
    deadline = time.monotonic() + 120
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # As Slurm does it: to each process, but not to the shell that only waits.
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    output, _errors = process.communicate(timeout=120)
    assert "saved after the signal" in output
    assert (job.folder / "stopped.0").exists()


# --- without Slurm ---


def record(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.folder / "node.0.json").read_text())
    return found


def test_a_record_has_its_times_and_the_log_what_was_said(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    before = int(time.time())
    assert job.run("restart.sh", "unit", SAYS="a line", **WITHOUT_SLURM).returncode == 0
    said = record(job)
    assert set(said) == {"digest", "phase", "exit_code", "restarts", "started_at", "ended_at"}
    assert before <= said["started_at"] <= said["ended_at"] <= time.time()
    assert (said["phase"], said["exit_code"], said["restarts"]) == ("train", 0, 0)
    assert "a line\n" in (job.folder / "train.log").read_text()
    assert [path.name for path in job.folder.glob("node.*")] == ["node.0.json"]


@pytest.mark.parametrize(("says", "code", "phase"), [("", 1, "compile"), ("Total failed compilations: 0", 0, "train")])
def test_what_does_not_compile_does_not_train(tmp_path: Path, says: str, code: int, phase: str) -> None:
    job = Job(tmp_path, {"compile": {"enabled": True}})
    assert job.run("restart.sh", "unit", SAYS=says, **WITHOUT_SLURM).returncode == code
    assert (record(job)["phase"], record(job)["exit_code"]) == (phase, code)
    assert "JOB nodes=1" in (job.folder / "compile.log").read_text()
    assert (job.folder / "train.log").exists() == (not code)


def test_the_time_limit_is_the_definition_s(tmp_path: Path) -> None:
    job = Job(tmp_path, {"time_limit": "10"})
    script = job.folder / "restart.sh"
    assert "timeout --kill-after=30 600 bash" in script.read_text()
    script.write_text(script.read_text().replace("--kill-after=30 600 bash", "--kill-after=30 2 bash"))
    assert job.run("restart.sh", "unit", SLEEPS="60", **WITHOUT_SLURM).returncode == 124
    assert (record(job)["exit_code"], record(job)["phase"]) == (124, "train")
    assert "The time limit of 600 s is over." in (job.folder / "train.log").read_text()


def test_an_old_record_is_gone_while_the_next_runs(tmp_path: Path) -> None:
    """Who follows the training would take it for the end of this one."""
    job = Job(tmp_path, {})
    (job.folder / "node.0.json").write_text("{}")
    (job.folder / "stopped.0").touch()
    process = job.start("restart.sh", "unit", SLEEPS="5", **WITHOUT_SLURM)
    deadline = time.monotonic() + 120
    while not job.calls("torchrun"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (job.folder / "node.0.json").exists()
    process.communicate()
    assert process.returncode == 0
    assert record(job)["restarts"] == 0


@pytest.mark.parametrize("word", ["", "train", "under_slurm"])
def test_it_takes_no_other_word(tmp_path: Path, word: str) -> None:
    job = Job(tmp_path, {})
    done = job.run("restart.sh", *([word] if word else []))
    assert (done.returncode, done.stderr) == (2, "restart.sh takes unit or lost.\n")


# --- where nodes are ---


def test_where_a_node_is_now_slurm_knows(tmp_path: Path) -> None:
    """It may not be the one that the job was written for."""
    job = Job(tmp_path, {"reserved_port": 0}, {"n 1": "127.0.0.1"})
    stub = Path(job.job_bin()) / "scontrol"
    stub.write_text(
        '#!/bin/bash\n[ "$2" = hostnames ] && printf "n2\\nn 1\\n"\n'
        '[ "$1 $2 $3" = "show node n2" ] && echo "   NodeAddr=127.0.0.7 NodeHostName=n2"\nexit 0\n'
    )
    assert job.run("job.sh", "train", SLURM_NODEID="1").returncode == 0
    assert "--master-addr=127.0.0.7" in job.calls("torchrun")[-1][0]


def test_a_name_that_slurm_gives_is_looked_up_and_an_unknown_one_refused(tmp_path: Path) -> None:
    job = Job(tmp_path, {"reserved_port": 0}, {"n 1": "127.0.0.1"})
    bin_folder = Path(job.job_bin())
    (bin_folder / "scontrol").write_text(
        '#!/bin/bash\n[ "$2" = hostnames ] && printf "n2\\nn 1\\n"\n'
        '[ "$2" = node ] && echo "NodeAddr=n2.local Port=1"\nexit 0\n'
    )
    getent = bin_folder / "getent"
    getent.write_text('#!/bin/bash\n[ "$*" = "ahostsv4 n2" ] && printf "127.0.0.8 STREAM n2\\n127.0.0.9 DGRAM\\n"\n')
    getent.chmod(0o755)
    assert job.run("job.sh", "train", SLURM_NODEID="1").returncode == 0
    assert "--master-addr=127.0.0.8" in job.calls("torchrun")[-1][0]
    getent.write_text("#!/bin/bash\nexit 2\n")
    done = job.run("job.sh", "train", SLURM_NODEID="1")
    assert done.returncode == 1
    assert "Slurm runs the job on n2, of which no address is known" in done.stderr
