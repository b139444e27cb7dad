"""The archive of a collection: the same bytes for the same files, and what a node can use."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.collection_archive import build, wanted
from ansible_collections.trainium.cluster.plugins.modules.internal.collection_archive import read
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.sampled_from(["plugins/modules/a.py", "roles/x/tasks/main.yml", "playbooks/p.yml", "meta/runtime.yml"])
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=50), st.booleans()))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("plugins/modules/a.py", True),
        ("roles/x/files/run.sh", True),
        ("playbooks/nodes.yml", True),
        ("meta/runtime.yml", True),
        ("meta", False),
        ("plugins/modules/__pycache__/a.pyc", False),
        ("plugins/modules/.a.py.swp", False),
        ("tests/unit/test_a.py", False),
        ("sandbox/api.py", False),
        ("galaxy.yml", False),
    ],
)
def test_what_nodes_can_use_is_packed(path: str, expected: bool) -> None:
    assert wanted(path) is expected


@given(FILES)
def test_the_order_of_the_files_does_not_count(files: dict[str, tuple[bytes, bool]]) -> None:
    assert build(files) == build(dict(reversed(files.items())))


@given(FILES)
def test_every_file_is_as_it_was(files: dict[str, tuple[bytes, bool]]) -> None:
    with tarfile.open(fileobj=io.BytesIO(build(files))) as archive:
        members = {member.name: member for member in archive.getmembers()}
        content = {name: archive.extractfile(member) for name, member in members.items() if member.isfile()}
        read = {name: stream.read() for name, stream in content.items() if stream}
    assert all(member.mtime == 0 for member in members.values())
    assert set(read) == set(files)
    for name, (data, executable) in files.items():
        assert read[name] == data
        assert members[name].mode == (0o755 if executable else 0o644)


def test_a_folder_that_is_no_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainiumError, match=r"neither galaxy.yml nor MANIFEST.json"):
        read(tmp_path)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "runtime.yml").write_bytes(b"---\n")
    for name in ("galaxy.yml", "MANIFEST.json"):
        (tmp_path / name).touch()
        # A checkout and an installed collection are the same.
        assert read(tmp_path) == {"meta/runtime.yml": (b"---\n", False)}
        (tmp_path / name).unlink()
