"""The module dataset in this process, with a destination and a folder of states of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import background, run_host

Result = dict[str, Any]


class Host:
    """``source`` is a folder of the host, ``states`` where attempts say how far they are."""

    def __init__(self, folder: Path) -> None:
        self.source, self.destination, self.states = folder / "source", folder / "destination", folder / "states"
        for made in (self.source, self.states):
            made.mkdir(mode=0o700)
        self.hidden = self.destination / ".trainium-dataset" / "set"

    def options(self, **more: Any) -> dict[str, Any]:
        return {
            "name": "set",
            "source": str(self.source),
            "destination": str(self.destination),
            "files": None,
            "checksum": "",
            "checksums": {},
            "md5_tags": False,
            "extract": "auto",
            "extracted_size": "",
            "owner": None,
            "group": None,
            "chunk_size": "64K",
            "connections": 2,
            "timeout": 5,
            "wait": 0,
            "attempt": None,
            **more,
        }

    def run(self, check: bool = False, **more: Any) -> Result:
        return run_host.run(self.options(**more), check)

    def names(self) -> list[str]:
        """What is in the destination, files below folders as well."""
        return sorted(
            str(path.relative_to(self.destination))
            for path in self.destination.rglob("*")
            if not path.is_dir() and ".trainium-dataset" not in path.parts
        )


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    # The work is done here and now, and of this machine's disks none is waited for.
    monkeypatch.setattr(background, "detach", lambda work: work())
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(background, "_folder", lambda: str(tmp_path / "states"))
    yield Host(tmp_path)
