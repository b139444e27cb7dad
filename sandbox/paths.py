"""Where the sandbox keeps things: everything lies in one folder, ``.sandbox`` beside this package."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Paths:
    """The folders and files of one sandbox, all below ``root``."""

    root: Path

    @classmethod
    def from_environment(cls) -> Paths:
        """The folder named by ``TRAINIUM_SANDBOX_DIR``, else ``.sandbox`` in the checkout."""
        return cls(Path(os.environ.get("TRAINIUM_SANDBOX_DIR") or REPOSITORY / ".sandbox").resolve())

    @property
    def name(self) -> str:
        """A short name, unique for the folder: it prefixes containers and networks."""
        return "sandbox-" + hashlib.sha256(str(self.root).encode()).hexdigest()[:6]

    @property
    def marker(self) -> Path:
        """The file by which ``up`` marks the folder as its own. It holds the folder's path: a copy is no mark."""
        return self.root / ".made-by-sandbox"

    @property
    def in_checkout(self) -> bool:
        """Whether this is the checkout's own folder, which nobody but the project uses."""
        return self.root == REPOSITORY / ".sandbox"

    def is_marked(self) -> bool:
        """Whether ``up`` made the folder, or took it when it was empty."""
        try:
            return self.marker.read_text(encoding="utf-8") == f"{self.root}\n"
        except (OSError, UnicodeError):
            return False

    def mark(self) -> None:
        """Make the folder the sandbox's own, so that ``purge`` may delete it.

        Raises:
            SandboxError: it holds what others have put there.
        """
        if self.is_marked():
            return
        self.root.mkdir(parents=True, exist_ok=True)
        if not self.in_checkout and any(self.root.iterdir()):
            raise SandboxError(f"{self.root} is not empty and no sandbox: set TRAINIUM_SANDBOX_DIR to an empty folder.")
        self.marker.write_text(f"{self.root}\n", encoding="utf-8")

    @property
    def cache(self) -> Path:
        """What is expensive to make and survives ``down``: the mirror's packages and wheels."""
        return self.root / "cache"

    @property
    def mirror(self) -> Path:
        return self.cache / "mirror"

    @property
    def podman(self) -> Path:
        return self.root / "podman"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def playbooks(self) -> Path:
        """The logs of playbooks, and how long their phases took."""
        return self.logs / "playbooks"

    @property
    def hosts(self) -> Path:
        return self.root / "hosts"

    @property
    def filesystems(self) -> Path:
        """What the hosts share, a folder for each VPC."""
        return self.root / "filesystems"

    def shared(self, name: str) -> Path:
        """One of these folders, for whoever runs the sandbox alone: a host's root may leave setuid programs and devices
        there, which are the machine's own."""
        self.filesystems.mkdir(parents=True, exist_ok=True)
        self.filesystems.chmod(0o700)
        return self.filesystems / name

    @property
    def kubernetes(self) -> Path:
        """The control planes of the account's EKS clusters, a folder for each."""
        return self.root / "kubernetes"

    @property
    def registry(self) -> Path:
        """The images of ECR, which go with the account, and of upstream, which stay."""
        return self.cache / "registry"

    @property
    def registries(self) -> Path:
        """Where podman and buildah find ECR."""
        return self.root / "registries.conf"

    @property
    def ssh_key(self) -> Path:
        return self.root / "ssh" / "id_ed25519"

    @property
    def token(self) -> Path:
        """The file with the word that control calls of the emulator must know; only its owner may read it."""
        return self.root / "token"

    @property
    def inventory(self) -> Path:
        return self.root / "inventory"

    @property
    def reports(self) -> Path:
        return self.root / "demo"

    def make(self) -> None:
        """Create the folders."""
        for folder in (self.cache, self.run, self.logs, self.hosts, self.ssh_key.parent, self.inventory, self.reports):
            folder.mkdir(parents=True, exist_ok=True)
        self.ssh_key.parent.chmod(0o700)
