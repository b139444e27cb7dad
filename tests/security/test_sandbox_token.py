"""Control calls of the emulator need its token, and a page in a browser gets no answer at all."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import lifecycle, machine
from sandbox.account import api as control
from sandbox.account import token
from sandbox.emulator.server import guard, peer
from sandbox.errors import SandboxError
from sandbox.paths import Paths
from tests.contract.conftest import Api, client

CONTROL = [
    ("GET", "/sandbox-api/health"),
    ("GET", "/sandbox-api/hosts"),
    ("GET", "/sandbox-api/calls"),
    ("POST", "/sandbox-api/clear"),
    ("DELETE", "/sandbox-api/faults"),
    ("POST", "/moto-api/reset"),
    ("GET", "/moto-api/data.json"),
]
# A launch as a page could ask for it: no header but those that need no preflight.
LAUNCH = "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.66.0.0/16"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# What comes with a request of a page, and with one after the page's name was made to lead here.
PAGES: list[dict[str, str]] = [
    {"Origin": "https://example.org"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:5199"},
    {"Referer": "https://example.org/"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Mode": "no-cors"},
    {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
    {"Host": "example.org:5199"},
    {"Host": "127.0.0.1.example.org"},
    {"Host": "aws-sandbox.example.org"},
    {"Host": "1.1.1.1"},
    {"Host": "notlocalhost"},
]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Api]:
    api = Api(0)
    yield api
    api.stop()


def ask(api: Api, method: str, path: str, headers: dict[str, str], body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=300)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def networks(api: Api) -> int:
    return len(client("ec2", api.url).describe_vpcs()["Vpcs"])


@pytest.mark.parametrize(("method", "path"), CONTROL)
@pytest.mark.parametrize("word", [None, "", "wrong", "gro\xdf"])
def test_a_control_call_needs_the_token(emulator: Api, method: str, path: str, word: str | None) -> None:
    headers = {} if word is None else {token.HEADER: word}
    status, body = ask(emulator, method, path, headers)
    assert status == 401
    assert token.HEADER in json.loads(body)["error"]


def test_a_control_call_with_the_token_is_answered(emulator: Api) -> None:
    assert ask(emulator, "GET", "/sandbox-api/health", emulator.headers)[0] == 200
    assert ask(emulator, "POST", "/moto-api/reset", emulator.headers)[0] == 200


@pytest.mark.parametrize("headers", PAGES, ids=lambda headers: "-".join(*headers.items()))
def test_a_page_in_a_browser_is_not_answered(emulator: Api, headers: dict[str, str]) -> None:
    before = networks(emulator)
    assert ask(emulator, "POST", "/", {**FORM, **headers}, LAUNCH)[0] == 403
    assert ask(emulator, "GET", f"/?{LAUNCH}", headers)[0] == 403
    # Not even with the token.
    assert ask(emulator, "GET", "/sandbox-api/calls", {**emulator.headers, **headers})[0] == 403
    assert networks(emulator) == before


def test_a_preflight_is_not_allowed(emulator: Api) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert ask(emulator, "OPTIONS", "/", headers)[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:5199",
        "localhost",
        "LOCALHOST:5199",
        "[::1]:5199",
        "aws-sandbox:5199",
        "bucket.aws-sandbox:5199",
        "10.77.0.1:5199",
    ],
)
def test_the_sandboxs_own_names_are_answered(emulator: Api, host: str) -> None:
    assert ask(emulator, "GET", "/sandbox-api/health", {**emulator.headers, "Host": host})[0] == 200


def test_no_name_at_all_is_no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "user", lambda _environ: 1000)
    assert guard.refusal({"PATH_INFO": "/"}, "word", {1000}) is None


def test_the_token_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "token"
    word = token.make(file)
    assert len(word) >= 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.make(file) == word
    assert token.renew(file) != word
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_token_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="token"):
        token.make(tmp_path / "token")
    assert not (tmp_path / "elsewhere").exists()
    token.renew(tmp_path / "token")
    assert not (tmp_path / "elsewhere").exists()


def test_the_command_line_knows_the_token(emulator: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAINIUM_SANDBOX_DIR", str(tmp_path))
    monkeypatch.setattr(control, "PORT", emulator.port)
    assert control.taken()
    # Another sandbox's emulator, or another program.
    assert not control.healthy()
    with pytest.raises(SandboxError, match=token.HEADER):
        control.request("hosts")
    Paths(tmp_path).token.write_text(f"{emulator.headers[token.HEADER]}\n", encoding="ascii")
    assert control.healthy()
    assert control.request("hosts") == []


def test_down_forgets_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "become_root", lambda: None)
    paths = Paths(tmp_path / "sandbox")
    paths.mark()
    token.make(paths.token)
    lifecycle.down(paths)
    assert not paths.token.exists()


# --- other users of the machine ---

CLIENT, SERVER = 40001, 5199
ENVIRON = {"REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": str(CLIENT), "SERVER_PORT": str(SERVER)}


def table(*rows: tuple[int, int, int, int]) -> str:
    """The table of connections, with (own port, other port, user id, inode) each."""
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
    for number, (own, other, uid, inode) in enumerate(rows):
        ends = f"0100007F:{own:04X} 0100007F:{other:04X}"
        lines.append(f"  {number}: {ends} 01 00000000:00000000 00:00000000 00000000 {uid} 0 {inode} 1 0")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        ([(CLIENT, SERVER, 1000, 77)], False),
        ([(CLIENT, SERVER, 1001, 77)], True),
        # The server's own end has its user, and is not the client's.
        ([(SERVER, CLIENT, 0, 78), (CLIENT, SERVER, 1001, 77)], True),
        # Asked and closed at once: the kernel shows root then.
        ([(CLIENT, SERVER, 0, 0)], True),
        ([(CLIENT, 80, 1000, 77)], True),
        ([], True),
    ],
)
def test_another_user_of_the_machine_is_refused(
    rows: list[tuple[int, int, int, int]], refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may launch instances has root start containers."""
    monkeypatch.setattr(peer, "TABLE", tmp_path / "tcp")
    peer.TABLE.write_text(table(*rows), encoding="ascii")
    environ = {**ENVIRON, "PATH_INFO": "/", "HTTP_HOST": "127.0.0.1:5199"}
    found = guard.refusal(environ, "token", {0, 1000})
    assert (found is not None) is refused
    assert found is None or found[0].startswith("403")


