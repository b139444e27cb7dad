"""The pip index of the mirror: real wheels from PyPI, and stand-ins for those that only Neuron's own index has."""

from __future__ import annotations

import hashlib
import html
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sandbox import store
from sandbox.commands import failure, follow, output
from sandbox.paths import REPOSITORY, Paths

# What the training's environment gets, and what other roles install from the index.
REQUIREMENTS = REPOSITORY / "sandbox" / "mirror" / "requirements-nodes.txt"
FURTHER = REPOSITORY / "sandbox" / "mirror" / "requirements-mirror.txt"


def hosts_python() -> str:
    """The Python version of the hosts, which is that of this machine's distribution, for example ``3.11``."""
    return output("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


def make_pip_index(paths: Paths, standins: bytes, make_standins: Callable[[Path], None]) -> None:
    """Download the wheels that training needs and write a simple index over them; nothing to do where that was done.

    ``make_standins`` writes what PyPI does not have, and ``standins`` is its digest.
    ``TRAINIUM_SANDBOX_PIP_ARGS`` adds arguments for pip, such as the index with PyTorch's CPU builds.
    """
    wheels = paths.mirror / "wheels"
    wanted = REQUIREMENTS.read_bytes() + FURTHER.read_bytes() + hosts_python().encode() + standins
    stamp = paths.mirror / f"wheels-{hashlib.sha256(wanted).hexdigest()[:12]}"
    if stamp.exists():
        return
    store.link(store.entry("wheels", _key(), _download), wheels)
    make_standins(wheels)
    _write_index(paths.mirror)
    stamp.touch()


def _arguments() -> list[str]:
    return os.environ.get("TRAINIUM_SANDBOX_PIP_ARGS", "").split()


def _key() -> str:
    """A digest of what is downloaded, and from where; that may hold a password, of which nothing is to be seen here."""
    settings = output(sys.executable, "-m", "pip", "config", "list")
    place = repr((hosts_python(), _arguments(), settings)).encode()
    return hashlib.sha256(REQUIREMENTS.read_bytes() + FURTHER.read_bytes() + place).hexdigest()[:12]


def _download(folder: Path) -> None:
    """Fetch the wheels from where pip takes them."""
    began = time.monotonic()
    print("sandbox: downloading the wheels for the hosts (PyTorch among them)", flush=True)

    def told(line: str) -> None:
        large = re.search(r"^ *Downloading (\S*?)-[^-\s/]*-[^/\s]* .*?(\d{2,}(?:\.\d+)?) MB", line)
        if large:
            print(f"sandbox: the wheels, {time.monotonic() - began:.0f} s: {large[1]}, {large[2]} MB", flush=True)

    pip = [sys.executable, "-m", "pip", "download", "--progress-bar=off", "--dest", str(folder)]
    files = ["--requirement", str(REQUIREMENTS), "--requirement", str(FURTHER)]
    command = [*pip, *_arguments(), "--only-binary=:all:", "--python-version", hosts_python(), *files]
    status, printed = follow(command, folder, told)
    if status:
        raise failure(command, printed)


def _write_index(mirror: Path) -> None:
    """A page for every project, as pip reads them, with the wheels' checksums."""
    projects: dict[str, list[Path]] = {}
    for wheel in sorted((mirror / "wheels").glob("*.whl")):
        project = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        projects.setdefault(project, []).append(wheel)
    for project, files in projects.items():
        folder = mirror / "simple" / project
        folder.mkdir(parents=True, exist_ok=True)
        links = [
            f'<a href="../../wheels/{quote(file.name)}#sha256={_sha256(file)}">{html.escape(file.name)}</a><br>'
            for file in files
        ]
        (folder / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
