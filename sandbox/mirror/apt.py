"""The mirror: a signed apt repository, made once, and the server that gives all of the mirror to the hosts."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sandbox.commands import output, run
from sandbox.image import suite
from sandbox.mirror.signing import Key
from sandbox.network.bridge import OnBridge, serve_in_thread
from sandbox.paths import Paths

PORT = 8379
NAME = "mirror.sandbox"
KEY_USER = "trainium.cluster sandbox mirror"


def index_packages(root: Path, release: str, key: Key) -> None:
    """Index the packages in ``ROOT/pool`` as an apt repository of one release and sign it."""
    folder = root / "dists" / release
    architecture = output("dpkg", "--print-architecture")
    packages = folder / "main" / f"binary-{architecture}" / "Packages"
    packages.parent.mkdir(parents=True, exist_ok=True)
    run(["apt-ftparchive", "packages", "pool"], root, stdout=packages)
    options = {"Suite": release, "Codename": release, "Components": "main", "Architectures": architecture}
    flags = [flag for name, value in options.items() for flag in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    run(["apt-ftparchive", *flags, "release", "."], folder, stdout=folder / "Release")
    key.clearsign(folder, "Release", "InRelease")


def make_apt_repository(paths: Paths) -> None:
    """Index and sign the packages in ``mirror/debian/pool``; nothing to do where that was done."""
    root = paths.mirror / "debian"
    if (root / "dists" / suite() / "InRelease").exists():
        return
    key = Key(paths.cache / "gnupg", KEY_USER)
    key.export(paths.mirror / "sandbox.gpg")
    index_packages(root, suite(), key)


class _Server(OnBridge, ThreadingHTTPServer):
    pass


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing: a mirror's log is of no use to anybody."""


def serve(paths: Paths, address: str) -> ThreadingHTTPServer:
    """Serve the mirror at ``http://ADDRESS:8379/`` in a thread of this process until ``shutdown()``."""
    server = _Server((address, PORT), partial(_Handler, directory=str(paths.mirror)))
    return serve_in_thread(server)
