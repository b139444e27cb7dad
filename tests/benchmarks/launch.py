"""Time and calls of a launch with an Elastic IP for each node: efa_instance against the tutorial's steps by awscli.

    python -m tests.benchmarks.launch [nodes ...] [--latency 0.1] [--pending 1] [--awscli 16]

It starts an emulator of its own that takes a while for each call and whose instances do not run at once, and launches
1, 16 and 64 nodes with eight EFA interfaces: by launch.sh, which does what the tutorial does with awscli, and by a play
with one task, efa_instance, twice; the second time nothing is to be done. More than 16 nodes are not launched by awscli
unless asked for: it makes five calls for each, one after the other. It prints what each took, the ratio, and how
efa_instance grows with the nodes. Exit status 1 if a node lacks its address or the second run changes something.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.contract.conftest import CREDENTIALS, REGION, REPOSITORY, Account, Api

AWS = REPOSITORY / ".sandbox" / "awscli-venv"
SCRIPT = Path(__file__).with_suffix(".sh")
TYPE = "trn1.32xlarge"
SIZES = (1, 16, 64)


class Cost(NamedTuple):
    """What one run took, in seconds, and the calls that it made by their name."""

    wall: float
    cpu: float
    calls: Counter[str]


def environment(url: str) -> dict[str, str]:
    """The emulator's account alone, for awscli and for Ansible."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRAINIUM_"))}
    return {
        **kept,
        **CREDENTIALS,
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "default",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": REGION,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def measure(api: Api, command: list[str]) -> tuple[Cost, str]:
    """Run a command once; what it took with all that it started, and what it printed."""
    api.clear_calls()
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment(api.url), stdout=output, cwd=REPOSITORY)
        _pid, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        sys.exit(f"{command[0]} ended with status {process.returncode}:\n{text}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, Counter(call["action"] for call in api.calls())), text


def playbook(account: Account, nodes: int, folder: Path) -> list[str]:
    """A play with efa_instance alone."""
    arguments = {**account.arguments(count=nodes, name=f"benchmark-{nodes}", public_ip="primary"), "region": REGION}
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [{"trainium.cluster.efa_instance": arguments}],
    }
    path = folder / f"{nodes}.json"
    path.write_text(json.dumps([play]), encoding="utf-8")
    return [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", str(path)]


def script(account: Account, nodes: int) -> list[str]:
    """The tutorial's steps."""
    return [str(SCRIPT), str(AWS / "bin" / "aws"), str(nodes), account.image, account.group, account.subnets[0]]


def check(account: Account, nodes: int, what: str) -> None:
    """Every node runs and has an address."""
    found = account.instances("running")
    bare = [node["InstanceId"] for node in found if not node.get("PublicIpAddress")]
    if len(found) != nodes or bare:
        sys.exit(f"{what}: {len(found)} of {nodes} nodes run, and {len(bare)} of them have no address.")


def rounds(api: Api, sides: Sequence[str], nodes: int, pace: dict[str, float], folder: Path) -> dict[str, Cost]:
    """Each side on an empty account."""
    costs: dict[str, Cost] = {}
    for name in sides:
        api.reset()
        api.control("POST", "latency", {"seconds": 0})
        account = Account(api)
        api.control("POST", "latency", pace)
        command = script(account, nodes) if name == "awscli" else playbook(account, nodes, folder)
        costs[name], _text = measure(api, command)
        check(account, nodes, name)
        if name == "efa_instance":
            costs["again"], text = measure(api, command)
            if "changed=0" not in text:
                sys.exit(f"The second run of efa_instance changed something:\n{text}")
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds that each call takes at least")
    parser.add_argument("--awscli", type=int, default=16, help="the most nodes that awscli launches too")
    parser.add_argument("--pending", type=float, default=1.0, help="seconds until an instance runs")
    arguments = parser.parse_args()
    subprocess.run(["make", "--silent", f"{(AWS / '.ready').relative_to(REPOSITORY)}"], cwd=REPOSITORY, check=True)
    api, found = Api(arguments.pending), {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for nodes in arguments.nodes:
                sides = ["awscli"] * (nodes <= arguments.awscli) + ["efa_instance"]
                found[nodes] = rounds(api, sides, nodes, {"seconds": arguments.latency}, Path(folder))
                show(nodes, found[nodes])
    finally:
        api.stop()
    small, large = min(found), max(found)
    if small != large:
        few, many = found[small]["efa_instance"], found[large]["efa_instance"]
        print(
            f"efa_instance, {large} nodes / {small}: wall {many.wall / few.wall:.2f}, CPU {many.cpu / few.cpu:.2f}, "
            f"calls {many.calls.total() / few.calls.total():.2f}"
        )


def show(nodes: int, costs: dict[str, Cost]) -> None:
    """What each took, and of awscli's which part."""
    print(f"{nodes} nodes  {'wall s':>8} {'CPU s':>8} {'calls':>6}")
    for name, cost in costs.items():
        print(f"  {name:14} {cost.wall:8.2f} {cost.cpu:8.2f} {cost.calls.total():6}")
    for name in ("efa_instance", "again") if "awscli" in costs else ():
        ours, theirs = costs[name], costs["awscli"]
        print(
            f"  {name + ' / awscli':22} wall {ours.wall / theirs.wall:.3f}, CPU {ours.cpu / theirs.cpu:.3f}, "
            f"calls {ours.calls.total() / theirs.calls.total():.3f}"
        )
    print(
        "  " + ", ".join(f"{name} {count}" for name, count in sorted(costs["efa_instance"].calls.items())), flush=True
    )


if __name__ == "__main__":
    main()
