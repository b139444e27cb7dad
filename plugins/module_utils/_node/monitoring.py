# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who listens on the ports of exporters and dashboards, and what an environment has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# Addresses of a socket that listens everywhere, as ss shows them.
EVERYWHERE = ("0.0.0.0", "*", "[::]", "::")  # noqa: S104
_USER = re.compile(r'\("(?P<program>[^"]*)",pid=(?P<pid>\d+)')
_UNIT = re.compile(r"/([^/]+\.service)(/|$)", re.MULTILINE)
_DIST_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)\.dist-info")


class Listener(NamedTuple):
    """A listening socket: where, and the process that has it (pid 0 where that is not to be seen)."""

    address: str
    port: int
    program: str
    pid: int


def listeners_of(shown: str) -> list[Listener]:
    """The lines of ``ss --listening --tcp --numeric --processes --no-header``."""
    found = []
    for line in shown.splitlines():
        fields = line.split()
        if len(fields) < 4 or ":" not in fields[3]:
            continue
        address, port = fields[3].rsplit(":", 1)
        user = _USER.search(line)
        if port.isdigit():
            # An interface may stand behind the address: 127.0.0.53%lo.
            name, pid = (user["program"], int(user["pid"])) if user else ("", 0)
            found.append(Listener(address.split("%")[0], int(port), name, pid))
    return found


def unit_of(cgroups: str) -> str:
    """The systemd service of a process by its ``/proc/PID/cgroup``; '' where it belongs to none."""
    units = _UNIT.findall(cgroups)
    return units[0][0] if units else ""


def ports_of(
    wanted: Mapping[str, str], listeners: Iterable[Listener], units: Mapping[int, str]
) -> dict[str, dict[str, Any]]:
    """Service -> where it listens, and who is in the way of the address and port that it should have.

    ``wanted`` has service and ``address:port``; ``units`` the systemd service of each process.
    """
    ports: dict[str, dict[str, Any]] = {}
    for service, place in wanted.items():
        address, _colon, number = place.rpartition(":")
        port = int(number)
        sockets = [found for found in listeners if found.port == port]
        own = [found for found in sockets if units.get(found.pid) == f"{service}.service"]
        others = [
            found
            for found in sockets
            if found not in own and (found.address in (address, *EVERYWHERE) or address in EVERYWHERE)
        ]
        ports[service] = {
            "address": address,
            "port": port,
            "listens": [found.address for found in own] == [address],
            "taken_by": [f"{found.program or 'a program'} (process {found.pid})" for found in others],
        }
    return ports


def versions_of(names: Iterable[str]) -> dict[str, str]:
    """Package -> version by the names of the ``.dist-info`` folders of an environment."""
    matches = (_DIST_INFO.fullmatch(name) for name in names)
    return {re.sub(r"[-_.]+", "-", match["name"]).lower(): match["version"] for match in matches if match}
