"""Archives that were made to hurt: none writes outside of the destination, and none fills the disk."""

from __future__ import annotations

import gzip
import io
import os
import resource
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import archive_members, plan, run, run_host

MIB = 1024 * 1024
Make = Callable[[tarfile.TarFile], None]


class Status:
    """Keeps what the work says of itself."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def write(self, state: dict[str, Any]) -> None:
        self.state = dict(state)


class Host:
    """A destination, and a folder beside it that must stay as it is."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.destination, self.outside = folder / "source", folder / "up" / "destination", folder / "up"
        self.source.mkdir()
        self.outside.mkdir()
        self.monkeypatch = monkeypatch
        # One archive after the other, in the order of their names.
        monkeypatch.setattr(run, "WORKERS", 1)
        # Of all disks of this machine.
        monkeypatch.setattr(os, "sync", lambda: None)

    def tar(self, name: str, make: Make, kind: str = "") -> None:
        (self.source / name).parent.mkdir(parents=True, exist_ok=True)
        path = self.source / name
        with tarfile.open(path, "w:gz") if kind == "gz" else tarfile.open(path, "w") as archive:
            make(archive)

    def take(self, **options: Any) -> str:
        """Why the dataset was refused, '' where it is in place."""
        params = {
            **dict.fromkeys(("name", "checksum", "extracted_size", "owner", "group"), ""),
            "source": str(self.source),
            "destination": str(self.destination),
            "checksums": {},
            "md5_tags": False,
            "extract": "auto",
            "chunk_size": "1M",
            "connections": 2,
            "timeout": 5,
            **options,
        }
        request = run_host._request(params)
        place = run.Place(request["destination"], request["name"])
        files = plan.files_of(list(run_host._items(request, None)), "", {})
        status = Status()
        run.Job(request, files, place, run.Telling(status)).run(place.make(request["owner_ids"]))  # type: ignore[arg-type]
        assert status.state["ended"]
        return str(status.state.get("error", ""))

    def room(self, size: int) -> None:
        """From now on the disk has ``size`` bytes, beside what is always left free."""
        self.monkeypatch.setattr(run.Place, "free", lambda _self: size + plan.SPARE)

    def found(self) -> set[str]:
        """What is there outside of the destination."""
        return {name for name in os.listdir(self.outside) if name != "destination"}

    def written(self) -> int:
        """Bytes in the destination, hidden folder and all."""
        return sum(path.lstat().st_size for path in self.destination.rglob("*") if path.is_file())


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A bomb that goes off must not fill the disk of whoever runs this.
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * MIB, limits[1]))
    yield Host(tmp_path, monkeypatch)
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def file(name: str, content: bytes = b"x", **more: Any) -> Make:
    def make(archive: tarfile.TarFile) -> None:
        item = tarfile.TarInfo(name)
        item.size = len(content)
        for key, value in more.items():
            setattr(item, key, value)
        archive.addfile(item, io.BytesIO(content))

    return make


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Make:
    return file(name, b"", type=kind, linkname=target)


def folder(name: str) -> Make:
    return file(name, b"", type=tarfile.DIRTYPE)


# --- several archives, one folder ---


def test_three_archives_that_lead_out_together(host: Host) -> None:
    """The first makes a link, the second a link below it that climbs, the third writes through both."""
    host.tar("1.tar", link("p", "."))
    host.tar("2.tar", link("p/q/up", "../../.."))
    host.tar("3.tar", file("q/up/escaped"))
    assert "1.tar" not in host.take(), "the first is no danger alone"
    assert not any("escaped" in names for _top, _folders, names in os.walk(host.outside.parent))
    assert "lies below 'p', which is no directory" in host.take()


@pytest.mark.parametrize("kind", ["", "gz"])
def test_an_archive_does_not_write_through_the_link_of_another(host: Host, kind: str) -> None:
    (host.outside / "target").mkdir()
    host.tar("a.tar", link("set", "elsewhere"))
    host.tar(f"b.tar{'.' + kind if kind else ''}", file("set/x"), kind)
    assert "lies below 'set', which is no directory" in host.take()
    assert host.found() == {"target"}


def test_an_archive_makes_no_link_where_another_archive_lies(host: Host) -> None:
    host.tar("a.tar", link("sub", "other"))
    host.tar("sub/b.tar", file("x"))
    assert "there twice" in host.take()


def test_a_file_of_the_source_is_not_moved_through_a_link(host: Host) -> None:
    host.tar("a.tar", link("sub", "other"))
    (host.source / "sub").mkdir()
    (host.source / "sub" / "plain.txt").write_text("plain")
    assert "there twice" in host.take()


def test_archives_share_folders_and_files_that_are_the_same(host: Host) -> None:
    def make(own: str) -> Make:
        def fill(archive: tarfile.TarFile) -> None:
            for member in (folder("set"), file("set/README"), file(f"set/{own}")):
                member(archive)

        return fill

    for name in ("a.tar", "b.tar"):
        host.tar(name, make(name))
    assert host.take() == ""
    assert sorted(path.name for path in (host.destination / "set").iterdir()) == ["README", "a.tar", "b.tar"]


