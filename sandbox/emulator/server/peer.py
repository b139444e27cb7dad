"""Which user of this machine asks: the kernel knows who has the other end of a connection.

It is asked for that one connection (sock_diag(7)); the table of all (proc(5), /proc/net/tcp) takes it ten milliseconds,
and is read where the short way has no answer. The API listens on the loopback address only, and hosts reach it through
a program of the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any

TABLE = Path("/proc/net/tcp")
READS = 3

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI")
# Both ports, both addresses (IPv4 in 16 bytes), the interface.
_ENDS = struct.Struct("!HH4s12x4s12x")
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ANSWER = struct.Struct("=4x48xIIIII")
_WAIT = 5  # seconds, for an answer that is there at once


def user(environ: dict[str, Any]) -> int | None:
    """The user id of the client of a request; None where its end is closed already, or is none of this machine's."""
    connection = environ.get("werkzeug.socket")
    if connection is not None:
        found = _asked(connection)
        if found is not None:
            return found
    try:
        client = f"{_in_table(environ['REMOTE_ADDR'])}:{int(environ['REMOTE_PORT']):04X}"
        # Which of this machine's addresses was called, only the connection says.
        own = _in_table(connection.getsockname()[0]) if connection is not None else ""
        server = f"{own}:{int(environ['SERVER_PORT']):04X}"
    except (KeyError, ValueError, OSError):
        return None
    # Entries come and go while the kernel writes the table, and it may then pass over one.
    for _attempt in range(READS):
        found = _owner(client, server)
        if found is not None:
            return found
    return None


def _asked(connection: socket.socket) -> int | None:
    """The user id of the other end of an IPv4 connection; None where the kernel does not know it, or not this way."""
    with contextlib.suppress(OSError, ValueError, struct.error):
        (client, client_port), (server, server_port) = connection.getpeername(), connection.getsockname()
        ends = _ENDS.pack(client_port, server_port, socket.inet_aton(client), socket.inet_aton(server))
        body = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends + _ANY
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_WAIT)
            kernel.send(header + body)
            return _told(kernel.recv(os.sysconf("SC_PAGESIZE")), ends)
    return None


def _told(answer: bytes, ends: bytes) -> int | None:
    """The user id in an answer of the kernel, if it is about a connection with these ends that a program holds."""
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _SOCK_DIAG_BY_FAMILY:
        return None
    about = answer[_HEADER.size + 4 :][: len(ends)]
    _expires, _received, _sent, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    # Where the connection has gone, the kernel tells of one that listens at its port; an end that its program has
    # closed is shown as root's, without an inode.
    return int(uid) if about == ends and inode else None


def _in_table(address: str) -> str:
    """An address as the table has it: in the order of the bytes in memory."""
    return f"{int.from_bytes(socket.inet_aton(address), 'little'):08X}"


def _owner(client: str, server: str) -> int | None:
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        # An end that its program has closed is shown as root's, without an inode.
        if fields[1] == client and fields[2].endswith(server) and fields[9] != "0":
            return int(fields[7])
    return None
