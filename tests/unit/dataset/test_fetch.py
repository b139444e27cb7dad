"""Pieces of files over several connections: what is tried again, what is given up, and what stays."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import fetch
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.fetch import (
    Fetch,
    Store,
    disk_error,
    probe,
    verify,
)
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import File

from tests.open_files import descriptors, open_paths
from tests.unit.dataset.answering import CONTENT, Server, part

Answer = tuple[int, dict[str, str], bytes]
LARGE = bytes(range(256)) * 1024
KIB = 1024


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(fetch, "LONGEST_PAUSE", 0.0)
    work = Folder(os.open(tmp_path, os.O_RDONLY))
    yield Store(work)
    work.close()


def file(server: Server, size: int = len(LARGE), name: str = "f") -> File:
    return File(name, f"{server.url}/{name}", size, '"a"', "", f"bucket/{name}")


class Told:
    """What was said on the way."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int, int, str]] = []

    def __call__(self, phase: str, done: int, total: int, note: str) -> None:
        self.lines.append((phase, done, total, note))


def bring(
    store: Store, files: list[File], single: frozenset[str] = frozenset(), connections: int = 2
) -> tuple[Fetch, Told]:
    told = Told()
    work = Fetch(store, 128 * KIB, connections, 10, told)
    work.run(files, single)
    return work, told


def test_all_pieces_make_the_file_and_nothing_stays_open(server: Server, store: Store, tmp_path: Path) -> None:
    server.answer = lambda request: part(request, LARGE)
    before = open_paths(), descriptors()
    work, told = bring(store, [file(server), file(server, name="g")])
    assert (tmp_path / "parts" / "f").read_bytes() == LARGE
    assert (tmp_path / "parts" / "g").read_bytes() == LARGE
    assert work.fetched == 2 * len(LARGE)
    assert work.plain == {"f", "g"}
    assert told.lines[0] == ("fetching", 0, 2 * len(LARGE), "")
    assert told.lines[-1] == ("fetching", 2 * len(LARGE), 2 * len(LARGE), "")
    assert sorted(str(asked) for path, asked, _tag in server.asked if path == "/f") == sorted(
        f"bytes={start}-{start + 64 * KIB - 1}" for start in range(0, len(LARGE), 64 * KIB)
    )
    assert open_paths() == before[0]
    # The server's own ends of the connections stay open a moment longer.
    until = time.monotonic() + 60
    while descriptors() > before[1]:
        assert time.monotonic() < until
        time.sleep(0.01)
    # Nothing is fetched a second time.
    asked = len(server.asked)
    assert bring(store, [file(server)])[0].fetched == 0
    assert len(server.asked) == asked
    assert store.done(file(server)) == len(LARGE)
    assert store.done(file(server)._replace(tag='"b"')) == 0
    assert not store.is_empty()
    store.drop(file(server))
    assert store.done(file(server)) == 0
    store.clear()
    assert store.is_empty()


def test_an_empty_file_is_one(server: Server, store: Store, tmp_path: Path) -> None:
    work, _told = bring(store, [file(server, 0)])
    assert (tmp_path / "parts" / "f").read_bytes() == b""
    assert work.fetched == 0
    assert server.asked == []


def test_a_connection_that_fails_is_made_again_and_told(server: Server, store: Store, tmp_path: Path) -> None:
    left = threading.Semaphore(3)

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        return (503, {}, b"") if left.acquire(blocking=False) else part(request, LARGE)

    server.answer = answer
    _work, told = bring(store, [file(server)], connections=1)
    assert (tmp_path / "parts" / "f").read_bytes() == LARGE
    notes = [note for *_more, note in told.lines if note]
    assert notes
    assert set(notes) == {"trying again after: the server answers 503 Service Unavailable"}
    # Once it goes on that is no news.
    assert told.lines[-1][3] == ""


def test_a_piece_that_brings_nothing_is_given_up(server: Server, store: Store) -> None:
    server.answer = lambda _request: (503, {}, b"")
    with pytest.raises(TrainiumError, match=r"^bucket/f was not fetched: the server answers 503 .*; check the network"):
        bring(store, [file(server, 10)], connections=1)
    assert len(server.asked) == fetch.FRUITLESS_TRIES


