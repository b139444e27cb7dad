"""Campaign losses: something fails under a running training, which ends with the loss of one that was not disturbed.

Two hosts of the sandbox, backend ec2, one training for each try. What follows it may say why it ended; then the next
run takes it up. The nodes are repaired before the next try as a user would do it.
"""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.judge import BrokenError, judged
from tests.sandbox_driver import Run, Sandbox, answers_ssh

# Of the training; it takes longer than what fails it needs to be noticed.
STEPS = 200
# Seconds until the first checkpoint, until Slurm says that nodes have no jobs, and until they answer.
BEGIN, IDLE, REACH = 300.0, 300.0, 600.0
JOBS = "/opt/trainium/jobs"
_RESUMED = re.compile(r"training: resumed from step (\d+)")


def _wait(seen: Callable[[], bool], seconds: float, failure: Callable[[], str], pause: float = 0.5) -> None:
    """Until it is seen; raises BrokenError with what ``failure`` says."""
    until = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > until:
            raise BrokenError(failure())
        time.sleep(pause)


class Cluster:
    """The head, which trains as well, and the other node."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        sandbox.environment.update(sandbox.warm())
        # The training of this try.
        self.job = ""
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def know(self) -> None:
        """Its nodes, the first of the launch first, which is the head."""
        nodes = sorted(self.sandbox.instances(), key=lambda one: int(one["AmiLaunchIndex"]))
        self.ids = [node["InstanceId"] for node in nodes]
        self.addresses = [node["PrivateIpAddress"] for node in nodes]

    def reach(self) -> None:
        """Wait until sshd answers on all of them."""
        for address in self.addresses:
            _wait(partial(answers_ssh, address), REACH, partial("{} cannot be reached".format, address))

    def on_head(self, command: str) -> str:
        return self.sandbox.on_node(self.addresses[0], command).output.strip()

    def on_other(self, command: str) -> str:
        return self.sandbox.on_node(self.addresses[1], command).output.strip()

    def later(self, address: str, script: str) -> None:
        """Run a script there, after a moment, that goes on when the connection, or sshd itself, is gone."""
        self.sandbox.on_node(address, f"systemd-run --quiet sh -c {shlex.quote(f'sleep 2; {script}')}")

    def clear(self) -> None:
        """No job is left over, and both nodes take jobs. Raises BrokenError."""
        self.reach()
        self.on_head("scancel --user=ubuntu")
        self.must("nodes")
        idle = "sinfo --Node --noheader --format=%T"
        _wait(
            lambda: self.on_head(idle).split() == ["idle"] * 2, IDLE, lambda: f"the nodes are {self.on_head(idle)}", 1
        )

    def must(self, playbook: str, *given: str) -> None:
        """Run it to its end, which has to be a good one. Raises BrokenError."""
        run = self.sandbox.playbook(playbook, *given)
        judged(run.output, run.returncode)
        if run.returncode:
            raise BrokenError(f"{playbook}.yml failed: {_last(run)}")


def _last(run: Run) -> str:
    return " ".join(run.output.split())[-1500:]


def _stop(cluster: Cluster, force: bool) -> None:
    cluster.sandbox.client("ec2").stop_instances(InstanceIds=cluster.ids[1:], Force=force)


def _start(cluster: Cluster) -> None:
    """The node comes back, as by hand in the console, and into service by nodes.yml."""
    ec2 = cluster.sandbox.client("ec2")
    ec2.get_waiter("instance_stopped").wait(InstanceIds=cluster.ids[1:], WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    ec2.start_instances(InstanceIds=cluster.ids[1:])


def _cut(cluster: Cluster, seconds: int) -> None:
    """The other node has no network for a while; then it has its address and its routes again."""
    script = (
        f"routes=$(ip route show default); ip link set eth0 down; sleep {seconds}; ip link set eth0 up; "
        '[ -z "$routes" ] || ip route replace $routes'
    )
    cluster.later(cluster.addresses[1], script)


def _full(cluster: Cluster) -> None:
    """The disk with the checkpoints has no room for the second of those that follow."""
    folder = f"{JOBS}/{cluster.job}-*/output"
    cluster.on_head(
        f"at=$(echo {folder}); last=$(ls -t $at/ckpt_*.pt | head -n 1); mkdir /run/small && "
        "mount -t tmpfs -o size=$(($(du -sk $at | cut -f1) + 3 * $(du -k $last | cut -f1) / 2))k none /run/small && "
        "cp -a $at/. /run/small/ && chown --reference=$at /run/small && mount --bind /run/small $at"
    )


def _room(cluster: Cluster) -> None:
    cluster.on_head(
        f"at=$(echo {JOBS}/{cluster.job}-*/output); ! mountpoint -q $at || umount -l $at; "
        "[ ! -d /run/small ] || { cp -a /run/small/. $at/; umount -l /run/small; rmdir /run/small; }"
    )


def _restarts(cluster: Cluster, address: str, daemon: str) -> int:
    """How often systemd has started a daemon again by itself."""
    shown = cluster.sandbox.on_node(address, f"systemctl show --property=NRestarts --value {daemon}").output
    return int(shown.split()[-1])


def _kill(cluster: Cluster, number: int, daemon: str) -> None:
    """As the kernel does when the memory is full; systemd starts it again."""
    address = cluster.addresses[number]
    before = _restarts(cluster, address, daemon)
    cluster.sandbox.on_node(address, f"systemctl kill --kill-who=main --signal=KILL {daemon}")
    _wait(lambda: _restarts(cluster, address, daemon) > before, REACH, lambda: f"nobody has started {daemon} again")


class Loss(NamedTuple):
    """What fails, how it is repaired where it does not repair itself, and what else the training is given."""

    strike: Callable[[Cluster], Any]
    mend: Callable[[Cluster], Any] | None = None
    training: dict[str, Any] = {}  # noqa: RUF012 - never changed
    # Whether what follows has to reach the end by itself.
    alone: bool = True
    # How often at least the job starts again, by which it is seen that the loss was one.
    restarts: int = 0


LOSSES = {
    "power": Loss(lambda cluster: _stop(cluster, True), _start, restarts=1),
    "shutdown": Loss(lambda cluster: _stop(cluster, False), _start, restarts=1),
    "short cut of the network": Loss(lambda cluster: _cut(cluster, 20)),
    "long cut of the network": Loss(lambda cluster: _cut(cluster, 420), restarts=1),
    "disk full": Loss(_full, _room, alone=False),
    "sshd": Loss(
        lambda cluster: cluster.later(
            cluster.addresses[0], "systemctl stop ssh; pkill -KILL sshd; sleep 60; systemctl start ssh"
        )
    ),
    "slurmctld": Loss(lambda cluster: _kill(cluster, 0, "slurmctld")),
    "slurmd": Loss(lambda cluster: _kill(cluster, 1, "slurmd")),
    # Not by the command line of the shell that runs it.
    "the processes of the script on a node": Loss(
        lambda cluster: cluster.on_other("pkill -KILL -f '[b]ert_pretrain.py --'"), alone=False
    ),
    "time limit": Loss(lambda _cluster: None, training={"time_limit": "00:01:00", "stop_before": 30}, restarts=1),
}


def _given(job: str, more: dict[str, Any]) -> tuple[str, str]:
    length = {"steps": STEPS, "args": {"steps_this_run": STEPS}, "checkpoint": {"steps": 20}}
    training = {"name": job, "min_nodes": 1, "processes_per_node": 2, **length, **more}
    return "-e", json.dumps({"trainium_training": training})


def undisturbed(cluster: Cluster) -> float:
    """The loss of a training that nothing happens to, for which the cluster is made."""
    cluster.must("site", *_given("loss-none", {}))
    cluster.know()
    return float(_report(cluster)["final_loss"])


def _report(cluster: Cluster) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((cluster.sandbox.reports / "report.json").read_text(encoding="utf-8"))
    return report


def attempt(cluster: Cluster, normal: float, seed: str, say: Callable[[str], None]) -> int:
    """One training with one loss, which is the next with each number of the seed. Raises BrokenError."""
    name = list(LOSSES)[(int(seed.split()[-1]) - 1) % len(LOSSES)]
    chance, loss = random.Random(seed), LOSSES[name]  # noqa: S311
    cluster.job = f"loss-{seed.replace(' ', '-')}-{int(time.time())}"
    given = _given(cluster.job, loss.training)
    cluster.clear()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(cluster.sandbox.playbook, "training", *given)
        try:
            _await_checkpoint(cluster, run)
            time.sleep(chance.uniform(0, 6))
            states = cluster.on_head(f"squeue --noheader --name={cluster.job} --format='%T %D'")
            if states != "RUNNING 2":
                raise BrokenError(f"{name}: nothing could be lost, since the job is {states or 'over'}")
            say(f"{name}, after {_steps(cluster)} steps")
            loss.strike(cluster)
            first = run.result()
        finally:
            # Whatever comes out, for the next try; what follows the job ends with it.
            if not run.done():
                cluster.reach()
                cluster.on_head(f"scancel --name={cluster.job}")
            if loss.mend:
                loss.mend(cluster)
    say(f"{name}: training.yml ended with {first.returncode} after {first.seconds:.0f} s")
    cluster.reach()
    judged(first.output, first.returncode)
    if first.returncode:
        if loss.alone:
            raise BrokenError(f"{name}: the training did not go on: {_last(first)}")
        cluster.must("training", *given)
    _whole(cluster, normal, loss, say)
    cluster.clear()
    return 1


def _await_checkpoint(cluster: Cluster, run: Future[Run]) -> None:
    def begun() -> bool:
        if run.done():
            raise BrokenError(f"the training ended before its first checkpoint: {_last(run.result())}")
        return "training: checkpoint" in cluster.on_head(f"cat {JOBS}/{cluster.job}-*/train.log 2> /dev/null || :")

    _wait(begun, BEGIN, lambda: "the training did not begin", 0.3)


def _steps(cluster: Cluster) -> str:
    return cluster.on_head(f"grep -c step_loss {JOBS}/{cluster.job}-*/train.log")


def _whole(cluster: Cluster, normal: float, loss: Loss, say: Callable[[str], None]) -> None:
    """Each step counts, what was started again went on from a checkpoint, and the loss is the undisturbed one's."""
    report = _report(cluster)
    with (cluster.sandbox.reports / "metrics.csv").open(encoding="utf-8", newline="") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    log = Path(report["log"]).read_text(encoding="utf-8")
    # Of each further start; 0 where it says nothing of a checkpoint.
    resumed = [int((_RESUMED.findall(part) or [0])[0]) for part in log.split("JOB nodes=")[2:]]
    say(f"{report['restarts']} restarts from steps {resumed}, {report['nodes']} nodes, loss {report['final_loss']:.4f}")
    if not str(report["name"]).startswith(cluster.job):
        raise BrokenError(f"the report is that of {report['name']}")
    if report["restarts"] < loss.restarts or (not loss.alone and not resumed):
        raise BrokenError("the job was not started again, so that nothing was lost")
    if resumed and min(resumed) < 1:
        raise BrokenError(f"the training began anew, from steps {resumed}")
    if steps != list(range(1, STEPS + 1)):
        raise BrokenError(f"the steps are {steps[:3]} to {steps[-3:]}, {len(steps)} of them")
    if abs(report["final_loss"] - normal) > 0.02:
        raise BrokenError(f"the loss is {report['final_loss']} in place of {normal}")