def test_the_links_of_an_archive_are_kept(host: Host) -> None:
    def make(archive: tarfile.TarFile) -> None:
        file("set/a", b"content")(archive)
        link("set/soft", "a")(archive)
        link("set/hard", "set/a", tarfile.LNKTYPE)(archive)

    host.tar("a.tar", make)
    assert host.take() == ""
    assert os.readlink(host.destination / "set" / "soft") == "a"
    assert (host.destination / "set" / "hard").read_bytes() == b"content"


@pytest.mark.parametrize(
    "name",
    [
        ".trainium-dataset/other/state.json",
        "./.trainium-dataset",
        ".trainium-dataset/x/stage/y",
        "wiki/.trainium-dataset/wiki/complete.json",
    ],
)
def test_the_folder_of_the_states_is_not_for_archives(host: Host, name: str) -> None:
    host.tar("a.tar", file(name, b'{"step": "place"}'))
    assert "is refused" in host.take()
    assert not host.destination.exists()


# --- links that somebody lays while it runs ---


def swap(monkeypatch: pytest.MonkeyPatch, host: Host, module: str, call: str, swapped: str) -> None:
    """Before the first call ``call`` of a file, the owner of the destination replaces a folder by a link outside."""
    kept = getattr(os, call)
    state = {"done": False}

    def first(*arguments: Any, **named: Any) -> Any:
        place = next((path for path in host.destination.rglob(swapped) if path.is_dir()), None)
        if place is not None and not state["done"]:
            state["done"] = True
            place.rename(host.outside / "moved")
            place.symlink_to(host.outside)
        return kept(*arguments, **named)

    monkeypatch.setattr(os, call, first)


