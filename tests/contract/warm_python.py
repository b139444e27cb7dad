"""Python interpreters that start at once, since they are forked: for modules, Ansible's commands and some programs.

``sandbox/rootfs/usr/local/lib/sandbox/fork_server.py`` has how that works; this is the server for the controller.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.util
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# A folder of the hosts' image.
CORE = Path(__file__).resolve().parents[2] / "sandbox/rootfs/usr/local/lib/sandbox"
sys.path.append(str(CORE))
fork_server = importlib.import_module("fork_server")

PRELOADED = (
    *fork_server.PRELOADED,
    *("boto3", "botocore.session", "botocore.paginate", "botocore.waiter", "botocore.retries.standard", "yaml"),
)
# What the pcluster command and library consist of.
PCLUSTER = ("pcluster.lib.lib", "pcluster.cli.entrypoint")
# What ansible-playbook and its like consist of, as far as that asks for no configuration.
CONTROLLER = ("warm_controller",)
# The emulator of the API, whose start is mostly that of moto.
EMULATOR = ("warm_emulator",)


def serve(path: str, compiled: str, parent: int, more: Sequence[str]) -> None:
    """Preload, then fork for each client until the process that started this one is gone, which may be so already."""
    fork_server.preload((*PRELOADED, *more))
    fork_server.compile_once(Path(compiled))
    memories = importlib.import_module("warm_memories")
    if CONTROLLER[0] in more:
        memories.for_controller(Path(compiled))
    else:
        # Ansible's commands make no clients, but for the inventory, which reads the one model that it needs.
        memories.for_clients()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        fork_server.serve(listener, lambda: os.getppid() == parent)


@functools.cache
def _compiled() -> str:
    """The folder of compiled modules, one for all servers of this process."""
    folder = tempfile.mkdtemp(prefix="warm-python-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def warm_python(*more: str) -> str:
    """The path of an interpreter that starts at once; its server ends with this process. ``more`` is imported too."""
    folder = Path(tempfile.mkdtemp(prefix="warm-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "socket"
    log = folder / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "serve", str(path), _compiled(), str(os.getpid()), *more],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    client = folder / "python"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} -ES {CORE}/fork_client.py {path} "$@"\n')
    client.chmod(0o755)
    atexit.register(server.terminate)
    until = time.monotonic() + 300
    while not path.exists():
        assert server.poll() is None, f"the warm interpreter did not start: {log.read_text()}"
        assert time.monotonic() < until, "the warm interpreter does not listen"
        time.sleep(0.02)
    return str(client)


@functools.cache
def warm_ansible() -> Path:
    """A folder of Ansible's commands whose processes are forked from one that has imported most of Ansible.

    No signal but SIGKILL reaches the forked process: a test that sends another takes the environment's own command.
    """
    python = Path(warm_python(*CONTROLLER))
    folder = python.parent / "bin"
    folder.mkdir()
    for name in ("ansible", "ansible-inventory", "ansible-playbook"):
        command = Path(sys.executable).with_name(name)
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} {shlex.quote(str(command))} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def main() -> None:
    """``serve SOCKET COMPILED PARENT MODULE...``; ``ansible COMMAND...`` with Ansible's commands in PATH, ``run
    COMMAND...`` also with TRAINIUM_WARM_PYTHON for modules and, where there is its library, TRAINIUM_WARM_PCLUSTER.
    """
    command, *arguments = sys.argv[1:]
    if command == "serve":
        serve(arguments[0], arguments[1], int(arguments[2]), arguments[3:])
    else:
        # What is to be done at the end is done then as well.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        if command == "run":
            os.environ["TRAINIUM_WARM_PYTHON"] = warm_python()
            if importlib.util.find_spec("pcluster"):
                os.environ["TRAINIUM_WARM_PCLUSTER"] = warm_python(*PCLUSTER)
        os.environ["PATH"] = f"{warm_ansible()}:{os.environ['PATH']}"
        sys.exit(subprocess.run(arguments, check=False).returncode)


if __name__ == "__main__":
    main()
