"""Serves a folder by HTTP with ranges, slowly, and writes the bytes of each answer to a log: ``PATH FIRST END``."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BLOCK = 64 * 1024


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""

    def setup(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BLOCK)
        super().setup()

    def do_GET(self) -> None:
        path = os.path.join(sys.argv[1], os.path.basename(self.path))
        if not os.path.isfile(path):
            self.send_error(404)
            return
        size = os.path.getsize(path)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(wanted.group(1)), min(int(wanted.group(2)) + 1, size)) if wanted else (0, size)
        self.send_response(206 if wanted else 200)
        self.send_header("ETag", f'"{os.stat(path).st_mtime_ns}"')
        self.send_header("Content-Length", str(end - start))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        at = start
        try:
            with open(path, "rb") as stream:
                stream.seek(start)
                while at < end:
                    block = stream.read(min(BLOCK, end - at))
                    if "slow" in path:
                        time.sleep(0.3)
                    self.wfile.write(block)
                    at += len(block)
        except OSError:
            self.close_connection = True
        with open(sys.argv[2], "a", encoding="utf-8") as log:
            log.write(f"{os.path.basename(path)} {start} {at}\n")


ThreadingHTTPServer(("", 8390), Handler).serve_forever()
