"""What podman says of containers, read as states of hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox.paths import Paths
from sandbox.podman import Podman


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("running", 0, "running"),
        ("exited", 130, "off"),
        # What has ended is "stopped" until podman has cleaned up after it, which takes a second on a machine with work.
        ("stopped", 130, "off"),
        ("stopped", 129, "stopped"),
        ("exited", 129, "exited"),
        ("exited", 137, "exited"),
        ("created", 0, "created"),
    ],
)
def test_a_host_is_off_where_it_shut_itself_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, code: int, expected: str
) -> None:
    podman = Podman(Paths(tmp_path))
    name = f"{podman.paths.name}-i-1"
    said = json.dumps([{"Names": [name], "State": state, "ExitCode": code}])
    monkeypatch.setattr(Podman, "run", lambda _self, *_arguments: said)
    assert podman.containers() == {name: expected}
