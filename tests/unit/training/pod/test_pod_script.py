"""pod.sh: the pods of a training find each other on shared storage, compile, train and start again together."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve

ROLE = Path(__file__).parents[4] / "roles" / "training_job"
# A training that notes its start, and ends when the test lets it, with the code that the test wants.
TORCHRUN = f"""#!{sys.executable}
import json, os, sys, time
rank, folder = os.environ["TRAINIUM_NODE_RANK"], os.environ["WORLD"]
with open(f"{{folder}}/started", "a") as file:
    mode = "compile" if "--compiling" in sys.argv else "train"
    print(json.dumps([rank, mode, os.environ["TRAINIUM_POD"], sys.argv[1:], os.environ.get("A")]), file=file)
with open(f"{{folder}}/counts.{{rank}}", "a") as file:
    print(os.environ.get("SLURM_RESTART_COUNT"), file=file)
ending = f"{{folder}}/{{mode}}.{{rank}}"
while not os.path.exists(ending):
    time.sleep(0.05)
code = int(open(ending).read())
print("said by the script", flush=True)
sys.exit(f"  exitcode  : {{code}} (pid: 12)" if code == 85 else code)
"""
STUBS = {
    "torchrun": TORCHRUN,
    "neuron_parallel_compile": '#!/bin/bash\n[ "$1" = --command ] || exec "$@"\n',
}


class World:
    """Shared storage, a job's files as a ConfigMap shows them, and processes in place of pods."""

    def __init__(self, folder: Path, definition: dict[str, Any], nodes: int = 2) -> None:
        self.folder = folder
        self.pods: dict[int, subprocess.Popen[bytes]] = {}
        self.ids = 0
        for path in ("bin", "root/job", "root/environment"):
            (folder / path).mkdir(parents=True)
        for name, text in STUBS.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        own = {"preset": "none", "files": ["a.py"], "script": "a.py", "processes_per_node": 1, "image": "i"}
        definition = {**own, "cache": {"directory": str(folder / "a cache")}, "reserved_port": 0, **definition}
        context = {
            "directory": str(folder / "shared"),
            "venv_path": "/venv",
            "launcher": "kubernetes",
            "usable": [f"n{one}" for one in range(nodes)],
            "known": nodes,
            "checksums": {},
            "shared": True,
        }
        self.job = resolve(definition, {}, context)
        self.output = Path(self.job["folder"])
        variables = {
            "__training_job": self.job,
            "__training_job_efa": "",
            "__training_job_addresses": {},
            "__training_job_in_pods": True,
            "__training_job_pod_root": str(folder / "root"),
            "__training_job_requirements": "print()",
            "training_job_directory": str(folder / "shared"),
            "training_job_venv_path": "/venv",
            "training_job_shared": True,
            "training_job_rendezvous_port": 29500,
            "training_job_slurm_path": "/usr/bin",
            "training_job_pods_timeout": 60,
            "training_job_retries": 1,
        }
        templar = Templar(loader=DataLoader(), variables=variables)
        for name in ("pod.sh", "job.sh", "restart.sh"):
            text = trust_as_template((ROLE / "templates" / f"{name}.j2").read_text())
            text = templar.template(text).replace("SECONDS_SILENT=15", "SECONDS_SILENT=2")
            text = text.replace("SECONDS_BEAT=3", "SECONDS_BEAT=0.5")
            (folder / "root/job" / name).write_text(text)
        (folder / "root/job/a.py").write_text("")
        (folder / "root/job/.submission").write_text("one")
        (folder / "root/environment/environment.json").write_text(json.dumps({"A": "a secret"}))

    def start(self, rank: int) -> None:
        """A pod of the rank, in place of the one that it has."""
        self.ids += 1
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "WORLD": str(self.folder),
            "TRAINIUM_NODE_RANK": str(rank),
            "TRAINIUM_POD": f"pod{self.ids}",
            "TRAINIUM_POD_IP": f"192.0.2.{self.ids}",
        }
        with open(self.folder / f"said.{rank}", "w") as said:
            self.pods[rank] = subprocess.Popen(
                ["bash", str(self.folder / "root/job/pod.sh"), "node"],
                env=environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def lose(self, rank: int) -> None:
        """All of a pod at once, as with its node."""
        sessions = subprocess.run(
            ["pgrep", "--session", str(self.pods[rank].pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for process in map(int, sessions):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.pods[rank].wait()

    def let(self, mode: str, rank: int, code: int) -> None:
        (self.folder / f"{mode}.new").write_text(str(code))
        (self.folder / f"{mode}.new").rename(self.folder / f"{mode}.{rank}")

    def started(self, mode: str, rank: int) -> list[Any]:
        path = self.folder / "started"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else []
        return [line for line in lines if line[:2] == [str(rank), mode]]

    def until(self, mode: str, rank: int, times: int) -> None:
        deadline = time.monotonic() + 300
        while len(self.started(mode, rank)) < times:
            assert time.monotonic() < deadline, self.said(0) + self.said(rank)
            time.sleep(0.05)

    def said(self, rank: int) -> str:
        return (self.folder / f"said.{rank}").read_text()

    def code(self, rank: int) -> int:
        return self.pods[rank].wait(timeout=600)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[World]]:
    worlds: list[World] = []
    yield worlds
    for world in worlds:
        for rank, pod in world.pods.items():
            if pod.poll() is None:
                world.lose(rank)


def test_pods_train_together_and_with_the_variables_of_the_secret(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {"args": {"lr": 1}})
    made.append(world)
    for rank in (1, 0):
        world.let("train", rank, 0)
        world.start(rank)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0) + world.said(1)
    (_rank, _mode, _pod, argv, secret), *more = world.started("train", 1)
    assert (more, secret) == ([], "a secret")
    # Address of rank 0, whose pod came second.
    assert "--master-addr=192.0.2.2" in argv
    assert "--node-rank=1" in argv
    assert argv[-2:] == ["--lr", "1"]
    assert "JOB nodes=2 processes=2" in world.said(0)
    assert (world.output / "train.log").read_text() == world.said(0)


def both_train(tmp_path: Path, made: list[World]) -> World:
    """A training on two nodes, in which each runs its script."""
    world = World(tmp_path, {})
    made.append(world)
    for rank in (0, 1):
        world.start(rank)
    for rank in (0, 1):
        world.until("train", rank, 1)
    return world


def test_a_lost_pod_starts_all_again(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {})
    made.append(world)
    for rank in (0, 1):
        world.start(rank)
        world.until("train", rank, 1) if rank else None
    world.lose(1)
    world.start(1)
    world.until("train", 0, 2)
    world.until("train", 1, 2)
    for rank in (0, 1):
        world.let("train", rank, 0)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0)
    assert "JOB starts again: a node's part runs in another pod now." in world.said(0)
    # Presets go on from their checkpoint where this is not 0; the count is not lost with the pod.
    for rank in (0, 1):
        assert (tmp_path / f"counts.{rank}").read_text().split() == ["0", "1"]
    # The new pod's log has what the lost one has said.
    assert world.said(1).count("said by the script") == 1


def parents_first(leader: int) -> list[int]:
    """The processes of a session. A shell that sees that a process of its own has stopped waits for it no longer."""
    command = ["ps", "-o", "pid=,ppid=", "--sid", str(leader)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    parents = {int(pid): int(parent) for pid, parent in map(str.split, lines)}
    found = [leader]
    for process in found:
        found += [pid for pid, parent in parents.items() if parent == process]
    return found


def test_a_pod_whose_node_answers_again_leaves_its_rank_to_the_next(tmp_path: Path, made: list[World]) -> None:
    """Its node was given up, so that its Job has made another pod elsewhere; then both are there."""
    world = both_train(tmp_path, made)
    silent = world.pods[1]
    frozen = parents_first(silent.pid)
    for process in frozen:
        os.kill(process, signal.SIGSTOP)
    world.start(1)
    world.until("train", 0, 2)
    world.until("train", 1, 2)
    for process in reversed(frozen):
        os.kill(process, signal.SIGCONT)
    assert silent.wait(timeout=600) == 88
    for rank in (0, 1):
        world.let("train", rank, 0)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0) + world.said(1)
    assert [pod for _rank, _mode, pod, *_more in world.started("train", 1)] == ["pod2", "pod3"]
    # Its own end is no failure for which the others would give up.
    assert not list((world.output / "run-one").glob("given_up.*"))


def test_signs_that_cannot_be_read_for_a_moment_are_no_other_pod(tmp_path: Path, made: list[World]) -> None:
    """The shared storage is mounted anew, which all see at once."""
    world = both_train(tmp_path, made)
    signs, away = world.output / "run-one", world.output / "away"
    signs.rename(away)
    time.sleep(2.5)
    away.rename(signs)
    time.sleep(1.5)
    signs.rename(away)
    for rank in (0, 1):
        world.let("train", rank, 0)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0) + world.said(1)
    assert [len(world.started("train", rank)) for rank in (0, 1)] == [1, 1], world.said(0)


