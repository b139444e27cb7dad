"""The VPC's resolver: names of instances, and of the private hosted zones in Route 53.

Route 53 says which names there are; each question asks the emulator. What nobody knows does not exist: a name that is
looked up must not cost a host seconds.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
import time

from sandbox.account import api
from sandbox.errors import SandboxError
from sandbox.network.bridge import OnBridge, serve_in_thread

PORT = 53
SECONDS_KEPT = 1.0
A, ANY, IN = 1, 255, 1
SERVER_FAILURE, NO_SUCH_NAME = 2, 3


class _Names:
    """Name -> address, asked for anew after a second."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.asked = 0.0
        self.lock = threading.Lock()

    def find(self, name: str) -> str | None:
        with self.lock:
            if time.monotonic() - self.asked > SECONDS_KEPT:
                self.known = api.request("names")
                self.asked = time.monotonic()
        return self.known.get(name)


NAMES = _Names()


def question(query: bytes) -> tuple[str, int, int]:
    """Name in lower case, type, and where the question ends.

    Raises:
        ValueError: the message is no question.
    """
    labels, position = [], 12
    while position < len(query) and query[position]:
        length = query[position]
        labels.append(query[position + 1 : position + 1 + length].decode("ascii", "replace"))
        position += length + 1
    if len(query) < position + 5:
        raise ValueError("a message without a question")
    (kind,) = struct.unpack_from("!H", query, position + 1)
    return ".".join(labels).lower(), kind, position + 5


def answer(query: bytes, address: str | None) -> bytes:
    """The reply: the address, no data for other types, or that there is no such name."""
    _name, kind, end = question(query)
    found = address is not None and kind in (A, ANY)
    flags = 0x8580 | (0 if address is not None else NO_SUCH_NAME)
    header = query[:2] + struct.pack("!HHHHH", flags, 1, int(found), 0, 0)
    record = b""
    if address is not None and found:
        record = struct.pack("!HHHIH", 0xC00C, A, IN, 2, 4) + socket.inet_aton(address)
    return header + query[12:end] + record


def failure(query: bytes) -> bytes:
    """The reply that nobody can say: a host asks no second time."""
    return query[:2] + struct.pack("!HHHHH", 0x8580 | SERVER_FAILURE, 0, 0, 0, 0)


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        query, connection = self.request
        try:
            name = question(query)[0]
        except ValueError:
            return
        try:
            reply = answer(query, NAMES.find(name))
        except SandboxError:
            reply = failure(query)
        connection.sendto(reply, self.client_address)


class _Server(OnBridge, socketserver.ThreadingUDPServer):
    pass


def serve(address: str) -> socketserver.BaseServer:
    """Answer at ``ADDRESS:53`` in a thread of this process until ``shutdown()``."""
    server = _Server((address, PORT), _Handler)
    return serve_in_thread(server)
