"""The archive of a release: always the same bytes, nothing but the commit, and whoever changes it is noticed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from docs.tools import release
from docs.tools.release import FILES, MANIFEST, PLAIN, PROGRAM, File

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wanted() -> release.Content:
    return release.of_commit("HEAD")


def written(folder: Path, files: release.Content) -> Path:
    path = folder / "trainium-cluster-0.0.1.tar.gz"
    path.write_bytes(release.packed(files, 1_700_000_000))
    return path


def test_what_is_built_is_the_commit_and_the_same_each_time(tmp_path: Path) -> None:
    archives = [release.build(tmp_path / name, "HEAD") for name in ("first", "second")]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    release.compare(archives[0], "HEAD")


def test_tools_tests_and_the_sandbox_stay_at_home(wanted: release.Content) -> None:
    assert {name.partition("/")[0] for name in wanted} >= {"plugins", "roles", "playbooks", "meta", MANIFEST, FILES}
    assert not [name for name in wanted if name.startswith(("tests/", "sandbox/", "docs/tools/", ".github/"))]


def test_the_card_is_read_as_yaml_reads_it() -> None:
    text = (ROOT / "galaxy.yml").read_text(encoding="utf-8")
    assert release.card(text) == {**yaml.safe_load(text), "version": str(yaml.safe_load(text)["version"])}
    with pytest.raises(release.ReleaseError, match="a line of a form that this program does not read"):
        release.card("tags: [aws]\nmore:\n    deep: 1\n")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("playbooks/site.yml", File(b"- hosts: all\n", PLAIN), "playbooks/site.yml is not that of the commit"),
        ("playbooks/evil.yml", File(b"", PLAIN), "playbooks/evil.yml is not in the commit"),
        ("README.md", None, "README.md is missing"),
    ],
)
def test_a_change_is_noticed(
    wanted: release.Content, tmp_path: Path, name: str, change: File | None, sentence: str
) -> None:
    files = {**wanted}
    if change:
        files[name] = change
    else:
        del files[name]
    listed = json.loads(files[FILES].data)
    listed["files"] = [entry for entry in listed["files"] if change or entry["name"] != name]
    files[FILES] = File(json.dumps(listed).encode(), PLAIN)
    assert sentence in release.differences(release.contents(written(tmp_path, files)), wanted)


def test_another_mode_and_another_card_are_noticed(wanted: release.Content, tmp_path: Path) -> None:
    told = json.loads(wanted[MANIFEST].data)
    told["collection_info"]["dependencies"] = {"evil.collection": "*"}
    told["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(b"").hexdigest()
    files = {**wanted, MANIFEST: File(json.dumps(told).encode(), PLAIN)}
    files["README.md"] = File(files["README.md"].data, PROGRAM)
    assert release.differences(release.contents(written(tmp_path, files)), wanted) == [
        "README.md is not that of the commit",
        "MANIFEST.json has another checksum for FILES.json",
        "MANIFEST.json has another dependencies than galaxy.yml",
    ]


def test_patterns_go_by_the_whole_path() -> None:
    assert release.ignored("sandbox/emulator/x.py", ["sandbox"])
    assert not release.ignored("docs/sandbox", ["sandbox"])
    assert release.ignored("plugins/x/y.pyc", ["*.pyc"])


def test_what_cannot_be_signed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GNUPGHOME", str(tmp_path))
    tmp_path.chmod(0o700)
    archive = release.build(tmp_path / "dist", "HEAD")
    assert release.main(["sign", str(archive), "--key", "nobody@example.com"]) == 1
    assert "gpg has not signed with the key nobody@example.com" in capsys.readouterr().err