def test_a_failure_while_all_live_is_one(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {}, nodes=1)
    made.append(world)
    world.let("train", 0, 3)
    world.start(0)
    assert world.code(0) == 3, world.said(0)
    assert len(world.started("train", 0)) == 1


def test_the_time_limit_ends_a_training(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {"time_limit": "0:00:15", "stop_before": 1}, nodes=1)
    made.append(world)
    world.start(0)
    assert world.code(0) == 124, world.said(0)
    assert "The time limit of 15 s is over." in world.said(0)
    assert len(world.started("train", 0)) == 1


def test_all_end_where_one_has_failed_for_the_last_time(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {"requeue": False})
    made.append(world)
    world.let("train", 1, 3)
    world.start(0)
    world.start(1)
    assert [world.code(1), world.code(0)] == [3, 1], world.said(0)
    assert "rank 1 has failed with code 3 and is not tried again" in world.said(0)
    # Nor does the next pod of the other wait for anybody.
    started = len(world.started("train", 0))
    world.start(0)
    assert (world.code(0), len(world.started("train", 0))) == (1, started)


def test_a_rank_gives_up_after_as_many_pods_as_its_job_makes(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {}, nodes=1)
    made.append(world)
    world.let("train", 0, 3)
    for last in (False, True):
        world.start(0)
        assert world.code(0) == 3
        assert (world.output / "run-one/given_up.0").exists() is last


