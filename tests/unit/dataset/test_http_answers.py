"""What is made of each answer of a server: size, a sentence for the user, or another try."""

from __future__ import annotations

import base64
import http.client
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import http_range
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.http_range import (
    READ_BYTES,
    Client,
    CutError,
    Found,
    HttpError,
)

from tests.unit.dataset.answering import CONTENT, Server, part, read

Answer = tuple[int, dict[str, str], bytes]


def found(server: Server, name: str = "") -> Found:
    client = Client(10)
    client.name = name
    try:
        return client.probe(f"{server.url}/f?X-Amz-Signature=1")
    finally:
        client.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((206, {"ETag": '"a"', "Content-Range": "bytes 0-0/77"}, b"x"), Found(77, '"a"', True)),
        ((206, {"Content-Range": " bytes 0-0/77 "}, b"x"), Found(77, "", True)),
        ((200, {"ETag": '"a"'}, CONTENT), Found(10, '"a"', False)),
        # Servers say so of an empty file, of which there is no first byte.
        ((416, {"Content-Range": "bytes */0"}, b""), Found(0, "", True)),
        ((416, {"Content-Range": "bytes */35", "ETag": '"b"'}, b""), Found(35, '"b"', True)),
        ((416, {}, b""), Found(0, "", True)),
    ],
)
def test_the_size_of_a_file(server: Server, answer: Answer, expected: Found) -> None:
    server.answer = lambda _request: answer
    assert found(server) == expected
    assert server.asked == [("/f?X-Amz-Signature=1", "bytes=0-0", None)]


@pytest.mark.parametrize(
    "answer", [(206, {"Content-Range": "bytes 0-0/*"}, b"x"), (206, {}, b"x"), (200, {"Content-Length": ""}, b"x")]
)
def test_a_file_whose_size_nobody_tells_is_not_fetched(server: Server, answer: Answer) -> None:
    server.answer = lambda _request: answer
    with pytest.raises(HttpError, match=rf"^{server.url}/f was not fetched: its server does not tell its size; "):
        found(server)
    with pytest.raises(HttpError, match=r"^s3://bucket/f was not fetched"):
        found(server, "s3://bucket/f")


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (403, "<Message>Request has expired</Message>", "The address of b/f has expired; run again"),
        (400, "ExpiredToken", "The address of b/f has expired"),
        (401, "TOKEN EXPIRED", "The address of b/f has expired"),
        (404, "expired", "There is no b/f (HTTP 404); check the source"),
        (410, "", "There is no b/f (HTTP 410)"),
        (401, "", "b/f must not be read (HTTP 401 Unauthorized); check the permissions of its source"),
        (403, "", "b/f must not be read (HTTP 403 Forbidden)"),
        (412, "", "b/f is not what it was when its transfer began; run again to fetch it anew"),
        (416, "", "b/f is not what it was"),
        (400, "", "b/f was not fetched: HTTP 400 Bad Request"),
        (418, "", "b/f was not fetched: HTTP 418"),
    ],
)
def test_a_refusal_is_a_sentence(server: Server, status: int, text: str, said: str) -> None:
    server.answer = lambda _request: (status, {}, text.encode())
    client = Client(10)
    client.name = "b/f"
    with pytest.raises(HttpError) as error:
        list(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_server_that_is_busy_may_be_asked_again(server: Server, status: int) -> None:
    server.answer = lambda _request: (status, {}, b"")
    with pytest.raises(CutError, match=f"^the server answers {status} "):
        read(f"{server.url}/f")


@pytest.mark.parametrize(("tag", "sent"), [('"a"', '"a"'), ('W/"a"', None), ("", None)])
def test_a_weak_tag_is_compared_and_not_sent(server: Server, tag: str, sent: str | None) -> None:
    """If-Match compares strongly (RFC 9110, 13.1.1), and no weak tag is the same as itself then."""
    server.answer = lambda request: part(request, tag=tag or '"any"')
    assert read(f"{server.url}/f", tag=tag) == b"2345"
    assert server.asked == [("/f", "bytes=2-5", sent)]


def test_a_server_that_sends_no_tag_any_more_is_believed(server: Server) -> None:
    server.answer = lambda request: (206, {"Content-Range": "bytes 2-5/10"}, part(request)[2])
    assert read(f"{server.url}/f") == b"2345"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, False),
        ({"x-amz-server-side-encryption": "AES256"}, False),
        ({"x-amz-server-side-encryption": "aws:kms"}, True),
        ({"x-amz-server-side-encryption": "aws:kms:dsse"}, True),
        ({"x-amz-server-side-encryption-customer-algorithm": "AES256"}, True),
    ],
)
def test_whether_a_tag_may_be_an_md5(server: Server, headers: dict[str, str], own: bool) -> None:
    """ "Checking object integrity" of the S3 guide: it is none with a key of KMS or of the customer."""

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        status, known, body = part(request)
        return status, {**known, **headers}, body

    server.answer = answer
    client = Client(10)
    list(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    assert client.own_key is own
    client.close()


def test_a_connection_that_ends_early_is_cut(server: Server) -> None:
    def answer(request: BaseHTTPRequestHandler) -> Answer:
        request.close_connection = True
        return 206, {"Content-Range": "bytes 2-5/10", "Content-Length": "4"}, b"23"

    server.answer = answer
    client = Client(10)
    blocks: list[bytes] = []
    with pytest.raises(CutError):
        blocks.extend(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    assert client._connection is None


def test_nobody_who_listens_is_a_cut(server: Server) -> None:
    server.stop()
    with pytest.raises(CutError, match="refused"):
        read(f"{server.url}/f")


def test_who_asks_is_told_once_and_never_in_the_path(server: Server) -> None:
    url = server.url.replace("://", "://ann:a%2Fb@")
    assert read(f"{url}/f") == b"2345"
    (headers,) = server.headers
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"ann:a/b").decode()
    assert headers["User-Agent"] == "trainium.cluster"
    # Of a compressed answer no byte is where it should be.
    assert headers["Accept-Encoding"] == "identity"
    assert server.asked[0][0] == "/f"


def test_a_name_without_a_password_is_one_as_well(server: Server) -> None:
    read(server.url.replace("://", "://ann@") + "/f")
    assert server.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"ann:").decode()


