# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a program without a shell and with a time limit: a tool may hang on hardware that is broken.

By asyncio, which of the standard library's ways reads both outputs, keeps the time and need not wait for what cannot be
killed. A program runs in a session of its own, and all of it is killed when its time is over or we are interrupted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, cast


class Reply(NamedTuple):
    """What a program answered. ``found`` is false where there is no such program, ``ended`` where it hung."""

    found: bool
    ended: bool
    code: int
    out: str
    err: str


ABSENT = Reply(False, True, 127, "", "")
# Seconds that a killed program gets to be gone. What hangs in the kernel cannot be killed, and is not waited for.
_KILLED_SECONDS = 1.0


def find(program: str, folders: Iterable[str] = ()) -> str | None:
    """The program's path: in the folders first, then on PATH and where root's programs are."""
    search = os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return shutil.which(program, path=search)


def run(
    argv: Sequence[str],
    timeout: float,
    folders: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> Reply:
    """Run ``argv`` with untranslated output, in our own environment unless another is given.

    ``pass_fds``: open files that the program keeps open, such as a lock that is to last as long as it runs.
    """
    program = find(argv[0], folders)
    if program is None:
        return ABSENT
    wanted = {**(os.environ if environment is None else environment), "LC_ALL": "C", "LANGUAGE": "C"}
    try:
        return execute([program, *argv[1:]], timeout, wanted, pass_fds=pass_fds)
    except OSError as error:
        return Reply(True, True, 126, "", error.strerror or "cannot be run")


def execute(
    argv: Sequence[str],
    timeout: float,
    environment: Mapping[str, str],
    *,
    written: str | None = None,
    pass_fds: Sequence[int] = (),
) -> Reply:
    """Run ``argv`` in this environment, with ``written`` as its input. Raises OSError where it cannot be run."""
    return asyncio.run(_execute(argv, timeout, environment, written, pass_fds))


class _Listener(asyncio.SubprocessProtocol):
    """Keeps what a program says; ``ended`` is set when it has ended and nobody holds its outputs any more."""

    def __init__(self) -> None:
        self.said = {1: bytearray(), 2: bytearray()}
        self.ended = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.said[fd] += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def _execute(
    argv: Sequence[str],
    timeout: float,
    environment: Mapping[str, str],
    written: str | None,
    pass_fds: Sequence[int],
) -> Reply:
    transport, listener = await asyncio.get_running_loop().subprocess_exec(
        _Listener,
        *argv,
        stdin=subprocess.DEVNULL if written is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        pass_fds=pass_fds,
        start_new_session=True,
    )
    try:
        if written is not None:
            pipe = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
            pipe.write(written.encode())
            pipe.close()
        if not await _within(listener.ended, timeout):
            return Reply(True, False, 124, "", "")
        out, err = (bytes(listener.said[number]).decode("utf-8", "replace") for number in (1, 2))
        return Reply(True, True, cast(int, transport.get_returncode()), out, err)
    finally:
        if not listener.ended.is_set():
            with suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
            await _within(listener.ended, _KILLED_SECONDS)
        transport.close()


async def _within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
