"""An archive is sent to a server that answers as Galaxy's API 3 does, by what ansible-core's client reads of it."""

from __future__ import annotations

import email
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from docs.tools import galaxy

TASK = "/api/v3/imports/collections/0123/"


class Galaxy(ThreadingHTTPServer):
    """Keeps what it got; ``ends`` is how the import ends, which it says when asked for the third time."""

    ends = "completed"
    asked = 0
    sent: tuple[bytes, str, str] = (b"", "", "")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Galaxy

    def log_message(self, *_arguments: object) -> None:
        """Nothing on the screen."""

    def answer(self, code: int, body: object) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.sent = (body, self.headers["Content-Type"], self.headers["Authorization"])
        if self.headers["Authorization"] != "Token right":
            self.answer(401, {"errors": [{"detail": "Invalid token."}]})
        else:
            self.answer(202, {"task": f"{self.server.url}{TASK}"})

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.asked == 1:
            self.answer(404, {})
        elif self.server.asked == 2:
            self.answer(200, {"state": "running", "finished_at": None})
        else:
            messages = [{"level": "WARNING", "message": "no changelog"}]
            error = {"description": "it is there already"} if self.server.ends == "failed" else None
            self.answer(200, {"state": self.server.ends, "finished_at": "now", "messages": messages, "error": error})


@pytest.fixture
def server() -> Iterator[Galaxy]:
    with Galaxy(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "trainium-cluster-0.0.1.tar.gz"
    path.write_bytes(b"\x1f\x8b\r\n--not the end--\r\n\x00")
    return path


def test_it_is_sent_whole_with_its_checksum_and_waited_for(server: Galaxy, archive: Path) -> None:
    assert galaxy.publish(archive, server.url, "right", pause=0) == ["WARNING: no changelog"]
    body, kind, _token = server.sent
    sent = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = [part for part in sent.walk() if not part.is_multipart()]
    found = {part.get_param("name", header="content-disposition"): part for part in parts}
    assert found["sha256"].get_payload() == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found["file"].get_payload(decode=True) == archive.read_bytes()
    assert found["file"].get_filename() == archive.name


def test_what_galaxy_refuses_is_one_sentence_without_the_token(
    server: Galaxy, archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.ends = "failed"
    with pytest.raises(galaxy.GalaxyError, match=r"does not take trainium-cluster-\S+: it is there already"):
        galaxy.publish(archive, server.url, "right", pause=0)
    monkeypatch.setenv("GALAXY_TOKEN", "wrong-one")
    assert galaxy.main([str(archive), "--server", server.url]) == 1
    said = capsys.readouterr()
    assert "Galaxy answers 401" in said.err
    assert "Invalid token" in said.err
    assert "wrong-one" not in said.err + said.out
