"""OpenPGP keys of the mirror: each publisher that the sandbox stands in for has one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sandbox.commands import output, run


@dataclass(frozen=True)
class Key:
    """A key in a key ring of its own, made when it is first used.

    ``created`` and ``expires`` (``20200101T000000`` and ``1d``, as gpg takes them) make a key that is past its time.
    """

    folder: Path
    user: str
    created: str = ""
    expires: str = "never"

    @property
    def _environment(self) -> dict[str, str]:
        return {"GNUPGHOME": str(self.folder)}

    def _gpg(self, *arguments: str, cwd: Path | None = None, stdout: Path | None = None) -> None:
        if not self.folder.exists():
            self.folder.mkdir(mode=0o700, parents=True)
            generate = ["--passphrase", "", "--quick-generate-key", self.user, "ed25519", "sign", self.expires]
            self._gpg(*generate)
        clock = [f"--faked-system-time={self.created}!"] if self.created else []
        run(["gpg", "--batch", "--yes", *clock, *arguments], cwd or self.folder, self._environment, stdout)
        # The agent that gpg started would outlive this command.
        run(["gpgconf", "--kill", "all"], self.folder, self._environment)

    def fingerprint(self) -> str:
        """The fingerprint, 40 hexadecimal digits."""
        self._gpg("--list-keys")
        listing = output("gpg", "--batch", "--with-colons", "--list-keys", environment=self._environment)
        return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))

    def export(self, file: Path, armor: bool = False) -> None:
        """Write the public key."""
        self._gpg("--export", *(["--armor"] if armor else []), "--output", str(file))

    def clearsign(self, folder: Path, source: str, target: str) -> None:
        """Sign a text file so that text and signature are one file, like apt's ``InRelease``."""
        self._gpg("--clearsign", "--output", target, source, cwd=folder)

    def detach(self, file: Path) -> None:
        """Write the signature of ``file`` beside it, as ``FILE.sig``."""
        self._gpg("--detach-sign", "--output", f"{file.name}.sig", file.name, cwd=file.parent)
