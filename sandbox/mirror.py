"""The mirror: a signed apt repository and a pip index, made once and served to the hosts over HTTP."""

from __future__ import annotations

import hashlib
import html
import os
import re
import socket
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from sandbox.errors import SandboxError
from sandbox.image import suite
from sandbox.paths import REPOSITORY, Paths

PORT = 8379
NAME = "mirror.sandbox"
REQUIREMENTS = REPOSITORY / "sandbox" / "requirements-nodes.txt"
KEY_USER = "trainium.cluster sandbox mirror"
IP_FREEBIND = 15  # <linux/in.h>: bind to an address that does not exist yet


def _run(command: list[str], cwd: Path, environment: dict[str, str] | None = None, stdout: Path | None = None) -> None:
    """Run a command of the mirror's making; its last error line becomes the sentence of a failure."""
    with (stdout or Path(os.devnull)).open("wb") as output:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        reason = next((line for line in reversed(lines) if line.startswith(("ERROR", "E:", "gpg:"))), lines[-1])
        raise SandboxError(f"'{command[0]} {command[1]}' failed while making the sandbox's mirror: {reason}")


def _output(*command: str) -> str:
    """What a command prints, without the newline."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def make_apt_repository(paths: Paths) -> None:
    """Index and sign the packages in ``mirror/debian/pool``; nothing to do where that was done."""
    root = paths.mirror / "debian"
    release = root / "dists" / suite()
    if (release / "InRelease").exists():
        return
    gnupg = paths.cache / "gnupg"
    environment = {"GNUPGHOME": str(gnupg)}
    if not gnupg.exists():
        gnupg.mkdir(mode=0o700)
        generate = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", KEY_USER, "ed25519", "sign", "never"]
        _run(generate, root, environment)
    architecture = _output("dpkg", "--print-architecture")
    packages = release / "main" / f"binary-{architecture}" / "Packages"
    packages.parent.mkdir(parents=True, exist_ok=True)
    _run(["apt-ftparchive", "packages", "pool"], root, stdout=packages)
    options = {"Suite": suite(), "Codename": suite(), "Components": "main", "Architectures": architecture}
    flags = [flag for key, value in options.items() for flag in ("-o", f"APT::FTPArchive::Release::{key}={value}")]
    _run(["apt-ftparchive", *flags, "release", "."], release, stdout=release / "Release")
    _run(["gpg", "--batch", "--yes", "--export", "-o", str(paths.mirror / "sandbox.gpg")], root, environment)
    _run(["gpg", "--batch", "--yes", "--clearsign", "-o", "InRelease", "Release"], release, environment)
    # The agent that gpg started would outlive this command.
    _run(["gpgconf", "--kill", "all"], root, environment)


def hosts_python() -> str:
    """The Python version of the hosts, which is that of this machine's distribution, for example ``3.11``."""
    return _output("/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


def make_pip_index(paths: Paths) -> None:
    """Download the wheels that training needs and write a simple index over them; nothing to do where that was done.

    ``TRAINIUM_SANDBOX_PIP_ARGS`` adds arguments for pip, such as the index with PyTorch's CPU builds.
    """
    wheels = paths.mirror / "wheels"
    wanted = REQUIREMENTS.read_bytes() + hosts_python().encode()
    stamp = paths.mirror / f"wheels-{hashlib.sha256(wanted).hexdigest()[:12]}"
    if stamp.exists():
        return
    print("sandbox: downloading the wheels for the hosts (PyTorch among them)", flush=True)
    wheels.mkdir(parents=True, exist_ok=True)
    extra = os.environ.get("TRAINIUM_SANDBOX_PIP_ARGS", "").split()
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(wheels)]
    target = ["--only-binary=:all:", "--python-version", hosts_python(), "--requirement", str(REQUIREMENTS)]
    _run([*pip, *extra, *target], paths.mirror)
    projects: dict[str, list[Path]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        project = re.sub(r"[-_.]+", "-", wheel.name.split("-")[0]).lower()
        projects.setdefault(project, []).append(wheel)
    for project, files in projects.items():
        folder = paths.mirror / "simple" / project
        folder.mkdir(parents=True, exist_ok=True)
        links = [
            f'<a href="../../wheels/{quote(file.name)}#sha256={_sha256(file)}">{html.escape(file.name)}</a><br>'
            for file in files
        ]
        (folder / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links) + "\n", encoding="utf-8")
    stamp.touch()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


class _Server(ThreadingHTTPServer):
    """Listens on a bridge's address, which comes into being with the first host of its network."""

    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        super().server_bind()


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing: a mirror's log is of no use to anybody."""


def serve(paths: Paths, address: str) -> ThreadingHTTPServer:
    """Serve the mirror at ``http://ADDRESS:8379/`` in a thread of this process until ``shutdown()``."""
    server = _Server((address, PORT), partial(_Handler, directory=str(paths.mirror)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