@pytest.mark.parametrize("call", ["replace", "rename", "open", "link", "symlink"])
def test_a_folder_that_becomes_a_link_is_not_followed(host: Host, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def make(archive: tarfile.TarFile) -> None:
        file("set/deep/a", b"content")(archive)
        file("set/deep/b", b"content")(archive)
        link("set/deep/soft", "a")(archive)
        link("set/deep/hard", "set/deep/a", tarfile.LNKTYPE)(archive)

    host.tar("a.tar", make)
    swap(monkeypatch, host, "extract", call, "deep")
    host.take()
    assert host.found() <= {"moved"}


def test_what_lies_in_the_destination_is_not_followed(host: Host) -> None:
    host.destination.mkdir()
    (host.destination / "set").symlink_to(host.outside)
    host.tar("a.tar", file("set/escaped"))
    assert "is in the way" in host.take()
    assert host.found() == set()


# --- single members ---


def test_bits_that_give_rights_are_dropped(host: Host) -> None:
    host.tar("a.tar", file("set/a", mode=0o7777))
    assert host.take() == ""
    assert stat.S_IMODE((host.destination / "set" / "a").stat().st_mode) == 0o755


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_are_refused(host: Host, kind: bytes) -> None:
    host.tar("a.tar", file("null", b"", type=kind, devmajor=1, devminor=3))
    assert "neither file, directory nor link" in host.take()
    assert not host.destination.exists()


@pytest.mark.parametrize("name", ["a/" * 200 + "b", "x" * 300, "/".join(["x" * 200] * 30)])
def test_names_that_no_file_system_takes_are_refused(host: Host, name: str) -> None:
    host.tar("a.tar", file(name))
    assert "is refused" in host.take()
    assert not host.destination.exists()


# --- headers that lie, and bombs ---


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """A header of the format ustar as it is, with a size that may be anything."""
    raw = bytearray(512)
    raw[: len(name)] = name
    raw[100:108], raw[108:116], raw[116:124], raw[136:148] = b"0000644\0", b"0000000\0", b"0000000\0", b"00000000000\0"
    raw[124:136], raw[156:157], raw[257:265] = size, kind, b"ustar\x0000"
    raw[148:156] = b"        "
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def negative(size: int) -> bytes:
    return b"\xff" + size.to_bytes(11, "big", signed=True)


def pax(records: bytes) -> bytes:
    return header(b"pax", b"%011o\0" % len(records), b"x") + records.ljust(-(-len(records) // 512) * 512, b"\0")


def record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    length = len(body) + 2
    while len(str(length)) + len(body) != length:
        length += 1
    return str(length).encode() + body


LIES = {
    "negative size": header(b"a", negative(-512)) + bytes(1024),
    "negative size in an extended header": pax(record("size", "-1024")) + header(b"a", b"%011o\0" % 0) + bytes(1024),
    "a name of gigabytes": header(b"././@LongLink", b"%011o\0" % (2 * 1024**3), b"L") + bytes(1024),
    "an extended header of gigabytes": header(b"pax", b"%011o\0" % (2 * 1024**3), b"x") + bytes(1024),
    "sparse": pax(record("GNU.sparse.map", "0,1") + record("GNU.sparse.size", str(2**60)))
    + header(b"a", b"%011o\0" % 1)
    + bytes(1536),
    "sparse with a map of its own": pax(
        record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.realsize", str(2**60))
    )
    + header(b"a", b"%011o\0" % 512)
    + b"1\n0\n1\n".ljust(512, b"\0")
    + bytes(1024),
    "sparse as GNU tar had it first": header(b"a", b"%011o\0" % 0, b"S") + bytes(1024),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("compressed", [False, True])
def test_headers_that_lie_are_refused(host: Host, lie: bytes, compressed: bool) -> None:
    if compressed:
        (host.source / "a.tar.gz").write_bytes(gzip.compress(lie))
    else:
        (host.source / "a.tar").write_bytes(lie)
    assert "a.tar" in host.take()
    assert not host.destination.exists()


def test_a_zip_that_says_less_than_it_holds(host: Host) -> None:
    with zipfile.ZipFile(host.source / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("set/a", bytes(64 * MIB))
        archive.infolist()[0].file_size = 100
    assert "a.zip" in host.take()
    assert host.written() == 0 if host.destination.exists() else True


def test_a_bomb_is_refused_before_the_disk_is_full(host: Host) -> None:
    host.room(8 * MIB)

    def bomb(archive: tarfile.TarFile) -> None:
        for number in range(64):
            file(f"set/{number}", bytes(MIB))(archive)

    host.tar("a.tar.gz", bomb, "gz")
    said = host.take()
    assert "make room or take a larger volume" in said
    assert "a.tar.gz" in said
    assert host.written() <= 8 * MIB + MIB


def test_archives_that_fit_alone_are_refused_together(host: Host) -> None:
    host.room(12 * MIB)
    for number in range(4):
        with zipfile.ZipFile(host.source / f"{number}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"set/{number}", bytes(4 * MIB))
    assert "make room or take a larger volume" in host.take()
    assert host.written() <= 12 * MIB + MIB


def broken(*_arguments: Any) -> None:
    raise OSError(5, "broken")


def test_a_dataset_that_was_unpacked_in_part_has_room(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier run unpacked is not asked for again."""
    with zipfile.ZipFile(host.source / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(8):
            archive.writestr(f"set/{number}", bytes(MIB))
    with monkeypatch.context() as patch:
        patch.setattr(run.Unpack, "finish", broken)
        host.room(9 * MIB)
        assert "broken" in host.take()
    host.room(MIB)
    assert host.take() == ""


def test_many_empty_members_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that no member names count as well."""
    monkeypatch.setattr(archive_members, "MOST_PATHS", 100, raising=False)

    def many(archive: tarfile.TarFile) -> None:
        for number in range(60):
            file(f"{number}/a", b"")(archive)

    host.tar("a.tar.gz", many, "gz")
    assert "more than 100 files and folders" in host.take()


def test_more_files_than_the_file_system_can_take(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    class Small:
        def __init__(self, path: Any) -> None:
            found = real(path)
            self.f_bavail, self.f_frsize, self.f_files, self.f_favail = found.f_bavail, found.f_frsize, 5000, 1050

    monkeypatch.setattr(os, "statvfs", Small)

    def many(archive: tarfile.TarFile) -> None:
        for number in range(100):
            file(f"{number}", b"")(archive)

    host.tar("a.tar", many)
    assert "make room or take a larger volume" in host.take()


def with_global_headers(sizes: list[int]) -> bytes:
    """A tar archive that begins with global headers of as many bytes each, and has one file."""
    made = io.BytesIO()
    for size in sizes:
        header = tarfile.TarInfo("pax_global_header")
        header.type, header.size = tarfile.XGLTYPE, size
        text = f"{size} comment=".encode().ljust(size - 1, b"x") + b"\n"
        made.write(header.tobuf(tarfile.USTAR_FORMAT) + text.ljust(-(-size // 512) * 512, b"\0"))
    with tarfile.open(fileobj=made, mode="a" if not sizes else "w", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo("a")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"a"))
    return made.getvalue()


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
@pytest.mark.parametrize(
    ("sizes", "words"),
    [([52], ""), ([5000], "a global header of 5000 bytes"), ([52, 52], "more than one global header")],
)
def test_global_headers_are_few_and_short(host: Host, kind: str, sizes: list[int], words: str) -> None:
    """tarfile copies their keys into every member, so that a small archive took gigabytes."""
    data = with_global_headers(sizes)
    (host.source / f"a.{kind}").write_bytes(gzip.compress(data) if kind == "tar.gz" else data)
    said = host.take()
    assert words in said if words else said == ""


def test_a_tar_archive_with_a_zip_at_its_end_is_judged_as_a_tar(host: Host) -> None:
    end = io.BytesIO()
    with zipfile.ZipFile(end, "w") as archive:
        archive.writestr("b", "b")
    long = tarfile.TarInfo("long")
    long.type, long.size = tarfile.XHDTYPE, 8 * MIB
    data = gzip.compress(long.tobuf(tarfile.USTAR_FORMAT) + bytes(long.size))
    (host.source / "a.tar.gz").write_bytes(data + end.getvalue())
    assert "a header of" in host.take()
