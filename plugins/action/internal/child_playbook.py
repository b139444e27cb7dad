# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a playbook of the collection as a program of its own, shows what it says, and keeps that in a file.

A play cannot catch what fails on other hosts in later plays; whoever has to tear down after any failure can catch a
program.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.plugins.action import ActionBase
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import shortened
from ansible_collections.trainium.cluster.plugins.plugin_utils._patient import tell
from ansible_collections.trainium.cluster.plugins.plugin_utils._phases import printable
from ansible_collections.trainium.cluster.plugins.plugin_utils._progress import Follower

# After SIGINT it gives its lease back; a worker that hangs does not end by that.
SECONDS_TO_END = 60
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
# What runs the playbook is interrupted when whoever started it is gone; exec keeps that.
INTERRUPTED_WITH_PARENT = f"""
import ctypes, os, sys
try:
    ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {int(signal.SIGINT)})
except AttributeError:
    pass
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
TOOK_TOO_LONG = (124, 137)  # timeout(1)
SECONDS_TO_VANISH = 10
LAST_LINES = 8
MOST = 600


class ActionModule(ActionBase):
    """What Ansible loads."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _problems, arguments = self.validate_argument_spec(
            {
                "playbook": {"type": "path", "required": True},
                "variables": {"type": "dict", "default": {}},
                "log": {"type": "path", "required": True},
                "timeout": {"type": "int", "default": 3600},
            }
        )
        if self._task.check_mode:
            return {**result, "skipped": True, "changed": False}
        seconds, log = max(1, arguments["timeout"]), Path(arguments["log"])
        log.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # What an earlier run left is no word of this one.
        log.unlink(missing_ok=True)
        began = time.monotonic()
        with _written(arguments["variables"]) as variables, Follower(log, _show):
            code = run_limited(command(arguments["playbook"], variables, dict(context.CLIARGS)), log, seconds)
        result.update(rc=code, seconds=round(time.monotonic() - began, 1), changed=True)
        if code:
            result.update(failed=True, msg=reason(log, Path(arguments["playbook"]).stem, code, seconds))
        return result


def _show(line: str) -> None:
    if line.strip():
        tell(f"  | {line}")


def command(playbook: str, variables: str, own: dict[str, Any]) -> list[str]:
    """The command line: inventories, vaults and extra variables as this run has them, then those that count most."""
    program = Path(sys.argv[0])
    known = program.name == "ansible-playbook" and program.exists()
    words = [str(program) if known else str(Path(sys.executable).with_name("ansible-playbook"))]
    for option, name in (("--inventory", "inventory"), ("--vault-id", "vault_ids"), ("--extra-vars", "extra_vars")):
        words += [word for value in own.get(name) or () for word in (option, str(value))]
    words += [word for file in own.get("vault_password_files") or () for word in ("--vault-password-file", str(file))]
    return [*words, "--extra-vars", f"@{variables}", playbook]


def reason(log: Path, name: str, code: int, seconds: int) -> str:
    """Why it failed, in a sentence with the end of what it said."""
    if code in TOOK_TOO_LONG:
        return f"{name} did not end within {seconds} s and was ended; its words are in {log}."
    text = log.read_text(encoding="utf-8", errors="replace")
    # The last one: a role says in the end what was wrong.
    *_others, fatal = [None, *re.finditer(r"^(?:fatal|failed): .*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)]
    # Ansible shows results as JSON.
    said = re.search(r'"msg": ("(?:[^"\\]|\\.)*")', fatal.group()) if fatal else None
    last = " ".join(text.splitlines()[-LAST_LINES:])
    told = " ".join(str(json.loads(said.group(1))).split()) if said else " ".join(last.split())
    shown = printable(shortened(told, MOST)).rstrip(". ")
    return f"{name} failed (exit code {code}): {shown}; all of its words are in {log}."


def run_limited(words: list[str], log: Path, seconds: int) -> int:
    """Run this Python with words for so long at most; nothing that it has begun goes on when it took too long."""
    # When the run that this works for is killed, the playbook would go on and keep the cluster from the next run.
    _prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    # Orphans of the playbook become children of this worker, so that they are found.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    limit = ["timeout", "--foreground", "--signal=INT", f"--kill-after={SECONDS_TO_END}", str(seconds)]
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
    # It has addresses and names; and nobody put a link where it goes since the old one was removed.
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        done = subprocess.run(
            # Isolated, since -c alone would take modules from the folder that somebody is in.
            [*limit, sys.executable, "-I", "-c", INTERRUPTED_WITH_PARENT, *words],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        )
    if done.returncode in TOOK_TOO_LONG:
        _end_what_is_left()
    return done.returncode


def _prctl(option: int, value: int) -> None:
    """Change what becomes of this worker, where the system can."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, int(value))


def _end_what_is_left() -> None:
    """Kill what a playbook that was ended has left: its workers have sessions of their own, and go on."""
    until, ended = time.monotonic() + SECONDS_TO_VANISH, set[int]()
    while (left := _descendants()) and time.monotonic() < until:
        for number in left:
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        ended |= left
        time.sleep(0.1)
    for number in ended:
        with contextlib.suppress(OSError):
            os.waitpid(number, os.WNOHANG)


def _descendants() -> set[int]:
    """The living processes below this one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Of a process that has ended meanwhile there is none.
        with contextlib.suppress(OSError):
            state, parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(path.parent.name)] = int(parent)
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {number for number, parent in parents.items() if parent in new} - found
        found |= new
    return found


@contextlib.contextmanager
def _written(variables: dict[str, Any]) -> Iterator[str]:
    """A file with variables that only its owner reads, while the block runs."""
    handle, path = tempfile.mkstemp(prefix="variables-", suffix=".json", dir=constants.DEFAULT_LOCAL_TMP)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(variables, stream)
        yield path
    finally:
        os.unlink(path)
