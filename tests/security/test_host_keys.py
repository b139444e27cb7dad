"""First contact: the host keys of a node are those that it told at its first boot, and nobody's who came later."""

from __future__ import annotations

import base64
import shlex
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import host_keys, hosts

BOOT = "[    6.1] cloud-init[501]: Cloud-init v. 24.4 running 'init-local' at Mon, 23 Nov 2026 03:00:00 +0000\n"
NOW = datetime(2026, 11, 23, 4, 0, tzinfo=timezone.utc)


def key(kind: str, *fields: bytes) -> str:
    """A public key of this form (RFC 4253, 6.6)."""
    blob = b"".join(len(field).to_bytes(4, "big") + field for field in (kind.encode(), *fields))
    return f"{kind} {base64.b64encode(blob).decode()}"


ED25519, RSA = key("ssh-ed25519", b"genuine"), key("ssh-rsa", b"\1\0\1", b"genuine")
FORGED = key("ssh-ed25519", b"forged")


def block(*keys: str) -> str:
    lines = "".join(f"{key} root@ip-192-0-2-5\r\n" for key in keys)
    return f"-----BEGIN SSH HOST KEY KEYS-----\r\n{lines}-----END SSH HOST KEY KEYS-----\r\n"


@pytest.mark.parametrize(
    ("output", "keys"),
    [
        (BOOT + "ci-info\n" + block(RSA, ED25519), [ED25519, RSA]),
        # Another process' line in between, and systemd's mark in front of each.
        (BOOT + block(ED25519).replace("ssh-", "[  9.1] x\r\n[  9.2] cloud-init[9]: ssh-"), [ED25519]),
        # Later: by a user of the node, with or without another boot.
        (BOOT + block(ED25519) + block(FORGED), [ED25519]),
        (BOOT + block(ED25519) + BOOT + block(FORGED), [ED25519]),
        (BOOT + BOOT + block(FORGED), []),
        # The beginning is gone from the last 64 KB.
        (block(FORGED), []),
        (BOOT + block(ED25519, FORGED), [ED25519]),
        (BOOT + block(ED25519).partition("-----END")[0], []),
        (BOOT, []),
        ("", []),
    ],
)
def test_the_keys_of_the_first_boot(output: str, keys: list[str]) -> None:
    assert host_keys.first_boot_keys(output) == keys


@pytest.mark.parametrize("whole", [ED25519, RSA])
def test_a_key_that_another_line_has_cut_is_none(whole: str) -> None:
    """ssh would pass over it, and take whatever key it is shown for that of a new host."""
    for length in range(len("ssh-ed25519 AAAA"), len(whole.rstrip("="))):
        cut = f"{whole[:length]}[   42.1] ena 0000:00:05.0 {whole[length:]}"
        assert host_keys.first_boot_keys(BOOT + block(cut)) == [], cut


@pytest.mark.parametrize(
    ("attached", "launched", "first"),
    [(10, 10, True), (59, 59, True), (61, 61, False), (61, 1, False), (None, 10, True), (None, None, False)],
)
def test_a_node_that_users_had_is_not_at_its_first_boot(
    attached: int | None, launched: int | None, first: bool
) -> None:
    """A stop and a start set LaunchTime anew, and not the time at which the primary interface was attached."""

    def before(minutes: int | None) -> str:
        return "" if minutes is None else (NOW - timedelta(minutes=minutes)).isoformat()

    node = {"attach_time": before(attached), "launch_time": before(launched)}
    assert host_keys.is_first_boot(node, NOW) is first


def arguments(known_hosts: str) -> list[str]:
    options = hosts.Options(known_hosts="/home/me/.ssh/pins", pinned=host_keys.pinned(known_hosts))
    record: dict[str, Any] = {"instance_id": "i-1", "public_address": "203.0.113.5", "private_address": "192.0.2.5"}
    return shlex.split(hosts.connection(record, options, "")["ansible_ssh_common_args"])


def test_ssh_takes_no_other_key_of_a_known_node() -> None:
    text = host_keys.lines({"i-1": [ED25519, RSA], "i-2": [ED25519]})
    assert text == f"i-1 {ED25519}\ni-1 {RSA}\ni-2 {ED25519}\n"
    found = arguments(text)
    assert 'UserKnownHostsFile="/home/me/.ssh/pins"' in found
    assert "HostKeyAlgorithms=ssh-ed25519,rsa-sha2-512,rsa-sha2-256" in found
    assert not [word for word in arguments("i-2 ssh-ed25519 AAAA\n") if "KnownHosts" in word or "Algorithms" in word]


def test_ssh_itself_understands_them(tmp_path: Path) -> None:
    pins = tmp_path / "pins"
    pins.write_text(f"i-1 {ED25519}\n", encoding="utf-8")
    words = arguments(pins.read_text(encoding="utf-8"))
    done = subprocess.run(["ssh", "-G", *words, "192.0.2.5"], capture_output=True, text=True, check=True)
    assert "userknownhostsfile /home/me/.ssh/pins\n" in done.stdout
    assert "hostkeyalgorithms ssh-ed25519\n" in done.stdout
    assert "hostkeyalias i-1\n" in done.stdout


def test_a_node_whose_user_data_runs_is_not_waited_for() -> None:
    """Its keys come after it; a node that has not come so far may show them any moment."""
    last = BOOT + BOOT.replace("init-local", "modules:final")
    busy = host_keys.Busy()
    assert not busy.saw("i-1", BOOT, 100)
    assert not busy.saw("i-1", last, 101)
    assert not busy.saw("i-2", last, 110)
    assert not busy.saw("i-1", last, 101 + host_keys.PATIENCE - 1)
    assert busy.saw("i-1", last, 101 + host_keys.PATIENCE)
    assert not busy.saw("i-2", last, 101 + host_keys.PATIENCE)
