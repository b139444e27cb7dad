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
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import expand

from tests.benchmarks.inventory import WATCH
from tests.contract.conftest import REPOSITORY
from tests.faults.judge import BrokenError, clean
from tests.faults.results import Book, Result
from tests.faults.world import COMMANDS, DELETE, LONGEST, MAKE, NAME, World

SIZES = (250, 500, 1000)
# How much larger the growth may be for twice as many further nodes: 2 is linear, 4 is quadratic.
MOST = 3.0
# No public address for each node, of which AWS gives few, and no private one for each interface, of which a subnet has
# four thousand.
CLUSTER = {
    "trainium_public_ip": "none",
    "trainium_private_access": True,
    "trainium_interface_layout": "efa-only",
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
    calls: float


def measure(book: Book, numbers: Sequence[int], until: float, say: Callable[[str], None]) -> None:
    """Clusters of so many nodes, one after the other, and how their costs grow; those that the book has are done."""
    found = {int(one.seed): {step: Cost(*cost) for step, cost in one.costs.items()} for one in book.results}
    for nodes in sorted(set(numbers) - set(found)):
        if time.monotonic() > until:
            return
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            world = World("ec2", Path(folder), nodes)
            world.variables.update(CLUSTER)
            try:
                found[nodes] = measured(world, say)
                broken = "; ".join(uneven(found, nodes))
            except BrokenError as error:
                broken = str(error)
            except Exception:
                # A mistake of this program's: the other campaigns go on.
                broken = traceback.format_exc(limit=-3)
            finally:
                world.close()
        say(f"sizes, {nodes} nodes: {broken or 'all held'}")
        costs = {step: list(cost) for step, cost in found.get(nodes, {}).items()}
        book.add(Result(book.campaign, str(nodes), 0, broken, costs))


def measured(world: World, say: Callable[[str], None]) -> dict[str, Cost]:
    """The steps of a cluster of one size, in their order. Raises BrokenError."""
    nodes, found = world.variables["trainium_node_count"], {}
    world.empty()
    for name, step in _steps(world):
        world.api.clear_calls()
        started = time.monotonic()
        cpu, memory = step()
        wall, calls = time.monotonic() - started, len(world.api.calls())
        found[name] = Cost(wall, cpu, memory, calls)
        say(f"{nodes} nodes, {name}: {wall:.0f} s, CPU {cpu:.1f} s, {memory:.0f} MiB, {calls} calls")
    clean(world, 60)
    return found


def uneven(costs: dict[int, dict[str, Cost]], many: int) -> Iterator[str]:
    """What grew faster than the number of nodes, from a quarter of so many to half, and from there on.

    What each run costs whatever its size is in neither growth.
    """
    half, quarter = costs.get(many // 2), costs.get(many // 4)
    if not half or not quarter:
        return
    for step, cost in costs[many].items():
        for what, field, room in (
            ("CPU time", "cpu", 2.0),
            ("memory", "memory", 10.0),
            ("number of calls", "calls", 2),
        ):
            first, second, last = (getattr(one, field) for one in (quarter[step], half[step], cost))
            if last - second > MOST * max(second - first, 0) + room:
                sizes = f"{many // 4}, {many // 2} and {many} nodes"
                yield f"the {what} of {step} with {sizes}: {first:.0f}, {second:.0f}, {last:.0f}"


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
            timeout=LONGEST,
        )
        code, cpu, memory = json.load(used)
    if code:
        raise BrokenError(f"{command} failed: {' '.join((done.stdout + done.stderr).split())[-1500:]}")
    return done.stdout, cpu, memory