@pytest.mark.parametrize(("path", "why"), [("a b", "InvalidURL"), ("ü", "UnicodeEncodeError")])
def test_an_address_with_odd_characters_is_refused_without_its_secrets(server: Server, path: str, why: str) -> None:
    with pytest.raises(HttpError) as error:
        read(f"{server.url}/{path}?X-Amz-Signature=1")
    assert str(error.value) == f"{server.url}/{path} was not fetched: {why}; check its characters"


@pytest.mark.parametrize(
    "url",
    ["https://ann:half/half@files.example/f", "https://files.example:99999/f", "http://[::1/f", "http://a b.example/f"],
)
def test_an_address_that_cannot_be_read_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(HttpError, match="check its characters") as error:
        read(f"{url}?X-Amz-Signature=1")
    assert "half" not in str(error.value) and "Signature" not in str(error.value)


def test_a_certificate_that_nobody_vouches_for_is_told_as_such(server: Server, tmp_path: Path) -> None:
    """It is an OSError and a ValueError as well; a clock or a proxy may be put right, so that it is tried again."""
    server.secure(tmp_path)
    with pytest.raises(CutError, match="CERTIFICATE_VERIFY_FAILED"):
        read(f"{server.url}/f")


@pytest.fixture
def proxied(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://ann:word@"))
    return server


def test_a_proxy_is_asked_for_the_whole_address(proxied: Server) -> None:
    assert read("http://files.example:8080/f?a=1") == b"2345"
    assert proxied.asked[0][0] == "http://files.example:8080/f?a=1"
    assert proxied.headers[0]["Proxy-Authorization"] == "Basic " + base64.b64encode(b"ann:word").decode()
    assert read("http://files.example") == b"2345"
    assert proxied.asked[1][0] == "http://files.example:80/"


def test_hosts_without_the_proxy_are_asked_themselves(proxied: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert read(f"{proxied.url}/f") == b"2345"
    assert "Proxy-Authorization" not in proxied.headers[0]


def test_https_goes_through_a_tunnel_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def connect(connection: http.client.HTTPSConnection) -> None:
        made.append(connection)
        raise OSError("no such proxy")

    monkeypatch.setattr(http.client.HTTPSConnection, "connect", connect)
    monkeypatch.setenv("https_proxy", "http://ann:word@proxy.example:3128")
    with pytest.raises(CutError, match="no such proxy"):
        read("https://files.example/f")
    (connection,) = made
    assert (connection.host, connection.port) == ("proxy.example", 3128)
    assert (connection._tunnel_host, connection._tunnel_port) == ("files.example", 443)
    assert connection._tunnel_headers["Proxy-Authorization"].startswith("Basic ")
    monkeypatch.delenv("https_proxy")
    with pytest.raises(CutError):
        read("https://files.example:8443/f")
    assert (made[1].host, made[1].port, made[1]._tunnel_host) == ("files.example", 8443, None)


def test_one_connection_serves_until_the_server_is_another(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    kept = http_range._connect

    def connect(address: Any, *more: Any) -> Any:
        made.append(address.host)
        return kept(address, *more)

    monkeypatch.setattr(http_range, "_connect", connect)
    client = Client(10)
    for host in ("127.0.0.1", "127.0.0.1", "localhost"):
        url = server.url.replace("127.0.0.1", host)
        assert b"".join(client.read(f"{url}/f", 2, 6, len(CONTENT), "")) == b"2345"
    client.close()
    assert made == ["127.0.0.1", "localhost"]


def test_a_kept_connection_that_the_server_has_ended_is_made_anew(server: Server) -> None:
    def answer(request: BaseHTTPRequestHandler) -> Answer:
        request.close_connection = True
        return part(request)

    server.answer = answer
    client = Client(10)
    for _time in range(3):
        assert b"".join(client.read(f"{server.url}/f", 2, 6, len(CONTENT), "")) == b"2345"
    client.close()
    assert len(server.asked) == 3


def test_what_is_long_and_not_wanted_is_not_read(server: Server) -> None:
    """A server without ranges sends all of a file that was asked for its size alone."""
    server.answer = lambda _request: (200, {}, bytes(READ_BYTES + 1))
    client = Client(10)
    assert client.probe(f"{server.url}/f").size == READ_BYTES + 1
    assert client._connection is None
    server.answer = lambda _request: (200, {}, bytes(READ_BYTES))
    client.probe(f"{server.url}/f")
    assert client._connection is not None
    client.close()


def test_a_place_that_refuses_is_not_kept(server: Server) -> None:
    """The place to which a server sent may have expired: the next try asks the server again."""
    client = Client(10)
    server.answer = lambda request: part(request) if request.path == "/g" else (302, {"Location": "/g"}, b"")
    list(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    server.answer = lambda _request: (503, {}, b"")
    with pytest.raises(CutError):
        list(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    server.answer = part
    list(client.read(f"{server.url}/f", 2, 6, len(CONTENT), ""))
    assert [path for path, *_more in server.asked] == ["/f", "/g", "/g", "/f"]
    client.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_kind_of_redirection_is_followed(server: Server, status: int) -> None:
    server.answer = lambda request: part(request) if request.path == "/g" else (status, {"Location": "g"}, b"")
    assert read(f"{server.url}/f") == b"2345"


def test_a_redirection_to_nowhere_is_no_answer(server: Server) -> None:
    server.answer = lambda _request: (302, {}, b"")
    with pytest.raises(HttpError, match="was not fetched: HTTP 302"):
        read(f"{server.url}/f")
