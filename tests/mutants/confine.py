"""A process in a world of its own: what it writes is gone when it ends, and so is every process that it started.

It has the machine's files, of which it can change none: an overlay lies over the checkout and the home, /tmp is empty.
A mutant can delete what it likes, hang, or leave a server behind. The checkout is never touched, so that a run that is
killed leaves nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
PR_SET_PDEATHSIG = 1
VIRTUAL = {"proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "mqueue", "securityfs", "debugfs", "tracefs"}
# Each has its own, empty at first.
TEMPORARY = ("/tmp", "/dev/shm")  # noqa: S108
FLAGS = {"nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC}

_libc = ctypes.CDLL(None, use_errno=True)


class ConfinementError(Exception):
    """This machine does not let a process have a world of its own."""


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise ConfinementError(f"{name}{arguments}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None)


def _die_with_parent() -> None:
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _unshare() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", CLONE_NEWNS | CLONE_NEWPID | (CLONE_NEWUSER if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _places(root: Path) -> list[Path]:
    """The folders that look writable: the home, and the checkout unless it lies in there."""
    home = Path.home().resolve()
    if any(root.is_relative_to(place) or home.is_relative_to(place) for place in TEMPORARY):
        raise ConfinementError(f"{root} or the home is in a folder for temporary files, which a mutant gets empty")
    return [home] if root.is_relative_to(home) else [home, root]


def _mounts(root: Path) -> None:
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    seen = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for fields in seen:
        target, kind = fields[4].replace("\\040", " "), fields[fields.index("-") + 1]
        if kind in VIRTUAL or target.startswith(("/dev", "/proc", "/sys", "/tmp/")):  # noqa: S108 - no file is made
            continue
        flags = sum(FLAGS.get(option, 0) for option in fields[5].split(","))
        if Path(target).exists():
            _mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | flags)
    for place in TEMPORARY:
        _mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    _mount("proc", "/proc", "proc")
    for number, folder in enumerate(_places(root)):
        above = Path(f"{TEMPORARY[0]}/.above/{number}")
        (above / "upper").mkdir(parents=True)
        (above / "work").mkdir()
        _mount("overlay", str(folder), "overlay", 0, f"lowerdir={folder},upperdir={above}/upper,workdir={above}/work")


def _first(root: Path, act: Callable[[], int]) -> int:
    """The first process in there: it collects those whose parents have died, and ends with the one that works."""
    _mounts(root)
    os.chdir(root)
    worker = os.fork()
    if worker == 0:
        os.setsid()
        # The signals of a first process mean nothing, so the work is done by the second.
        os._exit(act() & 0xFF)
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def start(root: Path, act: Callable[[], int]) -> int:
    """The process id of one that calls ``act`` in there and ends with its result; killing it ends all of them."""
    pid = os.fork()
    if pid:
        return pid
    code = 125
    try:
        _die_with_parent()
        _unshare()
        first = os.fork()
        if first == 0:
            code = 125
            try:
                _die_with_parent()
                code = _first(root, act)
            except ConfinementError as error:
                os.write(2, f"mutants: {error}\n".encode())
            finally:
                os._exit(code)
        _pid, status = os.waitpid(first, 0)
        code = os.waitstatus_to_exitcode(status)
        code = code if code >= 0 else 128 - code
    except ConfinementError as error:
        os.write(2, f"mutants: {error}\n".encode())
    finally:
        os._exit(code)


def finished(pid: int) -> int | None:
    """How it ended; None while it runs."""
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
