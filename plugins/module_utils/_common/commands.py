# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a program without a shell and with a time limit: a tool may hang on hardware that is broken."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple


class Reply(NamedTuple):
    """What a program answered. ``found`` is false where there is no such program, ``ended`` where it hung."""

    found: bool
    ended: bool
    code: int
    out: str
    err: str


ABSENT = Reply(False, True, 127, "", "")


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
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=wanted,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except OSError as error:
        return Reply(True, True, 126, "", error.strerror or "cannot be run")
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # Not waited for: what hangs in the kernel cannot be killed.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return Reply(True, False, 124, "", "")
    return Reply(True, True, process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