def test_links_on_the_shared_storage_are_not_followed(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {}, nodes=1)
    made.append(world)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    world.output.mkdir(parents=True)
    (world.output / "a.py").symlink_to(elsewhere)
    (tmp_path / "root/environment/environment.sh").write_text("A=b\n")
    (world.output / "environment.sh").symlink_to(elsewhere)
    world.let("train", 0, 0)
    world.start(0)
    assert world.code(0) == 0, world.said(0)
    copies = [world.output / name for name in ("a.py", "environment.sh")]
    assert [(one.is_symlink(), one.stat().st_mode & 0o777) for one in copies] == [(False, 0o755), (False, 0o600)]
    pod = ["bash", str(tmp_path / "root/job/pod.sh"), "clean"]
    assert (subprocess.run(pod, check=False).returncode, copies[1].exists()) == (0, False)
    (world.output / "train.log").unlink()
    (world.output / "train.log").symlink_to(elsewhere / "log")
    world.start(0)
    assert (world.code(0), list(elsewhere.iterdir())) == (1, [])
    assert "train.log is a link" in world.said(0)


def test_who_fails_because_another_pod_has_ended_waits_for_its_next(tmp_path: Path, made: list[World]) -> None:
    world = both_train(tmp_path, made)
    world.lose(1)
    world.let("train", 0, 1)
    while "JOB waits for another pod" not in world.said(0):
        assert world.pods[0].poll() is None, world.said(0)
        time.sleep(0.05)
    for rank in (0, 1):
        world.let("train", rank, 0)
    world.start(1)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0)


COMPILING = {"enabled": True, "success": "", "steps_argument": "", "args": {"compiling": True}}


def test_they_train_when_all_have_compiled(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {"compile": COMPILING})
    made.append(world)
    for rank in (0, 1):
        world.let("train", rank, 0)
        world.start(rank)
    world.let("compile", 0, 0)
    world.until("compile", 1, 1)
    deadline = time.monotonic() + 300
    while not (said := list(tmp_path.glob("**/compiled.0"))):
        assert time.monotonic() < deadline, world.said(0)
        time.sleep(0.05)
    # It looks once a second whether the other one has compiled, and would have begun to train by now if it did not.
    while time.time() < said[0].stat().st_mtime + 3:
        time.sleep(0.05)
    assert list(tmp_path.glob("**/begun.*")) == []
    world.let("compile", 1, 0)
    assert [world.code(0), world.code(1)] == [0, 0], world.said(0) + world.said(1)
    assert [len(world.started(mode, rank)) for mode in ("compile", "train") for rank in (0, 1)] == [1, 1, 1, 1]


def test_where_one_does_not_compile_none_trains(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {"compile": COMPILING})
    made.append(world)
    world.let("compile", 0, 0)
    world.let("compile", 1, 7)
    for rank in (0, 1):
        world.start(rank)
    assert [world.code(0), world.code(1)] == [86, 86], world.said(0) + world.said(1)
    assert "the compilation has failed with code 7" in world.said(0)
    assert "compile: said by the script" in world.said(1)
    # Nor does the pod that its Job makes next, which does not compile once more.
    world.start(1)
    assert world.code(1) == 86
    assert len(world.started("compile", 1)) == 1
    assert world.started("train", 0) == world.started("train", 1) == []


def test_what_stopped_in_time_goes_on(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {}, nodes=1)
    made.append(world)
    world.let("train", 0, 85)
    world.start(0)
    world.until("train", 0, 2)
    world.let("train", 0, 0)
    assert world.code(0) == 0
    assert "JOB starts again: it stopped in time." in world.said(0)


def test_an_image_without_torchrun_says_so(tmp_path: Path, made: list[World]) -> None:
    world = World(tmp_path, {}, nodes=1)
    made.append(world)
    (tmp_path / "bin/torchrun").unlink()
    world.start(0)
    assert world.code(0) == 1
    assert "the image has no torchrun on its PATH" in world.said(0)
