"""Time of make demo from a clean clone, with empty caches and with full ones, against pip for its longest part.

    python -m tests.benchmarks.demo [--setup] [--nodes 2]

It clones what is committed into a temporary folder, with a cache folder of its own, and does there what make demo
does, step by step: the environment, the sandbox, site.yml; then all of it again in a second clone, which finds what the
first has put into the caches. Before them, the peer: pip installs the same requirements into an environment of its own,
without a cache. --setup ends with the environments, so that nothing is started. Exit status 1 if a step fails.

The first two steps do not depend on the number of nodes. CPU time is that of the steps' processes, not of the hosts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from sandbox.account import environment as account

REPOSITORY = Path(__file__).resolve().parents[2]
GOALS = {"empty": 240, "full": 90}


class Cost(NamedTuple):
    """What a step took, in seconds."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:8.1f} {self.cpu:8.1f}"


def total(costs: list[Cost]) -> Cost:
    return Cost(sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs))


def timed(command: list[str], folder: Path, environment: dict[str, str]) -> Cost:
    """Run a command to its end, its output in a log; the benchmark ends where it fails."""
    log = folder / "benchmark.log"
    started = time.perf_counter()
    with log.open("ab") as stream:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=stream)
        _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise SystemExit(f"'{' '.join(command)}' ended with status {process.returncode}:\n{last}")
    return Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime)


def environment(cache: Path) -> dict[str, str]:
    """The caller's environment without its account and its Python environment, and with other caches."""
    kept = {name: value for name, value in account.inside(os.environ).items() if not name.startswith("TRAINIUM_")}
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "UV_CACHE_DIR", "PIP_CACHE_DIR"):
        kept.pop(name, None)
    return {**kept, "XDG_CACHE_HOME": str(cache)}


def clone(folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(folder)], check=True)
    return folder


def by_pip(folder: Path) -> Cost:
    """The peer: a new environment, and the requirements that the demo's lock file was made of."""
    checkout = clone(folder)
    settings = environment(folder / "cache")
    python = str(checkout / "peer" / "bin" / "python")
    made = timed([sys.executable, "-m", "venv", "peer"], checkout, settings)
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--requirement", "requirements-sandbox.txt"]
    return total([made, timed(install, checkout, settings)])


def steps(folder: Path, cache: Path, only_setup: bool, nodes: int) -> dict[str, Cost]:
    """What make demo does, in a clone; nothing of it is left running."""
    checkout = clone(folder)
    settings = environment(cache)
    python = str(checkout / ".venv" / "bin" / "python")
    make = ["make", "setup-sandbox", f"PYTHON={sys.executable}"]
    costs = {"setup": timed(make, checkout, settings)}
    if only_setup:
        return costs
    playbook = [python, "-m", "sandbox", "run", str(checkout / ".venv" / "bin" / "ansible-playbook")]
    try:
        costs["sandbox up"] = timed([python, "-m", "sandbox", "up"], checkout, settings)
        site = [*playbook, "playbooks/site.yml", "-e", f"trainium_node_count={nodes}"]
        costs["site.yml"] = timed(site, checkout, settings)
    finally:
        subprocess.run([python, "-m", "sandbox", "purge"], cwd=checkout, env=settings, check=False)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--setup", action="store_true", help="the environments only; no host is started")
    parser.add_argument("--nodes", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        peer = by_pip(place / "peer")
        print(f"{'caches':8} {'step':12} {'wall s':>8} {'CPU s':>8}\n{'none':8} {'pip':12} {peer}", flush=True)
        for caches, goal in GOALS.items():
            costs = steps(place / caches, place / "cache", arguments.setup, arguments.nodes)
            for step, cost in costs.items():
                print(f"{caches:8} {step:12} {cost}")
            if not arguments.setup:
                print(f"{caches:8} {'make demo':12} {total(list(costs.values()))}   goal {goal} s", flush=True)
            ratios = (costs["setup"].wall / peer.wall, costs["setup"].cpu / peer.cpu)
            print(f"{caches:8} {'setup / pip':12} {ratios[0]:8.2f} {ratios[1]:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
