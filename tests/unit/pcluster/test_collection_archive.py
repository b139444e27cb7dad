"""The archive of a collection: the same bytes for the same files, and what ansible-galaxy checks."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.collection_archive import (
    build,
    information,
    wanted,
)
from hypothesis import given
from hypothesis import strategies as st

GALAXY = {"namespace": "acme", "name": "tools", "version": "1.2.3", "dependencies": {"amazon.aws": ">=10.0.0"}}
NAMES = st.sampled_from(["plugins/modules/a.py", "roles/x/tasks/main.yml", "playbooks/p.yml", "meta/runtime.yml"])
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=50), st.booleans()))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("plugins/modules/a.py", True),
        ("roles/x/files/run.sh", True),
        ("plugins/modules/__pycache__/a.pyc", False),
        ("plugins/modules/.a.py.swp", False),
        ("tests/unit/test_a.py", False),
        ("sandbox/api.py", False),
        ("galaxy.yml", False),
    ],
)
def test_what_nodes_can_use_is_packed(path: str, expected: bool) -> None:
    assert wanted(path) is expected


def test_checkout_and_installed_collection_are_the_same() -> None:
    info = information(GALAXY, None)
    assert information(None, {"collection_info": GALAXY}) == info
    assert info["dependencies"] == {}
    with pytest.raises(TrainiumError, match=r"neither galaxy.yml nor MANIFEST.json"):
        information({"name": "tools"}, None)


@given(FILES)
def test_the_order_of_the_files_does_not_count(files: dict[str, tuple[bytes, bool]]) -> None:
    info = information(GALAXY, None)
    packed = build(info, files)
    assert packed == build(info, dict(reversed(files.items())))


@given(FILES)
def test_every_digest_is_that_of_its_file(files: dict[str, tuple[bytes, bool]]) -> None:
    with tarfile.open(fileobj=io.BytesIO(build(information(GALAXY, None), files))) as archive:
        members = {member.name: member for member in archive.getmembers()}
        content = {name: archive.extractfile(member) for name, member in members.items() if member.isfile()}
        read = {name: stream.read() for name, stream in content.items() if stream}
    manifest, listing = json.loads(read.pop("MANIFEST.json")), read.pop("FILES.json")
    assert manifest["file_manifest_file"]["chksum_sha256"] == hashlib.sha256(listing).hexdigest()
    listed = {item["name"]: item["chksum_sha256"] for item in json.loads(listing)["files"] if item["ftype"] == "file"}
    assert listed == {name: hashlib.sha256(data).hexdigest() for name, data in read.items()}
    assert set(files) <= set(read)
    assert all(member.mtime == 0 for member in members.values())
    for name, (data, executable) in files.items():
        assert read[name] == data
        assert members[name].mode == (0o755 if executable else 0o644)
