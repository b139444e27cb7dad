"""Podman with its storage, networks and settings inside the sandbox's folder, apart from any other use of podman."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Any

from sandbox.errors import SandboxError
from sandbox.paths import Paths

IMAGE = "localhost/trainium-node"

STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{root}/graph"
runroot = "{root}/run"
"""

# crun cannot start on hosts with cgroup v1, runc can; nofile is below the lowest hard limit seen.
CONTAINERS = """\
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]
[network]
network_backend = "netavark"
network_config_dir = "{root}/networks"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "none"
"""


# The kernel ends the first process of a host so that asks it to power off, and by SIGHUP one that asks for a reboot
# (reboot(2), "Behavior inside PID namespaces").
OFF = 128 + signal.SIGINT


# One that has ended is "stopped" until podman has cleaned up after it.
ENDED = ("stopped", "exited")


def _state(row: dict[str, Any]) -> str:
    return "off" if row["State"] in ENDED and row["ExitCode"] == OFF else str(row["State"])


@dataclass
class Podman:
    """The podman command bound to one sandbox."""

    paths: Paths

    def configure(self) -> None:
        """Write the settings files."""
        root = self.paths.podman
        (root / "networks").mkdir(parents=True, exist_ok=True)
        (root / "storage.conf").write_text(STORAGE.format(root=root), encoding="utf-8")
        (root / "containers.conf").write_text(CONTAINERS.format(root=root), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        root = self.paths.podman
        return {
            "CONTAINERS_STORAGE_CONF": str(root / "storage.conf"),
            "CONTAINERS_CONF": str(root / "containers.conf"),
        }

    def run(self, *arguments: str, check: bool = True, stdin: str | None = None) -> str:
        """Run ``podman ARGUMENTS`` and return what it printed.

        Standard error goes to a file, never to a pipe: conmon keeps it open and a reader would wait for ever.

        Raises:
            SandboxError: the command failed and ``check`` is set.
        """
        log = self.paths.logs / "podman.log"
        with log.open("a+", encoding="utf-8") as errors:
            start = errors.tell()
            done = subprocess.run(
                ["podman", *arguments],
                env={**os.environ, **self.environment},
                input=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
            )
            if done.returncode and check:
                errors.seek(start)
                last = (errors.read().strip().splitlines() or ["no message"])[-1]
                raise SandboxError(f"'podman {' '.join(arguments[:2])}' failed: {last} (see {log}).")
        return done.stdout

    def image_exists(self, tag: str) -> bool:
        return bool(self.run("images", "-q", f"{IMAGE}:{tag}", check=False).strip())

    def containers(self) -> dict[str, str]:
        """Container name -> state (running, exited, ...) of this sandbox's containers.

        One that was shut down from within is "off"; one that was killed, or that starts anew, has exited.
        """
        rows = json.loads(self.run("ps", "-a", "--format", "json") or "[]")
        return {row["Names"][0]: _state(row) for row in rows if row["Names"][0].startswith(self.paths.name)}

    def networks(self) -> list[str]:
        """Names of this sandbox's networks."""
        names = self.run("network", "ls", "--format", "{{.Name}}").split()
        return [name for name in names if name.startswith(self.paths.name)]

    def subnet(self, network: str) -> str:
        """The addresses of a network."""
        return str(self._network(network)["subnets"][0]["subnet"])

    def bridge(self, network: str) -> str:
        """The name of the machine's bridge interface of a network."""
        return str(self._network(network)["network_interface"])

    def _network(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(self.run("network", "inspect", name))
        return found[0]

    def remove(self, *names: str) -> None:
        """Remove containers; twice, as the first try only marks one whose conmon was killed as stopped."""
        for attempt in (1, 2):
            self.run("rm", "-f", "-t", "0", *names, check=attempt == 2)
            left = self.containers()
            if not any(name in left for name in names):
                return
