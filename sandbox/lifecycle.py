"""Up, down and status of the sandbox as a whole."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sandbox import image, machine, settings, standins
from sandbox.account import api, token
from sandbox.errors import SandboxError
from sandbox.kubernetes import nodes, registry
from sandbox.mirror import apt, wheels
from sandbox.network import fence, forward
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import Podman
from sandbox.standins import wheels as standin_wheels

ADDRESS = ["--host", api.HOST, "--port", str(api.PORT)]
# Process -> its command line after the interpreter. Head nodes are hosts here, and signal by themselves.
SERVICES = {
    "emulator": ["-m", "sandbox.emulator", *ADDRESS, "--pending", "1", "--waiting", "signal"],
    "reconciler": ["-m", "sandbox.reconciler"],
}


@contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    """Two commands on one sandbox wait for each other."""
    paths.make()
    with (paths.root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _pid(paths: Paths, service: str) -> int | None:
    """The process id of a service that runs, else None. A number that now belongs to another program is not it."""
    try:
        pid = int((paths.run / f"{service}.pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return None
    return pid if f"sandbox.{service}" in command else None


def _start(paths: Paths, service: str) -> subprocess.Popen[bytes]:
    """Start a service in a session of its own, its output in the logs folder."""
    # What hosts are told to call must be an address that they reach.
    public = f"http://{forward.NAME}:{api.PORT}"
    own = {"TRAINIUM_SANDBOX_DIR": str(paths.root), "PYTHONUNBUFFERED": "1", "EMULATOR_PUBLIC_URL": public}
    environment = {**os.environ, **own}
    with (paths.logs / f"{service}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *SERVICES[service]],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (paths.run / f"{service}.pid").write_text(f"{process.pid}\n")
    return process


def _wait_for_emulator(paths: Paths, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    # The process itself is asked: a program that has only just begun still shows an empty command line in /proc.
    until = time.monotonic() + seconds
    while not api.healthy():
        if process.poll() is not None or time.monotonic() > until:
            log = paths.logs / "emulator.log"
            last = (log.read_text(encoding="utf-8").strip().splitlines() or ["nothing logged"])[-1]
            raise SandboxError(f"The AWS API emulator did not start ({last}): see {log}.")
        time.sleep(0.1)


def _make(paths: Paths, podman: Podman) -> None:
    """What the hosts are made of: their image, and at the same time the mirror's wheels, which come from elsewhere."""

    def hosts() -> None:
        image.build(paths, podman)
        apt.make_apt_repository(paths)

    def mirror() -> None:
        standins.make(paths)
        wheels.make_pip_index(paths, standin_wheels.digest(), standin_wheels.make)

    with ThreadPoolExecutor(2) as pool:
        for made in [pool.submit(hosts), pool.submit(mirror)]:
            made.result()


def up(paths: Paths) -> str:
    """Start what does not run yet and say what was done."""
    machine.check()
    machine.become_root()
    paths.mark()
    with _locked(paths):
        podman = Podman(paths)
        machine.install_packages()
        podman.configure()
        _make(paths, podman)
        settings.write(paths)
        started = [service for service in SERVICES if _pid(paths, service) is None]
        if "emulator" in started and api.taken():
            raise SandboxError(
                f"Another program answers at {api.endpoint()}: stop it ('python -m sandbox down' in its checkout)."
            )
        if "emulator" in started:
            token.renew(paths.token)
        for service in started:
            process = _start(paths, service)
            if service == "emulator":
                _wait_for_emulator(paths, process)
        users = (paths.ssh_key.parent, paths.inventory, paths.reports, paths.logs, paths.root / "lock", paths.token)
        machine.give_back(*users)
    return f"sandbox: up at {api.endpoint()}" if started else f"sandbox: already up at {api.endpoint()}"


def down(paths: Paths) -> str:
    """Stop everything: processes, hosts, networks and mounts. The cache and the reports stay.

    Raises:
        SandboxError: the folder is somebody else's.
    """
    machine.become_root()
    if not paths.root.exists():
        return "sandbox: was not up"
    if not paths.is_marked() and not paths.in_checkout:
        raise SandboxError(
            f"{paths.root} was not made by 'python -m sandbox up', so nothing in it is touched: correct "
            "TRAINIUM_SANDBOX_DIR."
        )
    with _locked(paths):
        for service in reversed(SERVICES):
            _stop(paths, service)
        if (paths.podman / "storage.conf").exists():
            podman = Podman(paths)
            names = list(podman.containers())
            if names:
                podman.remove(*names)
            for network in podman.networks():
                podman.run("network", "rm", "-f", network)
        fence.remove(paths.name)
        _unmount(paths)
        if paths.kubernetes.exists():
            nodes.forget_cgroups()
        registry.forget(paths.registry)
        for folder in (paths.hosts, paths.run, paths.filesystems, paths.kubernetes):
            shutil.rmtree(folder, ignore_errors=True)
        paths.token.unlink(missing_ok=True)
    return "sandbox: down"


def purge(paths: Paths) -> str:
    """Stop everything and delete the folder, with caches and reports.

    Raises:
        SandboxError: ``up`` has not marked the folder as its own, or something is mounted in it that does not go.
    """
    machine.become_root()
    if not paths.root.exists():
        return "sandbox: was not up"
    if not paths.is_marked():
        raise SandboxError(
            f"{paths.root} was not made by 'python -m sandbox up', so it is not deleted: correct TRAINIUM_SANDBOX_DIR, "
            "or delete it yourself."
        )
    down(paths)
    mounted = _mounts(paths)
    if mounted:
        raise SandboxError(f"{mounted[0]} is still mounted, so {paths.root} is not deleted: unmount it and try again.")
    shutil.rmtree(paths.root)
    return f"sandbox: down, and {paths.root} is deleted"


def _stop(paths: Paths, service: str, seconds: float = 15) -> None:
    pid = _pid(paths, service)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + seconds
    while _pid(paths, service) is not None and time.monotonic() < until:
        time.sleep(0.05)
    if _pid(paths, service) is not None:
        os.kill(pid, signal.SIGKILL)


def _unmount(paths: Paths) -> None:
    """Podman leaves its storage mounted onto itself."""
    for mount in _mounts(paths):
        subprocess.run(["umount", mount], check=False, capture_output=True)


def _mounts(paths: Paths) -> list[str]:
    """What is mounted in the folder, innermost first."""
    lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    # proc(5): space, tab, line break and backslash are written as octal numbers.
    mounts = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[1]) for line in lines]
    return sorted((m for m in mounts if Path(m).is_relative_to(paths.root)), reverse=True)


def _kubernetes(paths: Paths) -> list[str]:
    """How far the building of Kubernetes is; nothing before the first cluster."""
    file = paths.run / "kubernetes"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def status(paths: Paths) -> tuple[str, bool]:
    """A few lines for people, and whether all services run."""
    running = {service: _pid(paths, service) for service in SERVICES}
    lines = [f"{service:<11}{'running, pid ' + str(pid) if pid else 'stopped'}" for service, pid in running.items()]
    if running["emulator"]:
        hosts = [host for host in api.request("hosts") if host["state"] != "terminated"]
        lines.append(f"{'endpoint':<11}{api.endpoint()}")
        lines += [f"{'kubernetes':<11}{line}" for line in _kubernetes(paths)]
        lines.append(f"{'hosts':<11}{len(hosts)}")
        lines += [f"  {h['instance_id']}  {h['state']:<9} {h['private_ip']:<15} {h['instance_type']}" for h in hosts]
    return "\n".join(lines), all(running.values())
