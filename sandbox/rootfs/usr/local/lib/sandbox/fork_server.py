"""A Python interpreter that has already imported what modules import: each run is forked from it.

Modules of Ansible start as processes, and most of their time is that of imports. A client (fork_client.py) stands in
for the interpreter (``ansible_python_interpreter``, or before ``-m MODULE``): it hands its arguments, environment,
folder, limits and standard streams to a server, which forks a process of the client's user. Of a collection nothing is
imported beforehand, so that a module's own code comes from where Ansible put it.

On a host of the sandbox systemd starts it, with the socket, when the first client comes.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import hashlib
import importlib
import io
import marshal
import os
import random
import re
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import types
import zipimport
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

PRELOADED = (
    *("ansible.module_utils.basic", "ansible.module_utils._internal._ansiballz._loader", "ansible.module_utils.urls"),
    *("ansible.module_utils.common.dict_transformations", "ansible.module_utils.common.respawn"),
)
# Those that modules for packages, services and files import beside these.
ON_HOSTS = (
    *("ansible.module_utils.facts.system.chroot", "ansible.module_utils.service", "concurrent.futures", "dataclasses"),
    *("grp", "tempfile"),
)

# As /proc names them.
LIMITS = {
    "Max cpu time": resource.RLIMIT_CPU,
    "Max file size": resource.RLIMIT_FSIZE,
    "Max data size": resource.RLIMIT_DATA,
    "Max stack size": resource.RLIMIT_STACK,
    "Max core file size": resource.RLIMIT_CORE,
    "Max processes": resource.RLIMIT_NPROC,
    "Max open files": resource.RLIMIT_NOFILE,
    "Max locked memory": resource.RLIMIT_MEMLOCK,
    "Max address space": resource.RLIMIT_AS,
}
# What a client sends, in bytes, and how long it may take to, in seconds.
LARGEST, PATIENCE = 4 << 20, 30
# socket(7); the module socket has no name for it.
SO_PEERGROUPS = 59


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


def _become(client: int, user: int, group: int, groups: Sequence[int]) -> None:
    """The client's limits, priority, groups and user, as the kernel has them: nothing of it is the client's word."""
    with open(f"/proc/{client}/limits", encoding="ascii") as limits:
        for line in limits:
            name, *values = re.split(r"  +", line)
            theirs = tuple(resource.RLIM_INFINITY if one == "unlimited" else one for one in values[:2])
            if name in LIMITS and resource.getrlimit(LIMITS[name]) != tuple(map(int, theirs)):
                resource.setrlimit(LIMITS[name], (int(theirs[0]), int(theirs[1])))
    niceness = os.getpriority(os.PRIO_PROCESS, client)
    if niceness != os.nice(0):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    if user == os.geteuid() and group == os.getegid():
        return
    os.setgroups(list(groups))
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


def _open_streams() -> None:
    """The standard streams again: the server's know of a file what is not so of the client's pipe."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw = os.fdopen(number, "wb" if number else "rb", closefd=False)
        new = io.TextIOWrapper(raw, encoding=old.encoding, errors=old.errors, line_buffering=number == 2)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _child(asked: bytes, streams: Sequence[int], groups: Sequence[int], client: int, user: int, group: int) -> None:
    """Become the process that was asked for; never returns."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        _open_streams()
        mask, count, *words = asked.split(b"\0")
        arguments = [os.fsdecode(word) for word in words[: int(count)]]
        # A folder that its user may not enter, as after sudo, is the client's all the same.
        os.chdir(f"/proc/{client}/cwd")
        _become(client, user, group, groups)
        os.environ.clear()
        for variable in words[int(count) :]:
            name, _equals, value = variable.partition(b"=")
            os.environb[name] = value
        os.umask(int(mask))
        random.seed()
        # What was installed since the server started.
        importlib.invalidate_caches()
        code = _run(arguments)
        # In the order in which an interpreter ends: threads first.
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code & 0xFF)


class _Client:
    """One client of the server: it asks, a process is forked, and its end is told."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        link.setblocking(False)
        self.who: tuple[int, int, int] = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self.groups = array.array("I")
        self.groups.frombytes(link.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 1024))
        self.until = time.monotonic() + PATIENCE
        self.streams = array.array("i")
        self.size = 0
        self.asked = bytearray()
        self.process = 0
        self.ended = -1

    def hear(self) -> bool:
        """What the client sends; whether it has asked. Once it has, there is nothing to hear but that it is gone.

        Raises OSError where it sends what it should not.
        """
        if self.process:
            os.killpg(self.process, signal.SIGKILL)
            raise ConnectionError
        if not self.streams:
            size, control, _flags, _address = self.link.recvmsg(8, socket.CMSG_SPACE(3 * 4))
            if len(size) != 8 or not control:
                raise ConnectionError
            self.streams.frombytes(control[0][2][: 3 * 4])
            self.size = int.from_bytes(size, "big")
            return False
        part = self.link.recv(1 << 16)
        self.asked += part
        if not part or self.size > LARGEST or len(self.asked) > self.size:
            raise ConnectionError
        return len(self.asked) == self.size

    def start(self, others: Iterable[_Client], more: Iterable[Any]) -> None:
        """Fork. The process has nothing of other clients: a pipe ends when all who have it are gone."""
        try:
            self.process = os.fork()
        except OSError as error:
            raise ConnectionError from error
        if self.process == 0:
            try:
                for client in others:
                    client.link.close()
                    if client is not self:
                        client.close()
                for one in more:
                    one.close()
                os.setsid()
                _child(bytes(self.asked), list(self.streams), self.groups, *self.who)
            finally:
                os._exit(1)
        self.asked.clear()
        self._close_streams()
        self.ended = os.pidfd_open(self.process)

    def tell(self) -> None:
        """The process has ended."""
        _pid, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        # A client that is gone wants no answer.
        with contextlib.suppress(OSError):
            self.link.sendall(str(code if code >= 0 else 128 - code).encode())

    def _close_streams(self) -> None:
        for stream in self.streams:
            os.close(stream)
        self.streams = array.array("i")

    def close(self) -> None:
        self.link.close()
        self._close_streams()
        if self.ended >= 0:
            os.close(self.ended)
            self.ended = -1


