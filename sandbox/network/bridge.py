"""Servers on a bridge's address, which comes into being with the first host of its network."""

from __future__ import annotations

import socket
import socketserver
import threading
from typing import TypeVar

IP_FREEBIND = 15  # <linux/in.h>: bind to an address that does not exist yet
Server = TypeVar("Server", bound=socketserver.BaseServer)


class OnBridge(socketserver.TCPServer):
    """To be named before a server of TCP or UDP with threads."""

    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        super().server_bind()


def serve_in_thread(server: Server) -> Server:
    """Serve in a thread of this process until ``shutdown()``."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
