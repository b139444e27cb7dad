"""torchrun whose processes are forked from one that has imported PyTorch, which is most of what a short training takes.

``Launcher`` is for the tests: it starts this file in the environment with PyTorch, and asks it for processes over a
socket. Options, agent, rendezvous and messages are torchrun's own; its workers are forked from it, and run the script's
file as a program. What the command does otherwise: its workers end as interpreters do, they outlive a torchrun that is
killed alone, and variables that Python, OpenMP or PyTorch read when they start have an effect.

The fork server of modules (tests/contract/warm_python.py) passes on no signal but SIGKILL, and signals are what these
tests are about.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

PR_SET_PDEATHSIG = 1
# For which torchrun has handlers, which a worker that is forked from it would have as well.
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Launched:
    """A process of the launcher's, as subprocess.Popen has them."""

    def __init__(self, launcher: Launcher, pid: int, stdout: TextIO) -> None:
        self._launcher, self.pid, self.stdout = launcher, pid, stdout

    @property
    def returncode(self) -> int | None:
        return self._launcher.ended.get(self.pid)

    def poll(self) -> int | None:
        self._launcher.hear(0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        while self.returncode is None:
            if not self._launcher.hear(timeout):
                raise subprocess.TimeoutExpired("torchrun", timeout)
        return self.returncode


class Launcher:
    """The process that has imported PyTorch; it ends with this one."""

    def __init__(self, python: Path, environment: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ended: dict[int, int] = {}
        self._process = subprocess.Popen([str(python), __file__], stdin=theirs.fileno(), env=environment)
        theirs.close()

    def start(self, arguments: Sequence[str], environment: dict[str, str], largest_file: int) -> Launched:
        """``torchrun ARGUMENTS``, whose output is a pipe."""
        output, theirs = os.pipe()
        asked = {"arguments": list(arguments), "environment": environment, "largest_file": largest_file}
        socket.send_fds(self._socket, [json.dumps(asked).encode()], [theirs])
        os.close(theirs)
        # It answers as soon as PyTorch is imported; meanwhile others may end.
        pid = None
        while pid is None:
            said = self.hear(120)
            if not said:
                raise TimeoutError("the launcher of torchrun does not answer")
            pid = said.get("started")
        return Launched(self, pid, os.fdopen(output, encoding="utf-8"))

    def hear(self, timeout: float) -> dict[str, Any]:
        """One message of the launcher, empty after so many seconds without one."""
        if not select.select([self._socket], [], [], timeout)[0]:
            return {}
        said: dict[str, Any] = json.loads(self._socket.recv(1 << 12) or b"null") or {}
        if not said:
            raise ConnectionError("the launcher of torchrun has ended")
        if "ended" in said:
            self.ended[said["ended"]] = said["code"]
        return said

    def close(self) -> None:
        self._socket.close()
        try:
            self._process.wait(timeout=60)
        finally:
            self._process.kill()


def _script(path: str, *arguments: str) -> None:
    """A worker: the script as a program, and nothing of the agent's handlers."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    runpy.run_path(path, run_name="__main__")


def _become(asked: dict[str, Any], output: int, launcher: int) -> None:
    """The process of one torchrun; never returns."""
    from torch.distributed.elastic.multiprocessing.errors import record
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    @record
    def torchrun() -> None:
        """What the command does, but for ``fork``."""
        config, _command, arguments = config_from_args(parse_args(asked["arguments"]))
        config.start_method = "fork"
        # Behind -u, by which the command starts an interpreter.
        elastic_launch(config=config, entrypoint=_script)(*arguments[arguments.index("-u") + 1 :])

    code = 1
    try:
        # Its workers are in its group, and it goes with the launcher, however that ends.
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(asked["environment"])
        if asked["largest_file"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["largest_file"],) * 2)
        torchrun()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Fork for each request on standard input, until its other end is closed; then all that is left is killed."""
    # Here and not above, since the tests' own environment has no PyTorch.
    for name in ("torch.distributed.run", "torch.distributed.launcher.api"):
        importlib.import_module(name)
    link = socket.socket(fileno=os.dup(0))
    # As with -u, for all that are forked.
    for number, name in ((1, "stdout"), (2, "stderr")):
        setattr(sys, name, open(number, "w", encoding="utf-8", buffering=1, closefd=False))  # noqa: SIM115
        getattr(sys, name).reconfigure(write_through=True)
    started: list[int] = []
    try:
        _serve(link, started)
    finally:
        # Also where one has ended and its workers have not: it is a zombie, so that its number means no other group.
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def _serve(link: socket.socket, started: list[int]) -> None:
    launcher, running = os.getpid(), dict[int, int]()
    while True:
        watched: list[Any] = [link, *running]
        ready = select.select(watched, [], [])[0]
        for process in [one for one in ready if one in running]:
            # It stays a zombie, so that no other process gets its number while a test may send it a signal.
            ended = os.waitid(os.P_PID, running[process], os.WEXITED | os.WNOWAIT)
            assert ended
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            link.sendall(json.dumps({"ended": running.pop(process), "code": code}).encode())
            os.close(process)
        if link in ready:
            text, outputs, _flags, _address = socket.recv_fds(link, 1 << 18, 1)
            if not text:
                return
            pid = os.fork()
            if pid == 0:
                link.close()
                _become(json.loads(text), outputs[0], launcher)
            os.close(outputs[0])
            started.append(pid)
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            running[os.pidfd_open(pid)] = pid
            link.sendall(json.dumps({"started": pid}).encode())


if __name__ == "__main__":
    main()
