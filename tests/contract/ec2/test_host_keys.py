"""Host keys from the consoles of new nodes, over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Account = Any
BOOT = "Cloud-init v. 24.4 running 'init-local' at Thu, 01 Jan 2026 00:00:00 +0000. Up 5.00 seconds.\n"
BLOCK = "-----BEGIN SSH HOST KEY KEYS-----\nssh-ed25519 {} root@node\n-----END SSH HOST KEY KEYS-----\n"


def test_new_nodes_are_known_by_their_consoles(cloud: Account, tmp_path: Path) -> None:
    first, second = sorted(cloud.efa(count=2)["instance_ids"])
    pins = tmp_path / "pins"

    def say(identity: str, text: str) -> None:
        cloud.api.control("POST", "console", {"instance_id": identity, "text": text})

    def learn(timeout: int = 0) -> dict[str, Any]:
        arguments = {"cluster_name": "bert", "path": str(pins), "timeout": timeout}
        found: dict[str, Any] = cloud.run("internal.host_keys", arguments)
        assert not found.get("failed"), found.get("msg")
        return found

    say(first, BOOT + BLOCK.format("AAAAC3NzaC1lZDI1NTE5AAAABWZpcnN0"))
    found = learn()
    assert (found["changed"], found["known"], found["unknown"]) == (True, [first], [second])
    assert "whatever it meets there first" in str(found["warnings"])
    # A user of the first node writes to its console; its key stays.
    say(first, BLOCK.format("AAAAC3NzaC1lZDI1NTE5AAAABmZvcmdlZA=="))
    say(second, BOOT + BLOCK.format("AAAAC3NzaC1lZDI1NTE5AAAABnNlY29uZA=="))
    assert learn()["known"] == [second]
    keys = ((first, "AAAAC3NzaC1lZDI1NTE5AAAABWZpcnN0"), (second, "AAAAC3NzaC1lZDI1NTE5AAAABnNlY29uZA=="))
    assert pins.read_text() == "".join(f"{node} ssh-ed25519 {key}\n" for node, key in keys)
    assert pins.stat().st_mode & 0o777 == 0o600
    assert not learn()["changed"]
