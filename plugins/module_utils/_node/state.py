# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tools of a node print, as data: its packages, services, EFA software and Neuron devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

# Formats in which the package managers are asked; a tab between the fields.
DPKG_FORMAT = "${Package}\t${db:Status-Want}\t${db:Status-Status}\t${Version}\n"
RPM_FORMAT = "%{NAME}\tunknown\tinstalled\t%{VERSION}-%{RELEASE}\n"


def parse_packages(text: str, locked: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """Package -> its version and whether it is held, of those that are installed.

    ``text`` has the lines of `DPKG_FORMAT` or `RPM_FORMAT`; ``locked`` are the lines of dnf's list of version locks.
    """
    locks = " ".join(locked)
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4 and fields[2] == "installed":
            name = fields[0]
            held = fields[1] == "hold" or bool(re.search(rf"(^|[\s:!]){re.escape(name)}-\d", locks))
            found[name] = {"version": fields[3], "held": held}
    return found


def services_of(shown: str, changed: Mapping[str, float], now: float) -> dict[str, dict[str, Any]]:
    """``systemctl show --timestamp=unix`` as enabled, active and stale by service.

    A service is stale if a file that it reads at its start was changed after it (``changed``: the time of the last
    change by service). A time in the future says nothing: the clock was wrong when the file was written.
    """
    services: dict[str, dict[str, Any]] = {}
    for block in shown.split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        name = fields.get("Id", "")[: -len(".service")]
        if not name:
            continue
        # One that waits for its next start has failed.
        waits = fields.get("SubState") == "auto-restart"
        active = fields.get("ActiveState") in ("active", "activating", "reloading") and not waits
        since = fields.get("ExecMainStartTimestamp", "").lstrip("@")
        written = changed.get(name, 0.0)
        services[name] = {
            "enabled": fields.get("UnitFileState") == "enabled",
            "active": active,
            "stale": bool(active and since.isdigit() and int(since) < int(written) and written <= now),
        }
    return services


def parse_efa_packages(text: str) -> str:
    """The installer's version from ``/opt/amazon/efa_installed_packages``; '' where it says none."""
    match = re.search(r"^#\s*EFA installer version:\s*(\S+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def parse_python_version(text: str) -> str:
    """``3.11`` out of ``Python 3.11.2``; '' where there is none."""
    match = re.search(r"(\d+\.\d+)\.\d+", text)
    return match.group(1) if match else ""


def package_changes(
    wanted: Mapping[str, str], installed: Mapping[str, Mapping[str, Any]], held: bool
) -> dict[str, list[str]]:
    """Names of the packages to ``install`` and to ``hold`` (or no longer), in the order of ``wanted``.

    A version with a build's mark behind a ``-``, ``+`` or ``~`` is that version.
    """
    install = [
        name
        for name, version in wanted.items()
        if not re.fullmatch(rf"{re.escape(version)}([-+~].*)?", str(installed.get(name, {}).get("version", "")))
    ]
    return {"install": install, "hold": [name for name in wanted if bool(installed.get(name, {}).get("held")) != held]}
