"""A stand-in for programs that have nothing to do in the sandbox: it says that it is well, where it is asked to.

Sidecars of CSI drivers, and Volcano's scheduler (Kubernetes' own has a profile of that name).
"""

from __future__ import annotations

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: object) -> None:
        """Say nothing of each request."""


def port(arguments: list[str]) -> int | None:
    """The port of the health checks that the arguments name, as livenessprobe (--health-port) takes them."""
    found = re.search(r"--(?:health-port|healthz-address|http-endpoint)[= ]\S*?(\d+)(?:\s|$)", " ".join(arguments))
    return int(found[1]) if found else None


def main() -> int:
    number = port(sys.argv[1:])
    if number is None:
        threading.Event().wait()
    else:
        ThreadingHTTPServer(("", number), _Handler).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
