"""Commands that make the mirror: run to their end, a failure as one sentence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from sandbox.errors import SandboxError


def run(command: list[str], cwd: Path, environment: dict[str, str] | None = None, stdout: Path | None = None) -> None:
    """Run a command; its last error line becomes the sentence of a failure.

    Raises:
        SandboxError: the command ended with another code than 0.
    """
    with (stdout or Path(os.devnull)).open("wb") as file:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdout=file,
            stderr=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        raise failure(command, done.stderr.decode(errors="replace"))


def failure(command: list[str], printed: str) -> SandboxError:
    """The sentence about a command that failed, with the line that says most."""
    lines = printed.strip().splitlines() or ["no message"]
    reason = next((line for line in reversed(lines) if line.startswith(("ERROR", "E:", "gpg:"))), lines[-1])
    return SandboxError(f"'{command[0]} {command[1]}' failed while making the sandbox's mirror: {reason}")


def follow(
    command: list[str], cwd: Path, told: Callable[[str], None], environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a command and hand on each line as it comes; its exit status and all that it printed."""
    lines: list[str] = []
    pipe, errors = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=errors, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            told(line.rstrip("\n"))
    return process.returncode, "".join(lines)


def output(*command: str, environment: dict[str, str] | None = None) -> str:
    """What a command prints, without the newline."""
    full = {**os.environ, **(environment or {})}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=full).stdout.strip()
