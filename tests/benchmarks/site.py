"""What site.yml with nothing to do costs on this machine: time, CPU time and API calls, for 2, 16 and 64 nodes.

    python -m tests.benchmarks.site [--nodes 2 16 64] [--runs 2] [--actions]

It starts an emulator of the API and runs validate.yml, network.yml and compute.yml in one run of ansible-playbook, as
site.yml does, with nodes that only the API knows: the first time everything is made, later there is nothing to do. Of
both it prints wall time, CPU time of all that the run has started, the calls and those of them that write; at the end
the ratio of the most nodes to the fewest. What runs on the nodes is in nodes.py. Exit status 1 if a run fails, or one
with nothing to do changes something.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import re
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.contract.conftest import REPOSITORY, Api
from tests.contract.network.conftest import Controller

PLAYBOOKS = ("validate", "network", "compute")
# By which the calls of this program are told from those of the run.
OWN_PAGE = 999
CHANGED = re.compile(r"^localhost .*changed=(\d+)", re.MULTILINE)


class Cost(NamedTuple):
    """What one run took; seconds, calls of the API."""

    wall: float
    cpu: float
    calls: list[str]
    writes: list[str]


def cpu() -> float:
    """Seconds of CPU time of all processes that have ended here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def consoles(controller: Controller) -> Iterator[None]:
    """Nodes tell their host keys as soon as there are any, for as long as the block runs."""
    ended = threading.Event()
    told: set[str] = set()

    def tell() -> None:
        while not ended.wait(0.5):
            pages = controller.ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": OWN_PAGE})
            for reservation in (one for page in pages for one in page["Reservations"]):
                for identity in {one["InstanceId"] for one in reservation["Instances"]} - told:
                    controller.api.boots(identity)
                    told.add(identity)

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(controller: Controller, playbook: Path) -> tuple[Cost, int]:
    """The playbooks once; and the number of changed tasks."""
    controller.api.clear_calls()
    before, started = cpu(), time.monotonic()
    done = controller.run(playbook, "--inventory", str(REPOSITORY / "inventory" / "nodes.yml"), *arguments(controller))
    wall, used = time.monotonic() - started, cpu() - before
    if done.returncode:
        sys.exit(f"A run failed:\n{done.stdout}{done.stderr}")
    seen = [call for call in controller.api.calls() if call["parameters"].get("MaxResults") != str(OWN_PAGE)]
    cost = Cost(wall, used, [call["action"] for call in seen], [call["action"] for call in seen if call["write"]])
    return cost, sum(map(int, CHANGED.findall(done.stdout)))


def arguments(controller: Controller) -> list[str]:
    return ["--extra-vars", json.dumps(controller.variables)]


def measured(api: Api, nodes: int, runs: int) -> Iterator[Cost]:
    """A cluster of its own: the first run, and those with nothing to do, each as soon as it has ended."""
    with tempfile.TemporaryDirectory() as folder:
        controller = Controller(api, Path(folder))
        controller.variables.update(
            trainium_cluster_name=f"benchmark-{nodes}",
            trainium_node_count=nodes,
            trainium_public_ip="primary",
            trainium_report_dir=f"{folder}/report",
            network_address_service=f"{api.url}/sandbox-api/address",
            ansible_python_interpreter=sys.executable,
        )
        # As they start for users, not from a process that has imported everything already.
        controller.commands = Path(sys.executable).parent
        playbook = Path(folder) / "site.yml"
        steps = [{"name": name, "import_playbook": str(REPOSITORY / f"playbooks/{name}.yml")} for name in PLAYBOOKS]
        playbook.write_text(json.dumps(steps))
        for number in range(1, runs + 1):
            with consoles(controller) if number == 1 else contextlib.nullcontext():
                cost, changed = run(controller, playbook)
            if number > 1 and changed:
                sys.exit(f"Run {number} with {nodes} nodes had nothing to do and changed {changed}.")
            yield cost


def line(nodes: int, number: int, cost: Cost) -> str:
    return (
        f"{nodes:3d} nodes   run {number}   {cost.wall:6.1f} s   CPU {cost.cpu:6.1f} s   "
        f"{len(cost.calls):4d} calls   {len(cost.writes):3d} write"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", nargs="+", type=int, default=[2, 16, 64])
    parser.add_argument("--runs", type=int, default=2, help="of each; the first makes everything")
    parser.add_argument("--actions", action="store_true", help="show which calls the last run made")
    options = parser.parse_args()
    api = Api(0.3)
    last = {}
    try:
        for nodes in options.nodes:
            api.reset()
            for number, cost in enumerate(measured(api, nodes, options.runs), 1):
                print(line(nodes, number, cost), flush=True)
                last[nodes] = cost
            if options.actions:
                for action, count in collections.Counter(last[nodes].calls).most_common():
                    print(f"    {count:3d} {action}")
    finally:
        api.stop()
    if len(last) > 1:
        few, many = last[min(last)], last[max(last)]
        print(
            f"nothing to do, {max(last)} nodes to {min(last)}: time {many.wall / few.wall:.2f}, "
            f"CPU {many.cpu / few.cpu:.2f}, calls {len(many.calls) / len(few.calls):.2f}"
        )


if __name__ == "__main__":
    main()
