"""The module etc_hosts on a real file: what it writes, what it keeps, what check mode leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import etc_hosts

from tests.in_process import ended

ENTRIES = "192.0.2.10 a.example.com a\n192.0.2.11 b.example.com b\n"
BROKEN = "127.0.0.1 localhost\n127.0.1.1 a\n"
SOUND = f"127.0.0.1 localhost\n# BEGIN trainium.cluster\n{ENTRIES}# END trainium.cluster\n"


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """The module's result, with its exit code as ``rc``."""
    arguments = {"entries": ENTRIES, "node": "a", "_ansible_remote_tmp": str(arguments.pop("tmp")), **arguments}
    result, code = ended(etc_hosts.main, arguments, capsys)
    return {**result, "rc": code}


def test_repairs_once_and_keeps_a_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BROKEN)
    hosts.chmod(0o640)
    first = run(capsys, path=str(hosts), tmp=tmp_path)
    assert (first["rc"], first["changed"], first["repaired"]) == (0, True, ["127.0.1.1 a"])
    assert hosts.read_text() == SOUND
    assert hosts.stat().st_mode & 0o777 == 0o640
    assert Path(first["backup_file"]).read_text() == BROKEN
    kinds = [(fault["kind"], fault["examples"]) for fault in first["faults"]]
    assert kinds == [
        ("loopback", ["127.0.1.1 a"]),
        ("no_entry", ["b"]),
        ("full_name_unknown", ["a.example.com"]),
    ]
    assert first["before"] == ["127.0.1.1 a"]
    assert first["after"] == SOUND.splitlines()[1:]
    second = run(capsys, path=str(hosts), tmp=tmp_path)
    assert (second["faults"], second["before"], second["after"]) == ([], [], [])
    assert not second["changed"]
    assert "backup_file" not in second


def test_check_mode_shows_the_difference_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BROKEN)
    result = run(capsys, path=str(hosts), tmp=tmp_path, _ansible_check_mode=True, _ansible_diff=True)
    assert result["changed"]
    assert (result["diff"]["before"], result["diff"]["after"]) == (BROKEN, SOUND)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["hosts"]
    assert hosts.read_text() == BROKEN


def test_a_missing_file_is_made_and_everyone_can_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    assert run(capsys, path=str(hosts), tmp=tmp_path)["changed"]
    assert hosts.read_text() == SOUND.replace("127.0.0.1 localhost\n", "")
    assert hosts.stat().st_mode & 0o777 == 0o644


def test_bytes_of_others_survive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"203.0.113.5 store # caf\xe9\n")
    run(capsys, path=str(hosts), tmp=tmp_path)
    assert hosts.read_bytes().startswith(b"203.0.113.5 store # caf\xe9\n")


def test_a_name_that_is_too_long_fails_and_leaves_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BROKEN)
    result = run(capsys, path=str(hosts), tmp=tmp_path, entries=f"192.0.2.10 a.{'b' * 62}")
    assert result["rc"] == 1
    assert "64 characters" in result["msg"]
    assert hosts.read_text() == BROKEN


def test_a_host_name_that_is_too_long_fails_and_leaves_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BROKEN)
    result = run(capsys, path=str(hosts), tmp=tmp_path, node="n" * 64)
    assert (result["rc"], hosts.read_text()) == (1, BROKEN)
    assert result["msg"].startswith(f"The host name {'n' * 64} has 64 characters")


def test_strip_alias_needs_no_entries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.1.1 a\n192.0.2.10 a.x.pcluster a\n")
    first = run(capsys, path=str(hosts), tmp=tmp_path, mode="strip-alias", entries=None)
    assert hosts.read_text() == "127.0.1.1 a\n192.0.2.10 a\n"
    assert (first["before"], first["after"]) == (["192.0.2.10 a.x.pcluster a"], ["192.0.2.10 a"])
    assert not run(capsys, path=str(hosts), tmp=tmp_path, mode="strip-alias", entries=None)["changed"]


def test_entries_are_needed_where_they_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, path=str(tmp_path / "hosts"), tmp=tmp_path, entries=None)
    assert result["rc"] == 1
    assert result["msg"].startswith("There is no entry to write")


@pytest.mark.parametrize(("status", "code"), [("running", 0), ("not run", 0), ("not started", 0)])
def test_a_file_that_cloud_init_may_still_write_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, status: str, code: int
) -> None:
    result = with_cloud_init(tmp_path, capsys, monkeypatch, f"echo 'status: {status}'; exit {code}")
    assert result["cloud_init"] == {"present": True, "finished": False, "config": ""}
    assert not result["changed"]
    assert (tmp_path / "hosts").read_text() == BROKEN


@pytest.mark.parametrize("code", [0, 1, 2])
def test_after_cloud_init_the_file_is_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    (tmp_path / "95.cfg").write_text("manage_etc_hosts: false\n")
    result = with_cloud_init(tmp_path, capsys, monkeypatch, f"echo 'status: done'; exit {code}")
    assert result["cloud_init"] == {"present": True, "finished": True, "config": "manage_etc_hosts: false\n"}
    assert result["changed"]
    assert (tmp_path / "hosts").read_text() == SOUND


def test_a_cloud_init_that_does_not_answer_stops_the_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = with_cloud_init(tmp_path, capsys, monkeypatch, "echo 'no such option' >&2; exit 64")
    assert result["rc"] == 1
    assert "cloud-init does not say how far it is (no such option)" in result["msg"]
    assert (tmp_path / "hosts").read_text() == BROKEN


def test_without_cloud_init_there_is_nothing_to_wait_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = tmp_path / "95.cfg"
    config.write_text("manage_etc_hosts: true\n")
    (tmp_path / "hosts").write_text(BROKEN)
    result = run(capsys, path=str(tmp_path / "hosts"), tmp=tmp_path, cloud_init_config=str(config))
    assert result["cloud_init"] == {"present": False, "finished": True, "config": ""}
    assert (result["changed"], (tmp_path / "hosts").read_text()) == (True, SOUND)


def with_cloud_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, script: str
) -> dict[str, Any]:
    """The result for a broken file on a host whose cloud-init is a script."""
    program = tmp_path / "bin" / "cloud-init"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    (tmp_path / "hosts").write_text(BROKEN)
    return run(capsys, path=str(tmp_path / "hosts"), tmp=tmp_path, cloud_init_config=str(tmp_path / "95.cfg"))
