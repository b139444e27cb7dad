"""Install what a lock file names into the environment of this Python, and say how far it is.

    python -m sandbox.install NAME      requirements-NAME.lock, and requirements-NAME.txt of which it was made

uv does it, in a tenth of pip's time. pip does it where uv cannot: an index that only pip knows how to ask, or a mirror
without uv. A package with another hash than the lock file's ends it. Where the index lacks one of the versions, pip
takes what requirements-NAME.txt allows, wheels alone, which nothing but the index vouches for, and says so.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sandbox import indexes
from sandbox.commands import follow

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
# How pip and uv begin what they say of a package that somebody has changed.
TAMPERED = ("DO NOT MATCH THE HASHES", "Hash mismatch for")


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def of_uv(line: str) -> None:
    """Show what a line of uv says of how far it is: not one for each package."""
    if not re.match(r" [+~-] |Using Python ", line):
        print(line[:120], flush=True)


def of_pip(line: str) -> None:
    """The same of pip: what is large, and the long end."""
    if re.match(r" *Downloading .*([0-9.]{4,}|[0-9]{2,}\.[0-9]) MB|Installing collected|Building ", line):
        print(line[:120], flush=True)


def entry(name: str, locked: str) -> str:
    """What a lock file says of one package: its version and the hashes."""
    found = re.search(rf"(?m)^{re.escape(name)}==.*(\n +--hash=.*)*\n", locked)
    return found[0] if found else ""


def have_uv(locked: str) -> str:
    """Install the uv that the lock file names, or any where it names none; why that failed, or nothing."""
    wanted = entry("uv", locked) or "uv\n"
    version = wanted.partition("==")[2].split(" ")[0]
    try:
        if importlib.metadata.version("uv") == version or not version:
            return ""
    except importlib.metadata.PackageNotFoundError:
        pass
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(wanted)
        file.flush()
        command = [*PIP, "install", "--quiet", "--only-binary=:all:", "--require-hashes", "--requirement", file.name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"uv is not to be had ({reason(done.stderr)})"


def reason(output: str) -> str:
    """The line of a failure that says most."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no reason given"]
    return next((line for line in lines if line.lower().startswith("error")), lines[-1])[:200]


def by_uv(lock: Path) -> str:
    """Install with uv; why that failed, or nothing."""
    locked = lock.read_text(encoding="utf-8")
    listed = subprocess.run([*PIP, "config", "list"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    told = indexes.for_uv(listed, locked, os.environ)
    failed = told.refused or have_uv(locked)
    if failed:
        return failed
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python", sys.executable, *told.arguments]
    command += ["--only-binary=:all:", "--require-hashes", "--requirement", str(lock)]
    try:
        status, output = follow(command, ROOT, of_uv, told.environment)
    except OSError as error:
        return f"uv does not start ({error.strerror})"
    if status and tampered(output):
        return output
    return f"uv failed ({reason(output)})" if status else ""


def tampered(output: str) -> bool:
    return any(words in output for words in TAMPERED)


def by_pip(*arguments: str) -> str:
    """Install with pip; its output where that failed, or nothing."""
    command = [*PIP, "install", "--progress-bar=off", *arguments]
    status, output = follow(command, ROOT, of_pip)
    return output if status else ""


def install(name: str) -> int:
    """The exit status."""
    lock, allowed = ROOT / f"requirements-{name}.lock", ROOT / f"requirements-{name}.txt"
    began = time.monotonic()
    say(f"installing what {lock.name} names into {Path(sys.prefix).name}")
    output = by_uv(lock)
    if output and not tampered(output):
        say(f"{output}, so pip does it, which takes minutes")
        output = by_pip("--require-hashes", "--requirement", str(lock))
        if output and not tampered(output):
            say(
                f"not all of {lock.name} can be had ({reason(output)}), so what {allowed.name} allows is taken, "
                "for which there are no hashes"
            )
            output = by_pip("--only-binary=:all:", "--requirement", str(allowed))
    if output:
        print(output, file=sys.stderr)
        if tampered(output):
            say(f"a package has another hash than in {lock.name}, so nothing is installed: find out who changed it")
        return 1
    say(f"installed in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(install(sys.argv[1]))