def test_an_entry_that_the_kernel_passed_over_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = iter([table(), table((CLIENT, SERVER, 1000, 77))])

    class Table:
        def read_text(self, encoding: str) -> str:
            assert encoding == "ascii"
            return next(tables)

    monkeypatch.setattr(peer, "TABLE", Table())
    assert guard.refusal({**ENVIRON, "PATH_INFO": "/", "HTTP_HOST": "127.0.0.1:5199"}, "token", {0, 1000}) is None


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def environ_of(connection: socket.socket) -> dict[str, Any]:
    """What a request has of its connection, with the table of all that is read where the kernel has no answer."""
    (address, port), (_server, own) = connection.getpeername(), connection.getsockname()
    ends = {"REMOTE_ADDR": address, "REMOTE_PORT": str(port), "SERVER_PORT": str(own)}
    return {**ends, "werkzeug.socket": connection}


@pytest.mark.parametrize("uid", sorted({os.geteuid(), 1001} if os.geteuid() == 0 else {os.geteuid()}))
def test_the_kernel_is_asked_for_one_connection(
    uid: int, listening: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for all there are: it writes them in milliseconds, for every call."""
    monkeypatch.setattr(peer, "TABLE", tmp_path / "none")
    with client_of(listening.getsockname(), uid):
        connection, _address = listening.accept()
        with connection:
            assert peer.user(environ_of(connection)) == uid


@contextlib.contextmanager
def client_of(address: tuple[str, int], uid: int) -> Iterator[None]:
    """A process of a user with a connection to an address, until the other end closes it."""
    child = os.fork()
    if child == 0:
        try:
            if uid != os.geteuid():
                os.setuid(uid)
            with socket.socket() as client:
                client.connect(address)
                client.recv(1)
        finally:
            os._exit(0)
    yield
    os.waitpid(child, 0)


def test_whoever_listens_at_the_port_of_a_client_that_is_gone_is_not_taken_for_it(listening: socket.socket) -> None:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind(("127.0.0.1", 0))
    own = client.getsockname()
    client.connect(listening.getsockname())
    connection, _address = listening.accept()
    with connection, socket.socket() as other:
        environ = environ_of(connection)
        assert peer.user(environ) == os.geteuid()
        client.close()
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(own)
        other.listen()
        assert peer.user(environ) is None


def test_of_two_servers_of_one_port_only_the_called_one_counts(
    listening: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may have the same port towards another address."""
    monkeypatch.setattr(peer, "TABLE", tmp_path / "tcp")
    monkeypatch.setattr(peer, "_asked", lambda _connection: None)
    with client_of(listening.getsockname(), os.geteuid()):
        connection, _address = listening.accept()
        with connection:
            client, server = connection.getpeername()[1], connection.getsockname()[1]
            entry = table((client, server, 1000, 77))
            peer.TABLE.write_text(entry, encoding="ascii")
            assert peer.user(environ_of(connection)) == 1000
            elsewhere = entry.replace(f"0100007F:{server:04X}", f"0200007F:{server:04X}")
            peer.TABLE.write_text(elsewhere, encoding="ascii")
            assert peer.user(environ_of(connection)) is None