def test_tries_that_bring_something_are_not_counted(server: Server, store: Store, tmp_path: Path) -> None:
    """Each answer ends after one byte: far more tries than are given to one that brings none."""

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        status, headers, body = part(request)
        request.close_connection = True
        return status, {**headers, "Content-Length": str(len(body))}, body[:1]

    server.answer = answer
    work, _told = bring(store, [file(server, len(CONTENT))], connections=1)
    assert (tmp_path / "parts" / "f").read_bytes() == CONTENT
    assert work.fetched == len(CONTENT)
    assert len(server.asked) == len(CONTENT)


def test_a_server_that_gives_no_parts_is_asked_from_the_beginning(server: Server, store: Store, tmp_path: Path) -> None:
    left = threading.Semaphore(1)

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        if left.acquire(blocking=False):
            request.close_connection = True
            return 200, {"ETag": '"a"', "Content-Length": str(len(LARGE))}, LARGE[:1000]
        return 200, {"ETag": '"a"'}, LARGE

    server.answer = answer
    work, told = bring(store, [file(server)], frozenset({"f"}))
    assert (tmp_path / "parts" / "f").read_bytes() == LARGE
    assert {asked for _path, asked, _tag in server.asked} == {f"bytes=0-{len(LARGE) - 1}"}
    # What came twice was fetched twice, and is there once.
    assert work.fetched == len(LARGE) + 1000
    assert told.lines[-1][1:3] == (len(LARGE), len(LARGE))


def test_one_that_fails_ends_the_others(server: Server, store: Store) -> None:
    server.answer = lambda request: (403, {}, b"") if request.path == "/f" else part(request, LARGE)
    with pytest.raises(TrainiumError, match="bucket/f must not be read"):
        bring(store, [file(server), *(file(server, name=f"g{number}") for number in range(20))], connections=1)
    assert len(server.asked) == 1


def test_a_local_file_is_copied_and_one_that_shrinks_is_told(server: Server, store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(LARGE)
    local = File("f", str(source), len(LARGE), "1", "", str(source))
    bring(store, [local])
    assert (tmp_path / "parts" / "f").read_bytes() == LARGE
    with pytest.raises(TrainiumError, match="source became shorter while it was copied; run again"):
        bring(store, [local._replace(path="g", size=len(LARGE) + 1)])


def test_a_disk_that_is_full_is_told() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        assert str(disk_error(OSError(code, "x"), "what was fetched")) == (
            "The disk is full, what was fetched does not fit; make room or take a larger volume, and run again"
        )
    told = str(disk_error(OSError(errno.EROFS, "Read-only file system", "/data"), "the dataset"))
    assert told == "The dataset can not be written: Read-only file system (/data)"
    assert str(disk_error(OSError("odd"), "the dataset")) == "The dataset can not be written: odd (no name)"


def test_sizes_are_asked_for_where_nobody_has_told_them(server: Server) -> None:
    server.answer = lambda request: (200, {"ETag": '"w"'}, CONTENT) if request.path == "/w" else part(request)
    files = [file(server, -1, "u"), file(server, 7, "k"), file(server, -1, "w")]
    known, single = probe(files, 2, 10)
    assert [(one.path, one.size, one.tag) for one in known] == [("u", 10, '"a"'), ("k", 7, '"a"'), ("w", 10, '"w"')]
    assert single == {"w"}
    assert sorted(path for path, *_more in server.asked) == ["/u", "/w"]


def test_what_was_checked_is_told_by_path(server: Server, store: Store, tmp_path: Path) -> None:
    server.answer = lambda request: part(request, LARGE)
    known = file(server)
    bring(store, [known])
    told = Told()
    assert verify(store, [known], set(), 1, told) == {}
    assert told.lines == []
    right = hashlib.sha256(LARGE).hexdigest()
    assert verify(store, [known._replace(sha256=right), known._replace(path="g")], {"g"}, 1, told) == {"f": right}
    assert told.lines == [("checking", len(LARGE), len(LARGE), "")]
    # An ETag of parts is no MD5, whatever the server says.
    assert verify(store, [known._replace(tag=f'"{"0" * 32}-2"')], {"f"}, 1, told) == {}
    with pytest.raises(TrainiumError, match="has the SHA-256"):
        verify(store, [known._replace(sha256="0" * 64)], set(), 1, told)
    assert not (tmp_path / "parts" / "f").exists()
    assert not (tmp_path / "logs" / "f").exists()
