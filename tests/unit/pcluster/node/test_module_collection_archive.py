"""The module that packs the collection: once, into a folder that it makes, and older archives go."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import collection_archive

from tests.in_process import ended


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    root = tmp_path / "collection"
    (root / "roles" / "a" / "files").mkdir(parents=True)
    (root / "galaxy.yml").touch()
    (root / "roles/a/files/run.sh").write_text("true\n")
    (root / "roles/a/files/run.sh").chmod(0o755)
    (root / "roles/a/files/.hidden").touch()
    (root / "README.md").touch()
    return root


def pack(capsys: Any, root: Path, dest: Path, check: bool = False) -> dict[str, Any]:
    modes = {"_ansible_check_mode": check, "_ansible_remote_tmp": str(root.parent), "_ansible_keep_remote_files": False}
    result, _code = ended(collection_archive.main, {"path": str(root), "dest": str(dest), **modes}, capsys)
    return result


def test_it_is_packed_once(collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dest = tmp_path / "cache" / "trainium"
    promised = pack(capsys, collection, dest, check=True)
    assert promised["changed"] and not dest.exists()
    first = pack(capsys, collection, dest)
    assert first == promised
    archive = Path(first["archive"])
    assert (archive.parent, archive.name) == (dest, f"trainium-cluster-{first['sha256'][:12]}.tar.gz")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == first["sha256"]
    with tarfile.open(archive) as stream:
        assert [(member.name, member.mode) for member in stream] == [("roles/a/files/run.sh", 0o755)]
    again = pack(capsys, collection, dest)
    assert (again["changed"], again["archive"]) == (False, first["archive"])
    archive.write_bytes(b"cut")
    assert pack(capsys, collection, dest)["changed"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == first["sha256"]


def test_another_collection_takes_the_place_of_what_was_there(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = pack(capsys, collection, tmp_path)
    (tmp_path / "other.tar.gz").touch()
    (collection / "roles/a/files/run.sh").write_text("false\n")
    second = pack(capsys, collection, tmp_path)
    assert second["changed"] and second["sha256"] != first["sha256"]
    assert sorted(path.name for path in tmp_path.glob("*.tar.gz")) == ["other.tar.gz", Path(second["archive"]).name]


def test_what_is_no_collection_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = pack(capsys, tmp_path, tmp_path)
    assert result["failed"]
    assert "cannot be packed (neither galaxy.yml nor MANIFEST.json is there); name the root" in result["msg"]
