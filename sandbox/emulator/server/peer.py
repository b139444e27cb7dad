"""Which user of this machine asks: the kernel knows who has the other end of a connection (proc(5), /proc/net/tcp).

The API listens on the loopback address only, and hosts reach it through a program of the sandbox.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

TABLE = Path("/proc/net/tcp")
READS = 3


def user(environ: dict[str, Any]) -> int | None:
    """The user id of the client of a request; None where its end is closed already, or is none of this machine's."""
    try:
        # In the order of the bytes in memory, as the table has it.
        address = int.from_bytes(socket.inet_aton(environ["REMOTE_ADDR"]), "little")
        client = f"{address:08X}:{int(environ['REMOTE_PORT']):04X}"
        port = f":{int(environ['SERVER_PORT']):04X}"
    except (KeyError, ValueError, OSError):
        return None
    # Entries come and go while the kernel writes the table, and it may then pass over one.
    for _attempt in range(READS):
        found = _owner(client, port)
        if found is not None:
            return found
    return None


def _owner(client: str, port: str) -> int | None:
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        # An end that its program has closed is shown as root's, without an inode.
        if fields[1] == client and fields[2].endswith(port) and fields[9] != "0":
            return int(fields[7])
    return None
