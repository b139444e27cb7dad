"""An HTTP server for parts of files that counts what it sends, and ends connections when it is told to."""

from __future__ import annotations

import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BLOCK = 16 * 1024


class RangeServer:
    """Serves ``files`` (path to content) at ``url``; ``sent`` has (path, first byte, last byte + 1) of each answer."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.sent: list[tuple[str, int, int]] = []
        self.requests: list[str] = []
        # Bytes sent in all at which the connection that sends them is ended, in order.
        self.cuts: list[int] = []
        self.refusals: list[tuple[int, bytes]] = []
        self.headers: dict[str, str] = {}
        self.ranges = True
        # Seconds that a block takes.
        self.pause = 0.0
        self._lock = threading.Lock()
        self._total = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

            def setup(self) -> None:
                # What a dead client did not read counts as sent: little of it fits into the buffer.
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BLOCK)
                super().setup()

            def do_GET(self) -> None:
                outer.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0].lstrip("/")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        with self._lock:
            self.requests.append(request.path)
            refusal = self.refusals.pop(0) if self.refusals else None
        if refusal is None and path not in self.files:
            refusal = (404, b"")
        if refusal is None and "expired" in request.path:
            refusal = (403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
        if refusal:
            self._head(request, refusal[0], len(refusal[1]), {})
            request.wfile.write(refusal[1])
            return
        content = self.files[path]
        start, end = 0, len(content)
        headers = {"ETag": f'"{len(content)}"', **self.headers}
        if wanted and self.ranges:
            start, end = int(wanted.group(1)), min(int(wanted.group(2)) + 1, len(content))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self._head(request, 206 if wanted and self.ranges else 200, end - start, headers)
        at = start
        try:
            while at < end:
                block = content[at : min(at + BLOCK, end)]
                if self._cut(len(block)):
                    request.wfile.flush()
                    request.close_connection = True
                    request.connection.shutdown(socket.SHUT_RDWR)
                    return
                time.sleep(self.pause)
                request.wfile.write(block)
                at += len(block)
        except OSError:
            request.close_connection = True
        finally:
            with self._lock:
                self.sent.append((path, start, at))

    def _cut(self, size: int) -> bool:
        with self._lock:
            self._total += size
            if self.cuts and self._total >= self.cuts[0]:
                self.cuts.pop(0)
                return True
            return False

    @staticmethod
    def _head(request: BaseHTTPRequestHandler, status: int, length: int, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            request.send_header(name, value)
        request.end_headers()

    def total(self) -> int:
        """Bytes of content that left the server, without those that only asked for the size."""
        with self._lock:
            return sum(end - start for _path, start, end in self.sent if end - start > 1)
