"""The AWS API inside a VPC: what reaches the network's first address goes to the emulator."""

from __future__ import annotations

import shutil
import socket
import socketserver
import threading
from contextlib import suppress

from sandbox.account import api
from sandbox.network.bridge import OnBridge, serve_in_thread

# Without a dot: before a dot the emulator would read the name of a bucket.
NAME = "aws-sandbox"


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with socket.create_connection((api.HOST, api.PORT)) as emulator:
            join(self.request, emulator)


def join(one: socket.socket, other: socket.socket) -> None:
    """Be the connection of two sockets until both sides have ended it."""
    threads = [threading.Thread(target=_carry, args=pair, daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Bytes from one side to the other until it has said everything."""
    try:
        with source.makefile("rb", buffering=0) as reader, target.makefile("wb", buffering=0) as writer:
            shutil.copyfileobj(reader, writer)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side went away, and whoever waits for it is told.
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


class _Server(OnBridge, socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def verify_request(self, request: object, client_address: object) -> bool:
        """Hosts only: whoever has an address of this machine asks the API itself, which knows its users."""
        assert isinstance(client_address, tuple)
        with socket.socket() as probe:
            try:
                probe.bind((client_address[0], 0))
            except OSError:
                return True
        return False


def serve(address: str) -> socketserver.BaseServer:
    """Forward ``ADDRESS`` at the emulator's port in a thread of this process until ``shutdown()``."""
    server = _Server((address, api.PORT), _Handler)
    return serve_in_thread(server)
