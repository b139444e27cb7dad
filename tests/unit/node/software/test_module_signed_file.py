"""The module signed_file over real HTTP, with a real key: what is refused leaves nothing behind."""

from __future__ import annotations

import tarfile
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sandbox.mirror.signing import Key
from tests.own_process import run


class Site(SimpleHTTPRequestHandler):
    """Serves a folder; a file whose name begins with ``cut`` ends in the middle."""

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        outputfile.write(content[: len(content) // 2] if "/cut" in self.path else content)


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """Folder and URL of a site with a signed archive, and the fingerprint of its key."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "tool").mkdir()
    (folder / "tool" / "install.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    with tarfile.open(folder / "tool.tar.gz", "w:gz") as archive:
        archive.add(folder / "tool", "tool")
    key = Key(folder / "ring", "Publisher <publisher@example.org>")
    fingerprint = key.fingerprint()
    key.export(folder / "key.asc", armor=True)
    key.detach(folder / "tool.tar.gz")
    (folder / "cut.tar.gz").write_bytes((folder / "tool.tar.gz").read_bytes())
    (folder / "tampered.tar.gz").write_bytes((folder / "tool.tar.gz").read_bytes() + b"\0")
    (folder / "notes.txt").write_text("no archive\n", encoding="utf-8")
    key.detach(folder / "notes.txt")

    def handler(*arguments: Any) -> Site:
        return Site(*arguments, directory=str(folder))

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}", fingerprint
    server.shutdown()


def archive(publisher: tuple[Path, str, str], name: str = "tool.tar.gz", signed: str = "") -> dict[str, str]:
    """The options for an archive of the site."""
    _folder, site, fingerprint = publisher
    return {
        "archive": f"{site}/{name}",
        "signature": f"{site}/{signed or name}.sig",
        "key": f"{site}/key.asc",
        "fingerprint": fingerprint,
    }


def test_signed_archive_is_unpacked(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    answer = run("signed_file", tmp_path, **archive(publisher))
    assert answer["changed"]
    folder = Path(answer["path"])
    assert (folder / "tool" / "install.sh").read_text(encoding="utf-8") == "#!/bin/sh\n"
    assert folder.stat().st_mode & 0o777 == 0o700
    # Nothing else stays: not the archive, not a key ring.
    assert list(tmp_path.iterdir()) == [folder]


def test_files_on_the_host_stay(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, _site, fingerprint = publisher
    paths = {"archive": f"{folder}/tool.tar.gz", "signature": f"{folder}/tool.tar.gz.sig", "key": f"{folder}/key.asc"}
    assert run("signed_file", tmp_path, fingerprint=fingerprint, **paths)["changed"]
    assert all(Path(path).is_file() for path in paths.values())


@pytest.mark.parametrize(
    ("name", "signed", "sentence"),
    [
        ("tampered.tar.gz", "tool.tar.gz", "its content is not what was signed"),
        ("cut.tar.gz", "tool.tar.gz", "the connection ended after"),
        ("missing.tar.gz", "tool.tar.gz", "missing.tar.gz was not fetched: HTTP Error 404"),
        ("tool.tar.gz", "notes.txt", "tool.tar.gz is refused because its content is not what was signed"),
        ("notes.txt", "notes.txt", "notes.txt was not unpacked"),
    ],
)
def test_refused_archive_leaves_nothing(
    publisher: tuple[Path, str, str], tmp_path: Path, name: str, signed: str, sentence: str
) -> None:
    answer = run("signed_file", tmp_path, **archive(publisher, name, signed))
    assert answer["failed"]
    assert sentence in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_another_checksum_is_refused(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    answer = run("signed_file", tmp_path, sha256="0" * 64, **archive(publisher))
    assert "has the SHA-256" in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_key_is_kept_once(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, site, fingerprint = publisher
    dest = tmp_path / "keyrings" / "tool.asc"
    options = {"key": f"{site}/key.asc", "fingerprint": fingerprint, "dest": str(dest), "mode": "0644"}
    assert run("signed_file", tmp_path, _ansible_check_mode=True, **options)["changed"]
    assert not dest.exists()
    assert run("signed_file", tmp_path, **options)["changed"]
    assert dest.read_bytes() == (folder / "key.asc").read_bytes()
    assert dest.stat().st_mode & 0o777 == 0o644
    assert not run("signed_file", tmp_path, **options)["changed"]


def test_another_key_is_not_kept(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    _folder, site, _fingerprint = publisher
    dest = tmp_path / "tool.asc"
    answer = run("signed_file", tmp_path, key=f"{site}/key.asc", fingerprint="A" * 40, dest=str(dest))
    assert "key.asc holds the key" in answer["msg"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"key": None}, "missing required arguments: key"),
        ({"fingerprint": None}, "missing required arguments: fingerprint"),
        ({"archive": None, "signature": None}, "one of the following is required: dest, archive"),
        ({"signature": None}, "parameters are required together: archive, signature"),
        ({"dest": "/tmp/x"}, "parameters are mutually exclusive: dest|archive"),  # noqa: S108 nothing is written
        ({"key": "/nowhere/key.asc"}, "There is no file /nowhere/key.asc: put it there first, or give a URL."),
        ({"fingerprint": "DD2D3CCC"}, "'DD2D3CCC' is no fingerprint of a key: give all of its 40 hexadecimal digits."),
    ],
)
def test_what_is_missing_is_said(
    publisher: tuple[Path, str, str], tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    given = {**archive(publisher), **options}
    answer = run("signed_file", tmp_path, **{name: value for name, value in given.items() if value is not None})
    assert answer["msg"] == sentence
    assert list(tmp_path.iterdir()) == []


def test_the_checksum_of_what_was_unpacked_is_told_and_may_be_asked_for(
    publisher: tuple[Path, str, str], tmp_path: Path
) -> None:
    checksum = sha256((publisher[0] / "tool.tar.gz").read_bytes()).hexdigest()
    for wanted in ("", checksum, checksum.upper()):
        assert run("signed_file", tmp_path, sha256=wanted, **archive(publisher)).get("sha256") == checksum


def test_in_check_mode_no_archive_is_fetched(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    answer = run("signed_file", tmp_path, _ansible_check_mode=True, **archive(publisher, "missing.tar.gz"))
    assert answer["skipped"] is True
    assert answer["msg"] == "An archive is not unpacked in check mode."
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_somebody_has_changed_is_written_anew(publisher: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, site, fingerprint = publisher
    dest = tmp_path / "deep" / "er" / "tool.asc"
    options = {"key": f"{site}/key.asc", "fingerprint": fingerprint, "dest": str(dest)}
    answer = run("signed_file", tmp_path, **options)
    assert (answer["changed"], answer["path"]) == (True, str(dest))
    assert dest.parent.stat().st_mode & 0o777 == 0o755
    dest.write_text("another\n")
    assert run("signed_file", tmp_path, _ansible_check_mode=True, **options)["changed"]
    assert dest.read_text() == "another\n"
    assert run("signed_file", tmp_path, **options)["changed"]
    assert dest.read_bytes() == (folder / "key.asc").read_bytes()
    # Its mode alone is a change too.
    assert run("signed_file", tmp_path, mode="0600", **options)["changed"]
    assert not run("signed_file", tmp_path, mode="0600", **options)["changed"]


def test_a_key_that_was_not_fetched_is_told_as_get_url_tells_it(
    publisher: tuple[Path, str, str], tmp_path: Path
) -> None:
    url = f"{publisher[1]}/none.asc"
    answer = run("signed_file", tmp_path, **{**archive(publisher), "key": url})
    assert (answer["url"], answer["response"]) == (url, "HTTP Error 404: File not found")