def entry(folder: Path, text: bytes | str) -> Path:
    """Where that is kept which was made of a text."""
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    return folder / hashlib.sha256(data).hexdigest()


def keep(path: Path, content: bytes) -> None:
    """Write an entry; where the folder is another user's or has no room, it is made again the next time."""
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="part-", delete=False) as part:
            part.write(content)
        os.chmod(part.name, 0o644)
        os.replace(part.name, path)


def compiled(folder: Path, path: str, source: bytes | str, make: Callable[[], Any]) -> Any:
    """The code of a file, as ``make`` compiles it, once for each text of source.

    Only who owns the folder can add to it; whoever reads it trusts the server as it is.
    """
    kept = entry(folder, source)
    try:
        code = marshal.loads(kept.read_bytes())  # noqa: S302
    except OSError:
        code = make()
        keep(kept, marshal.dumps(code))
    # It lay elsewhere.
    zip_files: Any = zipimport
    zip_files._imp._fix_co_filename(code, path)
    return code


def compile_once(folder: Path) -> None:
    """What is imported from a zip file, as Ansible packs modules, is compiled once for each text of source."""
    zip_files: Any = zipimport
    compile_source = zip_files._compile_source

    def from_folder(path: str, source: bytes) -> Any:
        return compiled(folder, path, source, lambda: compile_source(path, source))

    zip_files._compile_source = from_folder


def preload(modules: Iterable[str]) -> None:
    """Import them all."""
    for name in modules:
        importlib.import_module(name)


class _Server:
    """All clients of a socket, in one loop: a process more for each would be copied, and go, as often."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.links: dict[int, _Client] = {}
        self.processes: dict[int, _Client] = {}
        self.poll = select.epoll()
        listener.setblocking(False)
        self.poll.register(listener, select.EPOLLIN)

    def turn(self) -> None:
        """Attend to whoever has something to say, for a second at most."""
        for number, _event in self.poll.poll(1):
            if number == self.listener.fileno():
                self._accept()
            elif number in self.processes:
                self._drop(self.processes[number])
            elif number in self.links:
                self._hear(self.links[number])
        now = time.monotonic()
        for client in [one for one in self.links.values() if not one.process and now > one.until]:
            self._drop(client)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            client = _Client(self.listener.accept()[0])
            self.links[client.link.fileno()] = client
            self.poll.register(client.link, select.EPOLLIN)

    def _hear(self, client: _Client) -> None:
        try:
            if not client.hear():
                return
            client.start(list(self.links.values()), (self.listener, self.poll))
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)
            return
        self.processes[client.ended] = client
        self.poll.register(client.ended, select.EPOLLIN)

    def _drop(self, client: _Client) -> None:
        """Forget a client; the process of one that is gone was killed."""
        if client.process:
            self.poll.unregister(client.ended)
            del self.processes[client.ended]
            client.tell()
        self.poll.unregister(client.link)
        del self.links[client.link.fileno()]
        client.close()


def serve(listener: socket.socket, goes_on: Callable[[], bool]) -> None:
    """Fork for each client, as long as ``goes_on`` says so, which is asked at least once a second."""
    # Collections of garbage in the children neither look through all this nor copy it.
    gc.freeze()
    server = _Server(listener)
    while goes_on():
        server.turn()


def main() -> None:
    """On a host: the socket comes from systemd, as its first descriptor after the standard streams."""
    # The sandbox's own folder is for the import of Ansible alone: what modules import from there is here by then.
    preload((*PRELOADED, *ON_HOSTS))
    compile_once(Path(os.environ["RUNTIME_DIRECTORY"]))
    sys.path.remove(os.path.dirname(os.path.realpath(__file__)))
    serve(socket.socket(fileno=3), lambda: True)


if __name__ == "__main__":
    main()
