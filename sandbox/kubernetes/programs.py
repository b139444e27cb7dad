"""Kubernetes' own programs, built from Debian's source package, once for all checkouts of a machine.

No registry that the sandbox may use has kube-apiserver as a binary. Debian bookworm's source package ``kubernetes``
(https://tracker.debian.org/pkg/kubernetes) has the whole source of 1.20.2 with its vendored dependencies, and Debian's
Go 1.19 builds it. Both live in a throw-away bookworm, so that the machine gets no package.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sandbox import store
from sandbox.errors import SandboxError
from sandbox.machine import os_release
from sandbox.paths import REPOSITORY

VERSION = "1.20.2"
SOURCE = "kubernetes_1.20.5+really1.20.2"  # how the file of the source package begins
GO = "golang-1.19-go"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
PACKAGES = (GO, "golang-github-modern-go-reflect2-dev", "dpkg-dev", "patch")
RECIPE = REPOSITORY / "sandbox" / "kubernetes" / "source"
SUITE = "bookworm"
# For machines that are no bookworm themselves; the package debian-archive-keyring brings the key.
DEBIAN = """\
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

Say = Callable[[str], None]


def key() -> str:
    """A digest of everything that the programs are made of."""
    digest = hashlib.sha256(repr((SOURCE, GO, PROGRAMS)).encode())
    for file in sorted(RECIPE.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    return f"{VERSION}-{digest.hexdigest()[:12]}"


def cache() -> Path:
    return store.root() / "kubernetes"


def folder() -> Path:
    """Where the finished programs are, or will be."""
    return cache() / key()


def are_built() -> bool:
    return folder().is_dir()


def sources() -> str:
    """The apt sources of bookworm, with its source packages: the machine's own where it is one."""
    own = Path("/etc/apt/sources.list.d/debian.sources")
    is_bookworm = os_release().get("VERSION_CODENAME") == SUITE and own.exists()
    text = own.read_text(encoding="utf-8") if is_bookworm else DEBIAN
    return text.replace("Types: deb\n", "Types: deb deb-src\n")


def progress(line: str, seconds: float) -> str | None:
    """The sentence about a line of the build's output; None for those that say nothing of how far it is."""
    if not line.startswith("progress: "):
        return None
    return f"building Kubernetes {VERSION}: {line.removeprefix('progress: ').strip()} ({seconds:.0f} s so far)"


def build(log: Path, say: Say) -> Path:
    """Build the programs unless they are there; ``say`` gets a line at each stage. The folder with the programs.

    Raises:
        SandboxError: the build failed; its last line is in the sentence.
    """
    target = folder()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        # Two sandboxes of a machine wait for each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            say(f"building Kubernetes {VERSION} from Debian's source package: about 10 minutes, once on this machine")
            _build(target, log, say)
    return target


def _build(target: Path, log: Path, say: Say) -> None:
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "out").mkdir(parents=True)
    (work / "bookworm.sources").write_text(sources(), encoding="utf-8")
    began = time.monotonic()
    environment = {**os.environ, "TMPDIR": str(work), "LC_ALL": "C.UTF-8"}
    pipe, errors = subprocess.PIPE, subprocess.STDOUT
    lines: list[str] = []
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(_command(work), stdout=pipe, stderr=errors, text=True, env=environment) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            output.write(line)
            output.flush()
            lines = [*lines[-20:], line.strip()]
            sentence = progress(line, time.monotonic() - began)
            if sentence:
                say(sentence)
        code = process.wait()
    if code:
        reason = next((line for line in reversed(lines) if line and not line.startswith("I: ")), "no reason given")
        raise SandboxError(f"Kubernetes could not be built ({reason}): see {log}.")
    (work / "out" / "bin").rename(target)
    shutil.rmtree(work, ignore_errors=True)
    say(f"Kubernetes {VERSION} is built ({time.monotonic() - began:.0f} s) and kept in {target}")


def _command(work: Path) -> list[str]:
    """A bookworm in ``work`` that is thrown away when the programs have been copied out of it."""
    fetch = 'cd "$1/build" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get source --quiet --download-only kubernetes'
    hooks = [
        'mkdir -p "$1/build"',
        f'cp -r {RECIPE} "$1/build/source"',
        'echo "progress: the source package"',
        f'{fetch} && ls "$1"/build/{SOURCE}*.dsc',
        f'chroot "$1" /build/source/build {VERSION} {" ".join(PROGRAMS)}',
        f'cp -r "$1/build/bin" "{work}/out/"',
    ]
    # With this process everything ends, and its mounts with it.
    alone = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return [
        *(*alone, "mmdebstrap", "--mode=root", "--format=null", "--variant=minbase"),
        f"--include={','.join(PACKAGES)}",
        *(f"--customize-hook={hook}" for hook in hooks),
        *(SUITE, "/dev/null", str(work / "bookworm.sources")),
    ]
