"""A Python interpreter that has already imported what modules import: each run is forked from it.

Modules of Ansible start as processes, and most of their time is boto3's import and the reading of EC2's model. The
client below stands in for the interpreter (``ansible_python_interpreter``, or before ``-m MODULE``): it hands its
arguments, environment, folder and standard streams to a server, which forks. Of the collection nothing is imported
beforehand, so that a module's own code comes from where Ansible put it.
"""

from __future__ import annotations

import array
import atexit
import functools
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PRELOADED = (
    *("ansible.module_utils.basic", "ansible.module_utils._internal._ansiballz._loader", "ansible.module_utils.urls"),
    *("ansible.module_utils.common.dict_transformations", "ansible.module_utils.common.respawn"),
    *("boto3", "botocore.session", "botocore.paginate", "botocore.waiter", "botocore.retries.standard", "yaml"),
)
# What the pcluster command and library consist of.
PCLUSTER = ("pcluster.lib.lib", "pcluster.cli.entrypoint")
# The emulator of the API, whose start is mostly that of moto.
EMULATOR = ("warm_emulator",)
SERVICES = (
    *("ec2", "sts", "iam", "s3", "fsx", "efs", "eks", "cloudformation", "logs", "resource-groups"),
    *("dynamodb", "ssm"),
)
# -S: site-packages are not needed for this, and cost most of its start.
CLIENT = """#!{python} -ES
import array, json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({path!r})
asked = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), os.umask(0o22)]).encode()
link.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
link.sendall(asked)
answer = link.recv(16)
sys.exit(int(answer) if answer else 1)
"""


def _models_in_memory() -> None:
    """botocore reads each model once, before the first fork."""
    loaders = importlib.import_module("botocore.loaders")
    loaders.JSONFileLoader.load_file = _read_once(loaders.JSONFileLoader.load_file)
    session = importlib.import_module("botocore.session").Session()
    for service in SERVICES:
        session.get_service_model(service)
        for kind in ("paginators-1", "waiters-2", "endpoint-rule-set-1"):
            try:
                session.get_component("data_loader").load_service_model(service, kind)
            except importlib.import_module("botocore.exceptions").UnknownServiceError:
                continue
    for name in ("endpoints", "partitions", "sdk-default-configuration", "_retry"):
        session.get_component("data_loader").load_data(name)


def _read_once(method: Any) -> Any:
    """The method with a memory: the answer depends on the path alone, not on the loader that asks."""
    answers: dict[str, Any] = {}

    def load_file(self: Any, path: str) -> Any:
        if path not in answers:
            answers[path] = method(self, path)
        return answers[path]

    return load_file


def _execute(text: str, arguments: list[str]) -> None:
    program = types.ModuleType("__main__")
    sys.argv, sys.modules["__main__"] = arguments, program
    exec(compile(text, "<string>", "exec"), program.__dict__)  # noqa: S102


def _run(arguments: Sequence[str]) -> int:
    """What an interpreter does with ``FILE ...``, ``-m MODULE ...``, ``-c TEXT ...`` or nothing; the exit code."""
    words = list(arguments)
    # Options that only say how a module's own interpreter starts.
    while words and words[0] in ("-I", "-S", "-E", "-s", "-u"):
        words.pop(0)
    try:
        if not words or words[0] == "-":
            # Ansible's pipelining.
            _execute(sys.stdin.read(), ["-"])
        elif words[0] == "-c":
            _execute(words[1], ["-c", *words[2:]])
        elif words[0] == "-m":
            sys.argv = ["-m", *words[2:]]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _child(asked: Sequence[Any], streams: Sequence[int]) -> None:
    """Become the process that was asked for; never returns."""
    arguments, environment, folder, mask = asked
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        os.umask(mask)
        random.seed()
        code = _run(arguments)
        # In the order in which an interpreter ends: threads first.
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code & 0xFF)


def _received(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            os._exit(1)
        data += part
    return data


def _attend(link: socket.socket) -> None:
    """One client: start what it asks for, tell how that ended, end it when the client dies; never returns."""
    try:
        size, control, _flags, _address = link.recvmsg(8, socket.CMSG_SPACE(3 * 4))
        streams = array.array("i")
        streams.frombytes(control[0][2][: 3 * 4])
        asked = json.loads(_received(link, int.from_bytes(size, "big")))
        child = os.fork()
        if child == 0:
            link.close()
            os.setsid()
            _child(asked, list(streams))
        for stream in streams:
            os.close(stream)
        ended = os.pidfd_open(child)
        ready, _writable, _failed = select.select([ended, link.fileno()], [], [])
        if ended not in ready:
            # The client was killed, and so is what it stood for.
            os.killpg(child, signal.SIGKILL)
        _pid, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if ended in ready:
            link.sendall(str(code if code >= 0 else 128 - code).encode())
    finally:
        os._exit(0)


def serve(path: str, more: Sequence[str]) -> None:
    """Preload, then fork for each client until the process that started this one is gone."""
    parent = os.getppid()
    for name in (*PRELOADED, *more):
        importlib.import_module(name)
    _models_in_memory()
    # Collections of garbage in the children neither look through all this nor copy it.
    gc.freeze()
    # Nobody waits for those who attend.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        listener.settimeout(1)
        while os.getppid() == parent:
            try:
                link, _address = listener.accept()
            except TimeoutError:
                continue
            link.setblocking(True)
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _attend(link)
            link.close()


@functools.cache
def warm_python(*more: str) -> str:
    """The path of an interpreter that starts at once; its server ends with this process. ``more`` is imported too."""
    folder = Path(tempfile.mkdtemp(prefix="warm-python-"))
    path = folder / "socket"
    log = folder / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "serve", str(path), *more],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    client = folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)))
    client.chmod(0o755)
    atexit.register(server.terminate)
    until = time.monotonic() + 300
    while not path.exists():
        assert server.poll() is None, f"the warm interpreter did not start: {log.read_text()}"
        assert time.monotonic() < until, "the warm interpreter does not listen"
        time.sleep(0.02)
    return str(client)


def main() -> None:
    """``serve SOCKET MODULE...``, or ``run COMMAND...`` with such an interpreter's path in TRAINIUM_WARM_PYTHON."""
    command, *arguments = sys.argv[1:]
    if command == "serve":
        serve(arguments[0], arguments[1:])
    else:
        os.environ["TRAINIUM_WARM_PYTHON"] = warm_python()
        sys.exit(subprocess.run(arguments, check=False).returncode)


if __name__ == "__main__":
    main()
