"""PyTorch as hosts can import it from a mount, for scenarios that do not test how it gets there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.mirror import wheels
from sandbox.paths import Paths

NAMES = ("torch", "numpy")
# Where a host finds the folder.
ON_HOST = "/usr/local/lib/sandbox/packages"
# Whoever runs a job may not write into the mount, and would compile it anew each time.
IMPORTED = "import sys; sys.path.insert(0, sys.argv[1]); import numpy, torch.distributed.run"


def folder(paths: Paths) -> Path:
    """The folder that hosts mount; it is empty where nobody asked for more."""
    return paths.cache / "packages"


def make(paths: Paths) -> str:
    """Fill it from the mirror's wheels, and say so.

    Raises:
        SandboxError: there are no wheels, or uv failed.
    """
    lines = wheels.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if re.split("[=<>]", line)[0] in NAMES]
    mine, found = folder(paths), sorted(one.name for one in (paths.mirror / "wheels").glob("*.whl"))
    uv = Path(sys.executable).with_name("uv")
    if not found or not uv.exists():
        raise SandboxError(
            "The hosts' packages are made from the mirror by uv: say make setup and python -m sandbox up."
        )
    digest = hashlib.sha256(repr((wanted, found, wheels.hosts_python())).encode()).hexdigest()[:12]
    stamp = paths.cache / f"packages-{digest}"
    with (paths.cache / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists():
            return "sandbox: the hosts' packages are there"
        for old in paths.cache.glob("packages-*"):
            old.unlink()
        _fill(paths, mine, uv, wanted)
        stamp.touch()
    return "sandbox: the hosts' packages are made"


def _fill(paths: Paths, mine: Path, uv: Path, wanted: list[str]) -> None:
    # The folder itself may be mounted.
    mine.mkdir(parents=True, exist_ok=True)
    for one in mine.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    source = ["--no-index", "--find-links", str(paths.mirror / "wheels"), "--only-binary=:all:"]
    command = [str(uv), "pip", "install", "--quiet", "--no-cache", "--no-config"]
    command += ["--python", "/usr/bin/python3", "--target", str(mine), *source, *wanted]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("UV_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    for step in (command, ["/usr/bin/python3", "-c", IMPORTED, str(mine)]):
        done = subprocess.run(step, env=kept, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SandboxError(f"PyTorch for the hosts could not be installed into {mine}: {last}.")
