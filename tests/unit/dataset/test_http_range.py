"""Parts of files over HTTP, from a server that sends elsewhere, has something else by now, or never has time."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import fetch
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.http_range import Client, HttpError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import File

from tests.unit.dataset.answering import CONTENT, Server, part, read


def test_a_part_is_asked_for_of_the_content_that_was_found(server: Server) -> None:
    assert read(f"{server.url}/f") == b"2345"
    assert server.asked == [("/f", "bytes=2-5", '"a"')]


@pytest.mark.parametrize(
    ("content", "tag"), [(CONTENT, '"b"'), (CONTENT + b"x", '"a"')], ids=["another tag", "another size"]
)
def test_other_content_is_refused_whatever_the_server_makes_of_if_match(
    server: Server, content: bytes, tag: str
) -> None:
    server.answer = lambda request: part(request, content, tag)
    with pytest.raises(HttpError, match="is not what it was when its transfer began"):
        read(f"{server.url}/f")


def test_all_of_a_file_is_no_part_of_it(server: Server) -> None:
    server.answer = lambda _request: (200, {"ETag": '"a"'}, CONTENT)
    with pytest.raises(HttpError, match="gave all of it where a part was asked for"):
        read(f"{server.url}/f")
    assert read(f"{server.url}/f", 0, len(CONTENT)) == CONTENT


def test_where_it_was_sent_to_is_asked_from_then_on(server: Server) -> None:
    server.answer = lambda request: part(request) if request.path == "/g" else (302, {"Location": "/g"}, b"")
    client = Client(10)
    for _time in range(2):
        assert b"".join(client.read(f"{server.url}/f", 2, 6, len(CONTENT), "")) == b"2345"
    client.close()
    assert [path for path, *_more in server.asked] == ["/f", "/g", "/g"]


@pytest.mark.parametrize(
    ("location", "why"),
    [("file:///etc/passwd", "redirects to file:"), ("ftp://x/y", "redirects to ftp:"), ("/f", "more than 5 times")],
)
def test_no_other_place_is_read_and_none_for_ever(server: Server, location: str, why: str) -> None:
    server.answer = lambda _request: (302, {"Location": location}, b"")
    with pytest.raises(HttpError, match=why):
        read(f"{server.url}/f")
    assert len(server.asked) <= 6


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_server_that_never_has_time_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(fetch, "LONGEST_PAUSE", 0.001)
    server.answer = lambda _request: (status, {}, b"")
    with pytest.raises(TrainiumError, match=rf"f can not be reached: the server answers {status} "):
        fetch.probe([File("f", f"{server.url}/f", -1, "", "", "f")], 1, 10)
    assert len(server.asked) == fetch.FRUITLESS_TRIES


def test_what_is_refused_is_asked_once(server: Server) -> None:
    server.answer = lambda _request: (403, {}, b"")
    with pytest.raises(HttpError, match="must not be read"):
        fetch.probe([File("f", f"{server.url}/f", -1, "", "", "f")], 1, 10)
    assert len(server.asked) == 1
