"""Campaign sizes: what a cluster of many nodes costs the controller, from its launch to its teardown.

The nodes are those of the emulated API, with eight EFA interfaces each. Each step runs as it does for users, in
processes that have imported nothing before; the emulator's own time is in the wall time alone.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import expand

from tests.benchmarks.inventory import WATCH
from tests.contract.conftest import REPOSITORY
from tests.faults.judge import BrokenError, clean
from tests.faults.world import COMMANDS, DELETE, MAKE, NAME, World

SIZES = (250, 500, 1000)
# Twice as many nodes may cost so much more: linear is twice, and two runs differ by a fifth on a busy machine.
MOST = 2.5
# No address for each node, of which AWS gives few.
CLUSTER = {
    "trainium_public_ip": "none",
    "trainium_private_access": True,
    "trainium_instance_type": "trn1.32xlarge",
}
HARDWARE = "CPUs=128 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=498944 Gres=neuron:16"
SLURM = {
    "__slurm_seen": "{{ dict(groups.compute | product([{'__slurm_hardware': '" + HARDWARE + "'}])) }}",
    "slurm_compute_nodes": "{{ groups.compute }}",
    "slurm_controller": "{{ groups.compute[0] }}",
    "slurm_cluster_name": NAME,
}


class Cost(NamedTuple):
    """Seconds of wall time and of the processors, MiB of the largest process, calls of the API."""

    wall: float
    cpu: float
    memory: float
    calls: int


def measured(world: World, say: Callable[[str], None]) -> dict[str, Cost]:
    """The steps of a cluster of one size, in their order. Raises BrokenError."""
    world.empty()
    found = {}
    for name, step in _steps(world):
        world.api.clear_calls()
        started = time.monotonic()
        cpu, memory = step()
        found[name] = Cost(time.monotonic() - started, cpu, memory, len(world.api.calls()))
        say(f"{name}: {found[name].wall:.0f} s, CPU {cpu:.1f} s, {memory:.0f} MiB, {found[name].calls} calls")
    clean(world, 60)
    return found


def uneven(costs: dict[int, dict[str, Cost]], many: int) -> Iterator[str]:
    """What grew faster than the number of nodes, from half as many to so many."""
    for step, cost in costs.get(many, {}).items():
        before = costs.get(many // 2, {}).get(step)
        if before is None:
            continue
        for what, less, more in (
            ("CPU time", before.cpu, cost.cpu),
            ("memory", before.memory, cost.memory),
            ("number of calls", before.calls, cost.calls),
        ):
            if more > MOST * less:
                yield f"the {what} of {step} grew from {less:.0f} with {many // 2} nodes to {more:.0f} with {many}"


def _steps(world: World) -> Iterator[tuple[str, Callable[[], tuple[float, float]]]]:
    yield "launch", lambda: _playbooks(world, *MAKE)
    yield "launch with nothing to do", lambda: _playbooks(world, *MAKE)
    yield "inventory", lambda: _inventory(world)
    yield "hosts file", lambda: _rendered(world, "cluster_hosts", "entries.j2", {}, _entries)
    yield "slurm.conf", lambda: _rendered(world, "slurm", "slurm.conf.j2", SLURM, _nodes_of_slurm)
    yield "teardown", lambda: _playbooks(world, *DELETE)


def _playbooks(world: World, *names: str) -> tuple[float, float]:
    paths = [str(REPOSITORY / f"playbooks/{name}.yml") for name in names]
    _output, cpu, memory = _watched(world, "ansible-playbook", *paths)
    return cpu, memory


def _inventory(world: World) -> tuple[float, float]:
    output, cpu, memory = _watched(world, "ansible-inventory", "--list")
    _complete("the inventory", world, len(json.loads(output)["_meta"]["hostvars"]))
    return cpu, memory


def _rendered(
    world: World, role: str, template: str, variables: dict[str, Any], nodes: Callable[[str], int]
) -> tuple[float, float]:
    """A role's template for all nodes of the inventory, by the role's own defaults and variables."""
    folder, target = REPOSITORY / "roles" / role, world.folder / template
    lookup = f"{{{{ lookup('ansible.builtin.template', '{folder}/templates/{template}') }}}}"
    write = {"content": lookup, "dest": str(target), "mode": "0600"}
    play = {
        "name": f"Render {template}",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars_files": [str(folder / "defaults/main.yml"), str(folder / "vars/main.yml")],
        "vars": variables,
        "tasks": [{"name": "Write it", "ansible.builtin.copy": write, "diff": False}],
    }
    playbook = world.folder / "render.yml"
    playbook.write_text(json.dumps([play]), encoding="utf-8")
    _output, cpu, memory = _watched(world, "ansible-playbook", str(playbook))
    _complete(template, world, nodes(target.read_text(encoding="utf-8")))
    return cpu, memory


def _entries(text: str) -> int:
    return sum(line[:1].isdigit() for line in text.splitlines())


def _nodes_of_slurm(text: str) -> int:
    return sum(len(expand(names)) for names in re.findall(r"^NodeName=(\S+)", text, re.MULTILINE))


def _complete(what: str, world: World, found: int) -> None:
    wanted = world.variables["trainium_node_count"]
    if found != wanted:
        raise BrokenError(f"{what} has {found} nodes in place of {wanted}")


def _watched(world: World, command: str, *arguments: str) -> tuple[str, float, float]:
    """What a command writes, its seconds of processor time with all that it starts, and MiB of the largest process."""
    given = [str(COMMANDS / command), *world.given(ansible_python_interpreter=sys.executable), *arguments]
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as used:
        done = subprocess.run(
            [sys.executable, "-c", WATCH, used.name, *given],
            cwd=world.folder,
            env=world.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        code, cpu, memory = json.load(used)
    if code:
        raise BrokenError(f"{command} failed: {' '.join((done.stdout + done.stderr).split())[-1500:]}")
    return done.stdout, cpu, memory
