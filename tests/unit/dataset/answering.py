"""A server that answers as a test says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._dataset.http_range import Client
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CONTENT = b"0123456789"
Answer = Callable[[BaseHTTPRequestHandler], "tuple[int, dict[str, str], bytes]"]


class Server:
    """Answers as a test says; ``asked`` has path, range and If-Match of each request, ``headers`` all of them."""

    def __init__(self) -> None:
        self.answer: Answer = part
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.headers: list[Message] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

            def do_GET(self) -> None:
                outer.headers.append(self.headers)
                outer.asked.append((self.path, self.headers["Range"], self.headers["If-Match"]))
                status, headers, body = outer.answer(self)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    # An empty one is not sent.
                    if value:
                        self.send_header(name, value)
                if not headers.get("Content-Length", "0"):
                    self.close_connection = True
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def secure(self, folder: Path) -> None:
        """From now on it speaks TLS, with a certificate that it has signed itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]), datetime.now(timezone.utc)
        signed = x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
        ).sign(key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / "pem").write_bytes(private + signed.public_bytes(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def part(
    request: BaseHTTPRequestHandler, content: bytes = CONTENT, tag: str = '"a"'
) -> tuple[int, dict[str, str], bytes]:
    start, _minus, end = str(request.headers["Range"]).removeprefix("bytes=").partition("-")
    body = content[int(start) : int(end) + 1]
    return 206, {"ETag": tag, "Content-Range": f"bytes {start}-{end}/{len(content)}"}, body


def read(url: str, start: int = 2, end: int = 6, tag: str = '"a"') -> bytes:
    """Bytes of a file that has CONTENT."""
    client = Client(10)
    try:
        return b"".join(client.read(url, start, end, len(CONTENT), tag))
    finally:
        client.close()
