"""What a later run makes of the step in which an earlier one ended, and what is checked and unpacked on the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import extract, plan, run
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import this_host
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.stage import Stage

from tests.unit.dataset.answering import CONTENT, Server, part
from tests.unit.dataset.host import Host

MIB = 1024 * 1024


def broken(*_given: Any, **_named: Any) -> Any:
    raise TrainiumError("broken")


def state(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((host.hidden / "state.json").read_text(encoding="utf-8"))
    return found


def stopped(host: Host, monkeypatch: pytest.MonkeyPatch, step: str, **options: Any) -> None:
    """A run that ends when it comes to a step."""
    with monkeypatch.context() as patch:
        patch.setattr(run.Job, step, broken)
        with pytest.raises(TrainiumError, match="broken"):
            host.run(**options)


@pytest.mark.parametrize(
    ("step", "named", "fetched"), [("_check", "fetch", 0), ("_unpack", "unpack", 0), ("_put_in_place", "place", 0)]
)
def test_a_later_run_goes_on(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch, step: str, named: str, fetched: int
) -> None:
    url = f"{server.url}/f"
    stopped(host, monkeypatch, step, source=url)
    assert (state(host)["step"], state(host)["host"]) == (named, this_host())
    asked = len(server.asked)
    assert host.run(source=url)["fetched"] == fetched
    # The size is asked for again where the files are not known yet.
    assert len(server.asked) - asked == (1 if step == "_check" else 0)
    assert (host.destination / "f").read_bytes() == CONTENT


def test_what_another_host_unpacked_is_unpacked_again(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(host, monkeypatch, "_unpack", source=f"{server.url}/f")
    (host.hidden / "stage").mkdir(mode=0o700)
    (host.hidden / "stage" / "lost").write_bytes(b"x")
    (host.hidden / "state.json").write_text(json.dumps({**state(host), "host": "before"}), encoding="utf-8")
    assert host.run(source=f"{server.url}/f")["fetched"] == 0
    assert host.names() == ["f"]


def test_another_dataset_of_the_same_name_takes_nothing_of_the_first(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(host, monkeypatch, "_put_in_place", source=f"{server.url}/f")
    assert host.run(source=f"{server.url}/g")["fetched"] == len(CONTENT)
    assert host.names() == ["g"]


def test_what_was_fetched_in_part_is_counted_once(host: Host, server: Server) -> None:
    """The second piece is refused: of the first nothing comes again."""
    content = os.urandom(100 * 1024)

    def answer(request: Any) -> Any:
        return part(request, content) if "bytes=65536-" not in request.headers["Range"] else (403, {}, b"")

    server.answer = answer
    with pytest.raises(TrainiumError, match="must not be read"):
        host.run(source=f"{server.url}/f", connections=1)
    log = (host.hidden / "logs" / "f").read_text(encoding="ascii")
    assert log == json.dumps([len(content), '"a"', 65536]) + "\n0\n"
    server.answer = lambda request: part(request, content)
    assert host.run(source=f"{server.url}/f", connections=1)["fetched"] == len(content) - 65536
    assert (host.destination / "f").read_bytes() == content


def test_other_content_of_the_server_is_fetched_from_its_beginning(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(host, monkeypatch, "_check", source=f"{server.url}/f")
    server.answer = lambda request: part(request, CONTENT[::-1], '"b"')
    assert host.run(source=f"{server.url}/f")["fetched"] == len(CONTENT)
    assert (host.destination / "f").read_bytes() == CONTENT[::-1]


def test_a_first_run_that_fetched_nothing_leaves_no_folder(host: Host, server: Server) -> None:
    server.answer = lambda _request: (403, {}, b"")
    with pytest.raises(TrainiumError, match="must not be read"):
        host.run(source=f"{server.url}/f")
    assert not host.destination.exists()
    host.destination.mkdir()
    with pytest.raises(TrainiumError, match="must not be read"):
        host.run(source=f"{server.url}/f")
    # It was there before.
    assert list(host.destination.iterdir()) == []


# --- checksums ---


@pytest.mark.parametrize("good", [True, False])
def test_the_md5_that_s3_tells_is_compared(host: Host, server: Server, good: bool) -> None:
    tag = f'"{hashlib.md5(CONTENT if good else b"", usedforsecurity=False).hexdigest()}"'
    server.answer = lambda request: part(request, CONTENT, tag)
    options: dict[str, Any] = {
        "source": "s3://bucket/f",
        "files": [{"path": "f", "url": f"{server.url}/f", "size": len(CONTENT), "tag": tag}],
    }
    if good:
        assert host.run(**options, md5_tags=True)["files"][0]["sha256"] == ""
        return
    with pytest.raises(TrainiumError, match=r"s3://bucket/f has the MD5 \w+ and not \w+; it was deleted, check the"):
        host.run(**options, md5_tags=True)
    assert host.run(**options, md5_tags=False)["complete"]


def test_a_tag_of_a_server_that_is_not_s3_is_no_md5(host: Host, server: Server) -> None:
    server.answer = lambda request: part(request, CONTENT, f'"{32 * "0"}"')
    assert host.run(source=f"{server.url}/f", md5_tags=True)["complete"]


def test_a_wrong_archive_of_the_host_is_not_deleted(host: Host) -> None:
    archive(host, "a.tar", {"x": b"x"})
    with pytest.raises(
        TrainiumError, match=r"a\.tar has the SHA-256 \w+ and not 0+; check the checksum and the source"
    ):
        host.run(source=str(host.source / "a.tar"), checksum="0" * 64)
    assert (host.source / "a.tar").exists()


def test_more_than_there_is_room_for_is_refused_with_its_sizes(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(host, "a.tar", {"x": b"x"})
    (host.source / "b").write_bytes(bytes(MIB))
    monkeypatch.setattr(run.Place, "free", lambda _self: plan.SPARE + 3 * MIB)
    with pytest.raises(TrainiumError, match=r"The dataset \(1.0 MiB to fetch, 2.0 MiB unpacked\) needs 67.0 MiB in"):
        host.run(extracted_size="2049K")
    assert host.run(extracted_size="2M")["complete"]


# --- archives ---


def archive(
    host: Host, name: str, members: dict[str, bytes], change: Callable[[Any], None] = lambda _item: None
) -> Path:
    path = host.source / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for member, content in members.items():
                item = zipfile.ZipInfo(member)
                change(item)
                packed.writestr(item, content)
        return path
    kind = {"gz": "w:gz", "bz2": "w:bz2", "xz": "w:xz", "tgz": "w:gz"}.get(name.rpartition(".")[2], "w:")
    with tarfile.open(path, kind) as packed:  # type: ignore[call-overload]
        for member, content in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            change(info)
            packed.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "zip"])
def test_each_kind_of_archive(host: Host, kind: str) -> None:
    members = {"set/a": b"content", "set/empty": b"", "set/large": CONTENT * 300_000}
    archive(host, f"a.{kind}", members)
    host.run()
    assert {name: (host.destination / name).read_bytes() for name in host.names()} == members


def test_archives_are_kept_as_they_are_where_nothing_is_to_be_unpacked(host: Host) -> None:
    archive(host, "a.tar", {"x": b"x"})
    host.run(extract="never")
    assert host.names() == ["a.tar"]


def of_zip(mode: int) -> Callable[[zipfile.ZipInfo], None]:
    def change(item: zipfile.ZipInfo) -> None:
        # With a bit of DOS, as zip has them on Windows: Python gives a member of none the mode 0600.
        item.external_attr = mode << 16 | 0x20

    return change


def test_what_a_zip_says_of_its_members(host: Host) -> None:
    archive(host, "a.zip", {"run": b"x"}, of_zip(stat.S_IFREG | 0o700))
    archive(host, "b.zip", {"plain": b"x"}, of_zip(0))
    archive(host, "c.zip", {"link": b"plain"}, of_zip(stat.S_IFLNK | 0o777))
    archive(host, "d.zip", {"folder/": b""}, of_zip(stat.S_IFDIR | 0o700))
    host.run()
    assert stat.S_IMODE((host.destination / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE((host.destination / "plain").stat().st_mode) == 0o644
    assert os.readlink(host.destination / "link") == "plain"
    assert (host.destination / "folder").is_dir()


def test_a_zip_with_a_device_or_a_long_link_is_refused(host: Host) -> None:
    archive(host, "a.zip", {"device": b""}, of_zip(stat.S_IFCHR | 0o600))
    with pytest.raises(TrainiumError, match="'device' is neither file, directory nor link; nothing of it was put in"):
        host.run()
    archive(host, "a.zip", {"link": b"x" * 4097}, of_zip(stat.S_IFLNK | 0o777))
    with pytest.raises(TrainiumError, match="the link 'link' has a target of 4097 characters"):
        host.run()
    archive(host, "a.zip", {"link": b"x/" * 2047 + b"x"}, of_zip(stat.S_IFLNK | 0o777))
    assert host.run()["complete"]


def test_an_encrypted_zip_is_refused(host: Host) -> None:
    data = bytearray(archive(host, "a.zip", {"x": b"x"}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (host.source / "a.zip").write_bytes(data)
    with pytest.raises(TrainiumError, match="the member 'x' is encrypted"):
        host.run()


def test_an_empty_zip_is_a_dataset_of_nothing(host: Host) -> None:
    archive(host, "a.zip", {})
    assert host.run()["complete"]
    assert host.names() == []


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_the_last_member_of_a_name_wins_and_links_come_after_all_files(host: Host, kind: str) -> None:
    path = host.source / f"a.{kind}"
    with tarfile.open(path, "w:gz" if kind == "tar.gz" else "w") as packed:
        for name, content, target in (
            ("a", b"1", ""),
            *[("a", b"", "")] * 50,
            ("a", b"2", ""),
            ("hard", b"", "a"),
            ("soft", b"", "a"),
        ):
            info = tarfile.TarInfo(name)
            info.size, info.linkname = len(content), target
            info.type = {"hard": tarfile.LNKTYPE, "soft": tarfile.SYMTYPE}.get(name, tarfile.REGTYPE)
            packed.addfile(info, io.BytesIO(content))
    host.run()
    assert (host.destination / "a").read_bytes() == (host.destination / "hard").read_bytes() == b"2"
    assert (host.destination / "a").stat().st_ino == (host.destination / "hard").stat().st_ino
    assert os.readlink(host.destination / "soft") == "a"


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_a_member_of_the_same_name_and_size_waits_for_the_one_before_and_wins(
    host: Host, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(host.source / f"a.{kind}", "w:gz" if kind == "tar.gz" else "w") as packed:
        for content in (b"old", b"new"):
            info = tarfile.TarInfo("a")
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    order: list[str] = []
    second, write = Event(), Stage.write

    def slow(stage: Stage, *given: Any) -> None:
        if order:
            second.set()
        order.append("begins")
        # The first gives the second time to overtake it.
        second.wait(0 if second.is_set() else 0.5)
        write(stage, *given)
        order.append("ends")

    monkeypatch.setattr(Stage, "write", slow)
    host.run()
    assert order in (["begins", "ends"], ["begins", "ends"] * 2)
    assert (host.destination / "a").read_bytes() == b"new"


def test_an_archive_with_many_members_is_unpacked_whole(host: Host) -> None:
    archive(host, "a.tar.gz", {f"{number:03}": b"%d" % number for number in range(200)})
    host.run()
    assert [(host.destination / f"{number:03}").read_bytes() for number in range(200)] == [
        b"%d" % n for n in range(200)
    ]


@pytest.mark.parametrize("cut", [700, 2100])
def test_a_tar_that_ends_within_a_member_is_damaged(host: Host, cut: int) -> None:
    data = archive(host, "a.tar", {"x": bytes(600), "y": bytes(600)}).read_bytes()
    (host.source / "a.tar").write_bytes(data[:cut])
    with pytest.raises(TrainiumError, match=r"a\.tar is damaged"):
        host.run()
    assert not host.destination.exists()


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: data[:1300], "it ends within a header"),
        (lambda data: data[:1024] + b"?" * 512 + data[1536:], "its header at byte 1024 is damaged"),
    ],
)
def test_a_tar_with_a_bad_header_is_damaged_and_does_not_end_there(
    host: Host, kind: str, spoil: Callable[[bytes], bytes], why: str
) -> None:
    """Python's tarfile takes it for the end, and the members behind it would be missing without a word."""
    data = spoil(archive(host, "a.tar", {"x": b"x", "y": b"y", "z": b"z"}).read_bytes())
    (host.source / "a.tar").unlink()
    (host.source / f"a.{kind}").write_bytes(gzip.compress(data) if kind == "tar.gz" else data)
    with pytest.raises(TrainiumError, match=rf"a\.{kind} is damaged.*: {why}; check the source"):
        host.run()
    assert not host.destination.exists()


def test_more_members_than_are_counted_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MOST_PATHS", 2)
    archive(host, "a.tar", dict.fromkeys("ab", b""))
    assert host.run()["complete"]
    archive(host, "a.tar", dict.fromkeys("abc", b""))
    with pytest.raises(TrainiumError, match="it has more than 2 members"):
        host.run(extract="always")
