"""How a job goes on after a node is lost, and after it stopped in time: one script, as bash runs it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import requeue_reason

from tests.unit.training.scripts.job_scripts import ADDRESS, Job

WITHOUT_SLURM = {"SLURM_JOB_ID": "", "TRAINIUM_NODE_RANK": "0"}


@pytest.fixture
def slurmd() -> Iterator[socket.socket]:
    """A port on which a living node would answer, once it listens."""
    with socket.socket() as made:
        made.bind((ADDRESS, 0))
        yield made


def waits(job: Job, line: str, seconds: int) -> None:
    """The job waits so long for that."""
    script = job.folder / "restart.sh"
    assert line in script.read_text()
    script.write_text(script.read_text().replace(line, f"{line.split('=')[0]}={seconds}"))


def port_of(slurmd: socket.socket) -> str:
    return str(slurmd.getsockname()[1])


@pytest.mark.parametrize(("requeue", "code", "requeued"), [(True, 0, "requeue 7\n"), (False, 85, "")])
def test_a_script_that_stopped_in_time_is_put_back(tmp_path: Path, requeue: bool, code: int, requeued: str) -> None:
    job = Job(tmp_path, {"requeue": requeue})
    done = job.run("train.batch", SAYS="  exitcode  : 85 (pid: 12)", ENDS_WITH="1")
    assert done.returncode == code
    asked = Path(f"{job.shown}.slurm")
    assert (asked.read_text() if asked.exists() else "") == requeued


def test_a_cancelled_job_is_not_put_back(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    done = job.run("train.batch", SAYS="  exitcode  : 85 (pid: 12)", ENDS_WITH="1", JOB_STATE="COMPLETING")
    assert done.returncode == 85
    assert not Path(f"{job.shown}.slurm").exists()


@pytest.mark.parametrize("answers", [True, False])
def test_a_failure_is_put_back_only_where_a_node_is_gone(tmp_path: Path, slurmd: socket.socket, answers: bool) -> None:
    job = Job(tmp_path, {})
    waits(job, "SHUTDOWN_SECONDS=10", 0)
    if answers:
        slurmd.listen()
    done = job.run("train.batch", ENDS_WITH="3", SLURMD_PORT=port_of(slurmd))
    assert done.returncode == (3 if answers else 0)
    assert ("starts again without n 1, which does not answer" in done.stdout) != answers
    assert Path(f"{job.shown}.slurm").exists() != answers


def test_a_node_that_shuts_down_answers_for_some_seconds_more(tmp_path: Path, slurmd: socket.socket) -> None:
    """systemd ends the job's processes and slurmd side by side, and the other nodes fail at once."""
    job = Job(tmp_path, {})
    slurmd.listen()
    port = port_of(slurmd)

    def answer_once() -> None:
        with slurmd.accept()[0]:
            slurmd.close()

    answered = threading.Thread(target=answer_once)
    answered.start()
    done = job.run("train.batch", ENDS_WITH="3", SLURMD_PORT=port)
    answered.join()
    assert (done.returncode, Path(f"{job.shown}.slurm").read_text()) == (0, "requeue 7\n")
    assert "starts again without n 1, which does not answer" in done.stdout


def test_a_node_that_shuts_down_may_answer_for_long(tmp_path: Path, slurmd: socket.socket) -> None:
    job = Job(tmp_path, {})
    slurmd.listen()
    environment = {"SLURMD_PORT": port_of(slurmd), "SYSTEM": "stopping", "SLURMD_NODENAME": "n-1"}
    done = job.run("train.batch", ENDS_WITH="3", **environment)
    assert (done.returncode, Path(f"{job.shown}.slurm").read_text()) == (0, "requeue 7\n")
    assert "starts again without n-1, which does not answer" in done.stdout


def test_lost_are_the_nodes_that_do_not_answer(tmp_path: Path, slurmd: socket.socket) -> None:
    job = Job(tmp_path, {}, {"n1": ADDRESS, "n2": "127.0.0.2", "n3": ADDRESS})
    slurmd.listen()
    done = job.run("restart.sh", "lost", NODES="n1\nn2\nn3", SLURMD_PORT=port_of(slurmd))
    assert (done.returncode, done.stdout) == (0, "n2\n")


def test_a_node_that_is_gone_without_a_word_does_not_keep_the_others(tmp_path: Path, slurmd: socket.socket) -> None:
    """srun goes on waiting for it after the first node has ended; nobody else would end that."""
    job = Job(tmp_path, {})
    waits(job, "SILENT_SECONDS=30", 1)
    done = job.run("train.batch", SLURMD_PORT=port_of(slurmd), HANGS="60")
    assert done.returncode == 0
    assert "starts again without n 1, which does not answer" in done.stdout
    assert Path(f"{job.shown}.slurm").read_text() == "requeue 7\n"


