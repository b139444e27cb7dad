"""Somebody with an environment of their own, and the emulated API that answers them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class FailedError(Exception):
    """What is wrong, in one sentence."""


def clean(home: Path, programs: Path) -> dict[str, str]:
    """An environment that knows neither this checkout nor an account, with a home folder of its own."""
    ours = ("ANSIBLE_", "AWS_", "TRAINIUM_", "PYTHON", "VIRTUAL_ENV", "MAKE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    path = [part for part in kept["PATH"].split(os.pathsep) if not part.startswith(str(REPOSITORY))]
    return {**kept, "HOME": str(home), "PATH": os.pathsep.join([str(programs), *path]), "ANSIBLE_NOCOLOR": "1"}


@dataclass
class User:
    """Somebody with a home folder, an environment of Python and an empty folder to work in."""

    folder: Path
    log: Path

    def __post_init__(self) -> None:
        self.home, self.programs = self.folder / "home", self.folder / "venv" / "bin"
        self.collection = self.home / ".ansible/collections/ansible_collections/trainium/cluster"

    @property
    def collections(self) -> str:
        """Where Ansible finds ours, and those that came with its package."""
        with_package = next((self.folder / "venv/lib").glob("python*/site-packages"))
        return os.pathsep.join([str(self.collection.parents[2]), str(with_package)])

    @property
    def empty(self) -> Path:
        shutil.rmtree(self.folder / "empty", ignore_errors=True)
        (self.folder / "empty").mkdir(parents=True)
        return self.folder / "empty"

    def run(self, *command: str | Path, where: Path | None = None, **more: str) -> str:
        """A command that must succeed; its output, with that of errors in the log only."""
        return execute(
            [str(word) for word in command],
            where or self.empty,
            {**clean(self.home, self.programs), **more},
            self.log,
        )

    def provide(self, python: str, packages: list[str], alone: tuple[str, ...] = ()) -> None:
        """An environment with these packages, made anew only when they or the Python change; some of them ``alone``,
        without what they require.
        """
        asked = "\n".join([python, *packages, *alone])
        told = self.folder / "packages"
        if told.exists() and told.read_text(encoding="utf-8") == asked:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home.mkdir(parents=True)
        execute([python, "-m", "venv", str(self.folder / "venv")], self.folder, dict(os.environ), self.log)
        self.run("python", "-m", "pip", "install", "--quiet", *packages)
        if alone:
            self.run("python", "-m", "pip", "install", "--quiet", "--no-deps", *alone)
        told.write_text(asked, encoding="utf-8")

    def install(self, archive: Path) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.run("ansible-galaxy", "collection", "install", archive)

    def versions(self) -> str:
        told = self.run("ansible", "--version")
        core, python = re.search(r"core ([\d.]+)", told), re.search(r"python version = ([\d.]+)", told)
        return f"ansible-core {core and core[1]}, Python {python and python[1]}"


def execute(command: list[str], where: Path, environment: dict[str, str], log: Path) -> str:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as told:
        told.write(f"$ {' '.join(command)}\n")
        told.flush()
        done = subprocess.run(
            command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=told, text=True, check=False
        )
        told.write(f"{done.stdout}\n")
    if done.returncode:
        name = " ".join([Path(command[0]).name, *command[1:2]])
        raise FailedError(f"{name} ended with {done.returncode}; see {log}")
    return done.stdout


def pythons() -> list[str]:
    """The Pythons of this machine that Ansible runs with, the oldest first."""
    found: dict[tuple[int, int], str] = {}
    for name in [sys.executable, *(f"python3.{minor}" for minor in range(11, 16)), os.environ.get("NEWEST_PYTHON", "")]:
        told = shutil.which(name) and subprocess.run(
            [name, "-c", "import sys, ensurepip; print(*sys.version_info[:2], sys.executable)"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if told and told.returncode == 0:
            major, minor, path = told.stdout.split()
            found.setdefault((int(major), int(minor)), path)
    return [found[version] for version in sorted(found)]


@contextlib.contextmanager
def emulator(log: Path) -> Iterator[str]:
    """The emulated API on a free port, without hosts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    word = log.parent / "token"
    word.write_text("publish-check", encoding="utf-8")
    command = [sys.executable, "-m", "sandbox.emulator", "--port", str(port), "--token-file", str(word)]
    with log.open("a", encoding="utf-8") as told:
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=told, stderr=told)
    try:
        until = time.monotonic() + 300
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise FailedError(f"the emulated API does not answer; see {log}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)
