"""Small Debian packages, made from a few files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.commands import run


@dataclass(frozen=True)
class Package:
    """A package: what lies where (path on the host -> text or a file to copy), and its maintainer scripts."""

    name: str
    version: str
    files: Mapping[str, str | Path] = field(default_factory=dict)
    depends: str = ""
    postinst: str = ""
    prerm: str = ""

    def build(self, folder: Path) -> Path:
        """Write ``FOLDER/NAME_VERSION_all.deb``; files in a ``bin`` folder and scripts may be executed."""
        target = folder / f"{self.name}_{self.version}_all.deb"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            for path, content in self.files.items():
                file = root / path.lstrip("/")
                file.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, Path):
                    shutil.copyfile(content, file)
                else:
                    file.write_text(content, encoding="utf-8")
                file.chmod(0o755 if "/bin/" in path else 0o644)
            self._write_control(root / "DEBIAN")
            root.chmod(0o755)
            run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(target)], folder)
        return target

    def _write_control(self, folder: Path) -> None:
        folder.mkdir(mode=0o755)
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "all",
            "Maintainer": "trainium.cluster sandbox <sandbox@localhost>",
            "Depends": self.depends,
            "Description": f"stand-in for {self.name}, nothing of the real package is in it",
        }
        control = "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
        (folder / "control").write_text(control, encoding="utf-8")
        for script, text in (("postinst", self.postinst), ("prerm", self.prerm)):
            if text:
                file = folder / script
                file.write_text(f"#!/bin/sh\nset -e\n{text}", encoding="utf-8")
                file.chmod(0o755)
