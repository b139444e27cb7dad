"""Time of playbooks/nodes.yml on four hosts, first and second run, against a plain bash script, in the same run.

    python -m tests.benchmarks.nodes [nodes]

It makes two clusters in the sandbox, configures one with nodes.sh, which does the same steps over ssh on all nodes at
once, and the other with the playbook, and prints both times and their ratio, beside them the processor time on this
machine, without what its hosts use. Everything is deleted at the end. Exit status 1 if one of them fails, or if the
second run of the playbook changes something.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.sandbox_driver import Sandbox, answers_ssh

HERE = Path(__file__).resolve().parent
CLUSTERS = {"benchmark-bash": "10.161.0.0/16", "benchmark-roles": "10.162.0.0/16"}


def variables(name: str, nodes: int) -> list[str]:
    """The variables of a cluster, as arguments of ansible-playbook."""
    values = {"trainium_cluster_name": name, "trainium_node_count": nodes, "trainium_vpc_cidr": CLUSTERS[name]}
    return ["-e", json.dumps(values)]


def addresses(sandbox: Sandbox, name: str) -> list[str]:
    """The primary addresses of a cluster's nodes, in the order of their launch."""
    mine = [
        instance
        for instance in sandbox.instances("running")
        if {"Key": "trainium:cluster", "Value": name} in instance["Tags"]
    ]
    return [instance["PrivateIpAddress"] for instance in sorted(mine, key=lambda one: one["AmiLaunchIndex"])]


def wait_for_ssh(address: str, seconds: float = 60) -> None:
    """Wait until a node's sshd answers."""
    until = time.monotonic() + seconds
    while not answers_ssh(address):
        if time.monotonic() > until:
            sys.exit(f"{address} does not answer over ssh.")
        time.sleep(0.1)


def settle() -> None:
    """Begin without what the other side has left in memory: gigabytes that wait for the disk, or that must be given up
    for each page of ours."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


class Took(NamedTuple):
    """Seconds on the clock, and of processors by the processes that this one has started."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s (CPU {self.cpu:.1f} s)"


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def succeed(sandbox: Sandbox, playbook: str, *arguments: str) -> tuple[Took, int]:
    """Run a playbook; what it took and the number of changed tasks."""
    before = cpu_of_children()
    run = sandbox.playbook(playbook, *arguments)
    if run.returncode:
        sys.exit(f"{playbook}.yml failed; its output is above.")
    return Took(run.seconds, cpu_of_children() - before), sum(run.changed.values())


def run_script(sandbox: Sandbox, name: str) -> Took:
    """Configure a cluster with the bash script."""
    inventory = Path(sandbox.environment["ANSIBLE_INVENTORY"])
    settings = yaml.safe_load((inventory / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    requirements = [
        "torch-neuronx==2.9.0.2.13.26312",
        "neuronx-cc==2.24.8799.0",
        *settings["neuron_venv_packages"],
    ]
    command = [
        str(HERE / "nodes.sh"),
        settings["ansible_ssh_private_key_file"],
        settings["efa_installer_url"].removesuffix("/standins/efa"),
        settings["efa_key_fingerprint"],
        settings["neuron_key_fingerprint"],
        " ".join(requirements),
        *addresses(sandbox, name),
    ]
    settle()
    started, before = time.monotonic(), cpu_of_children()
    subprocess.run(command, check=True)
    return Took(time.monotonic() - started, cpu_of_children() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", nargs="?", type=int, default=4)
    nodes = parser.parse_args().nodes
    sandbox = Sandbox()
    try:
        for name in CLUSTERS:
            for playbook in ("network", "compute"):
                succeed(sandbox, playbook, *variables(name, nodes))
            for address in addresses(sandbox, name):
                wait_for_ssh(address)
        script = run_script(sandbox, "benchmark-bash")
        settle()
        first, _changed = succeed(sandbox, "nodes", *variables("benchmark-roles", nodes))
        second, changed = succeed(sandbox, "nodes", *variables("benchmark-roles", nodes))
        result = [
            f"{nodes} nodes   bash {script}   roles {first}   ratio {first.wall / script.wall:.2f}",
            f"second run   roles {second}   changed {changed}",
        ]
        print(*result, sep="\n")
    finally:
        for name in CLUSTERS:
            succeed(sandbox, "teardown", *variables(name, nodes))
    # Again, where a reader looks for it.
    print(*result, sep="\n")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
