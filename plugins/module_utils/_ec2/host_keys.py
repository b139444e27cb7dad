# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ssh host keys that a node told at its first boot, over the console, which nobody between can change. Pure.

cloud-init's module keys_to_console writes all public host keys to the console, once for an instance, between
``-----BEGIN SSH HOST KEY KEYS-----`` and the same with END; each boot begins with a line ``Cloud-init v. ... running
'init-local' at ...`` (cloud-init's cc_keys_to_console and cmd/main.py). EC2 gives the last 64 KB
of it with GetConsoleOutput, on Nitro instances of the running system (EC2 API reference). The keys come in the last
stage, ``modules:final``, and after user data (cloud-init's config/cloud.cfg.tmpl: scripts_user, then keys_to_console).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

# A node whose users had time to log in may have their text on its console. In seconds since the launch.
FIRST_BOOT = 3600
_BLOCK = re.compile(r"-----BEGIN SSH HOST KEY KEYS-----(.*?)-----END SSH HOST KEY KEYS-----", re.DOTALL)
_KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) (AAAA[0-9A-Za-z+/]+=*)")
_BOOT = re.compile(r"Cloud-init v\. \S+ running 'init-local'")
_LAST_STAGE = re.compile(r"Cloud-init v\. \S+ running 'modules:final'")
# Without user data the keys come seconds after the last stage began.
PATIENCE = 20.0
# What a server may sign with its key (sshd_config(5), HostKeyAlgorithms).
_ALGORITHMS = {"ssh-rsa": "rsa-sha2-512,rsa-sha2-256"}


def first_boot_keys(output: str) -> list[str]:
    """The keys, each as ``type base64``; none where the text does not show that they are of the first boot.

    The first block counts, whatever comes later; it stands between the beginning of the first boot and of the next.
    """
    block = _BLOCK.search(output)
    if block is None or len(_BOOT.findall(output[: block.start()])) != 1:
        return []
    found = [match for match in _KEY.finditer(block[1]) if _is_whole(match[1], match[2])]
    return sorted({match[1]: f"{match[1]} {match[2]}" for match in reversed(found)}.values())


class Busy:
    """Which nodes are at work on their user data, so that nobody knows when their keys come."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def saw(self, name: str, output: str, now: float) -> bool:
        """Whether a node without keys has been in its last stage for so long that user data must be running."""
        if not _LAST_STAGE.search(output):
            return False
        return now - self._since.setdefault(name, now) >= PATIENCE


def _is_whole(kind: str, text: str) -> bool:
    """Whether all fields of a key are there (RFC 4253, 6.6): a line of the kernel's may have cut it.

    ssh passes over a line that it cannot read, so that such a node would be a new one to it.
    """
    try:
        blob, fields = base64.b64decode(text, validate=True), []
    except ValueError:
        return False
    while blob:
        size = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + size:
            return False
        fields.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    return len(fields) == (2 if kind == "ssh-ed25519" else 3) and fields[0] == kind.encode() and all(fields)


def is_first_boot(node: Mapping[str, Any], now: datetime) -> bool:
    """Whether a node was launched a short time ago; a stop and a start do not make it new."""
    launched = node.get("attach_time") or node["launch_time"]
    try:
        when = datetime.fromisoformat(str(launched).replace("Z", "+00:00"))
    except ValueError:
        return False
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return (now - when).total_seconds() < FIRST_BOOT


def pinned(known_hosts: str) -> dict[str, str]:
    """Instance id -> the algorithms with which it may prove one of its keys, by the lines of a known_hosts file."""
    found: dict[str, list[str]] = {}
    for line in known_hosts.splitlines():
        words = line.split()
        if len(words) > 2 and not line.startswith("#"):
            found.setdefault(words[0], []).append(_ALGORITHMS.get(words[1], words[1]))
    return {name: ",".join(dict.fromkeys(types)) for name, types in found.items()}


def lines(keys: Mapping[str, Iterable[str]]) -> str:
    """Lines of a known_hosts file for the keys by instance id."""
    return "".join(f"{name} {key}\n" for name, found in sorted(keys.items()) for key in found)