def test_nodes_that_answer_are_waited_for(tmp_path: Path, slurmd: socket.socket) -> None:
    """As where one of them writes its last checkpoint."""
    job = Job(tmp_path, {})
    waits(job, "SILENT_SECONDS=30", 1)
    slurmd.listen()
    done = job.run("train.batch", SLURMD_PORT=port_of(slurmd), HANGS="3")
    assert (done.returncode, Path(f"{job.shown}.slurm").exists()) == (0, False)


def test_what_has_stopped_in_time_is_not_put_back_when_its_nodes_are_gone(tmp_path: Path) -> None:
    job = Job(tmp_path, {"ends_at": "2096-10-02T07:06:40Z"})
    script = job.folder / "restart.sh"
    script.write_text(script.read_text().replace("block_end=4000000000", "block_end=1"))
    job_script = job.folder / "job.sh"
    job_script.write_text("#!/usr/bin/env bash\ntouch " + repr(str(job.folder / "stopped.0")) + "\n")
    done = job.run("train.batch")
    assert done.returncode == 85
    assert "JOB ends here, since its nodes are gone at 1970-01-01T00:00:01Z" in done.stdout
    assert not Path(f"{job.shown}.slurm").exists()


UNAWARE = {"stopped_by": "job", "time_limit": "10"}


def limited(job: Job, seconds: str) -> None:
    """The job is as good as at its end."""
    script = job.folder / "job.sh"
    text = script.read_text()
    left = "$((TRAINIUM_STOP_AT - $(date +%s)))"
    assert left in text
    script.write_text(text.replace(left, seconds))


def test_a_script_that_knows_nothing_of_its_end_is_stopped_in_time(tmp_path: Path) -> None:
    job = Job(tmp_path, UNAWARE)
    limited(job, "1")
    done = job.run("train.batch", SLEEPS="60")
    assert done.returncode == 0
    assert "training: stopped before the end of its time; what the script has saved stays." in done.stdout
    assert "JOB is put into the queue again and goes on from its checkpoint." in done.stdout
    assert requeue_reason(done.stdout) == "it stopped before the end of its time; what the script has saved stays."


@pytest.mark.parametrize(("definition", "code"), [(UNAWARE, 0), ({"time_limit": "10"}, 1)])
def test_what_fails_with_the_others_at_its_end_is_stopped_as_well(
    tmp_path: Path, definition: dict[str, str], code: int
) -> None:
    job = Job(tmp_path, definition)
    # What bash takes for the time of the end is not that of the limit here.
    script = job.folder / "restart.sh"
    script.write_text(script.read_text().replace("$(($(date +%s) + 10))", "$(($(date +%s) + 9999))"))
    assert job.run("job.sh", "train", ENDS_WITH="1").returncode == code
    assert (job.folder / "stopped.0").exists() == (code == 0)


def test_a_failure_before_is_a_failure(tmp_path: Path) -> None:
    job = Job(tmp_path, UNAWARE)
    assert job.run("job.sh", "train", ENDS_WITH="1").returncode == 1
    assert job.run("job.sh", "train").returncode == 0
    assert not (job.folder / "stopped.0").exists()


def test_without_slurm_a_record_says_how_it_ended(tmp_path: Path) -> None:
    job = Job(tmp_path, {"time_limit": "10"})
    assert job.run("restart.sh", "unit", ENDS_WITH="3", **WITHOUT_SLURM).returncode == 3
    record = json.loads((job.folder / "node.0.json").read_text())
    assert (record["exit_code"], record["phase"], record["digest"]) == (3, "train", job.job["digest"])


def test_without_slurm_what_stopped_in_time_is_run_again(tmp_path: Path) -> None:
    job = Job(tmp_path, {})
    assert job.run("restart.sh", "unit", STOPS="2", **WITHOUT_SLURM).returncode == 0
    counts = [environment["SLURM_RESTART_COUNT"] for _argv, environment in job.calls("torchrun")]
    assert counts == ["0", "1", "2"]
    record = json.loads((job.folder / "node.0.json").read_text())
    assert (record["exit_code"], record["restarts"]) == (0, 2)


def test_without_slurm_it_stays_stopped_where_it_is_not_to_go_on(tmp_path: Path) -> None:
    job = Job(tmp_path, {"requeue": False})
    assert job.run("restart.sh", "unit", STOPS="1", **WITHOUT_SLURM).returncode == 85
    assert json.loads((job.folder / "node.0.json").read_text())["exit_code"] == 85
