"""What the module does with its options, with what an earlier run left, and with a transfer that goes on."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import background, run_host
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import myself
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.plan import wrapped
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.run import Job

from tests.unit.dataset.answering import CONTENT, Server
from tests.unit.dataset.host import Host

SHA256 = hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def filled(host: Host) -> Host:
    """A source with a file, and one in a folder."""
    (host.source / "below").mkdir()
    (host.source / "a").write_bytes(b"content")
    (host.source / "below" / "b").write_bytes(b"")
    return host


def test_a_folder_of_the_host_comes_once(filled: Host) -> None:
    first = filled.run(checksums={"a": SHA256}, attempt="one")
    tag = str((filled.source / "a").stat().st_mtime_ns)
    assert first["files"][0] == {"path": "a", "size": 7, "tag": tag, "sha256": SHA256}
    assert [file["path"] for file in first["files"]] == ["a", "below/b"]
    assert {key: first[key] for key in ("changed", "complete", "running", "attempt", "fetched")} == {
        "changed": True,
        "complete": True,
        "running": False,
        "attempt": "one",
        "fetched": 7,
    }
    assert first["progress"] == "putting in place"
    assert filled.names() == ["a", "below/b"]
    assert list(filled.states.iterdir()) == []
    assert sorted(path.name for path in filled.hidden.iterdir()) == ["claims", "complete.json"]
    second = filled.run(checksums={"a": SHA256}, attempt="two")
    assert second == {
        "changed": False,
        "complete": True,
        "running": False,
        **{key: first[key] for key in ("files", "completed_at")},
    }


def test_the_marker_says_what_was_put_in_place(filled: Host) -> None:
    filled.run()
    marker = json.loads((filled.hidden / "complete.json").read_text(encoding="utf-8"))
    assert marker["entries"] == ["a", "below"]
    assert marker["source"] == str(filled.source)
    assert marker["completed_at"].endswith("Z")


@pytest.mark.parametrize("lost", ["a", "below"])
def test_what_was_deleted_comes_again(filled: Host, lost: str) -> None:
    filled.run()
    (filled.destination / lost).rename(filled.destination.parent / "moved")
    assert filled.run()["changed"]
    assert filled.names() == ["a", "below/b"]


@pytest.mark.parametrize("changes", [{"checksums": {"a": SHA256}}, {"extract": "never"}])
def test_other_options_make_another_dataset(filled: Host, changes: dict[str, Any]) -> None:
    filled.run()
    assert filled.run(**changes)["changed"]


def test_check_mode_makes_nothing(filled: Host) -> None:
    assert filled.run(check=True) == {"changed": True, "complete": False, "running": False}
    assert not filled.destination.exists()
    assert list(filled.states.iterdir()) == []
    filled.run()
    assert filled.run(check=True)["complete"]


def test_without_addresses_s3_is_only_looked_at(host: Host) -> None:
    assert host.run(source="s3://bucket/a") == {"changed": False, "complete": False, "running": False}
    assert not host.destination.exists()


def test_a_file_of_the_host_has_its_own_name(filled: Host) -> None:
    filled.run(source=str(filled.source / "below" / "b"))
    assert filled.names() == ["b"]


def test_a_file_of_a_server_has_the_last_part_of_its_address(host: Host, server: Server) -> None:
    done = host.run(source=f"{server.url}/a/b%20c?X-Amz-Signature=1")
    assert host.names() == ["b c"]
    assert (host.destination / "b c").read_bytes() == CONTENT
    assert done["files"] == [{"path": "b c", "size": 10, "tag": '"a"', "sha256": ""}]
    assert "Signature" not in (host.hidden / "complete.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "name"), [("s3://bucket/p/", "s3://bucket/p/x/y"), ("s3://bucket/p/z", "s3://bucket/p/x/y")]
)
def test_files_with_addresses_are_called_by_their_place_in_the_source(host: Host, source: str, name: str) -> None:
    url = "http://127.0.0.1:1/secret"
    found = list(run_host._items({"source": source}, [{"path": "x/y", "url": wrapped(url), "size": 1}]))
    assert found == [{"path": "x/y", "url": url, "size": 1, "name": name}]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"connections": 0}, "connections is 0; take 1 to 64"),
        ({"connections": 65}, "connections is 65; take 1 to 64"),
        ({"destination": "relative"}, "The destination 'relative' is not valid"),
        ({"destination": "/"}, "The destination '/' is not valid"),
        ({"destination": "/tmp/.."}, "The destination '/tmp/..' is not valid"),  # noqa: S108
        ({"chunk_size": "0"}, "chunk_size is '0'; take more than 0"),
        ({"chunk_size": "x"}, "The size 'x' is not valid"),
        ({"extracted_size": "x"}, "The size 'x' is not valid"),
        ({"checksum": "x"}, "The checksum 'x' is not valid"),
        ({"checksums": {"a": "x"}}, "The checksum 'x' is not valid"),
        ({"name": ".."}, "The name '..' is not valid"),
        ({"source": "ftp://x/y"}, "The source 'ftp://x/y' is not valid"),
        ({"owner": "nobody-at-all"}, "The host has no such owner ("),
        ({"group": "nobody-at-all"}, "The host has no such owner ("),
        ({"source": "http://127.0.0.1:1/x/?a=b"}, "http://127.0.0.1:1/x/ ends with a slash, so it names no file"),
        ({"source": "/no/such"}, "There is no /no/such on this host"),
        ({"attempt": "a/b"}, "The attempt 'a/b' is not valid"),
        ({"attempt": "a" * 65}, "is not valid: use letters, digits and hyphens, at most 64"),
        ({"extract": "always"}, "a is no archive"),
    ],
)
def test_options_that_are_refused(filled: Host, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TrainiumError, ValueError)) as error:
        filled.run(**changes)
    assert sentence in str(error.value)
    assert not filled.destination.exists()


def test_a_source_without_files_is_refused(host: Host) -> None:
    with pytest.raises(TrainiumError, match=f"^{host.source} has no files; check the source"):
        host.run()


@pytest.mark.parametrize("below", ["", "/below", "/below/deeper"])
def test_a_destination_in_the_source_is_refused(filled: Host, below: str) -> None:
    with pytest.raises(TrainiumError, match="lies in the source"):
        filled.run(destination=str(filled.source) + below)


def test_a_destination_beside_the_source_with_a_longer_name_is_none_in_it(filled: Host) -> None:
    filled.destination = filled.source.parent / "source-2"
    assert filled.run()["changed"]


def test_what_the_options_mean(host: Host) -> None:
    made = run_host._request(
        host.options(name=None, chunk_size="1M", extracted_size="2K", timeout=0, checksum="sha256:" + "A" * 64)
    )
    assert made["name"] == "source"
    assert (made["chunk_size"], made["extracted_size"], made["timeout"]) == (1024**2, 2048, 1)
    assert made["checksum"] == "a" * 64
    assert made["owner_ids"] == (-1, -1)
    assert run_host._request(host.options(chunk_size="1", connections=64, timeout=7))["timeout"] == 7


def test_who_gets_the_files() -> None:
    me = pwd.getpwuid(os.geteuid())
    assert run_host._owner(me.pw_name, None) == (me.pw_uid, me.pw_gid)
    assert run_host._owner(str(me.pw_uid), "") == (me.pw_uid, me.pw_gid)
    assert run_host._owner(None, "nogroup") == (-1, run_host.grp.getgrnam("nogroup").gr_gid)
    assert run_host._owner(me.pw_name, "0") == (me.pw_uid, 0)


def test_only_root_gives_files_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(TrainiumError, match="Only root can give files to nobody"):
        run_host._owner("nobody", None)
    assert run_host._owner(None, None) == (-1, -1)


# --- an attempt that was begun before ---


def left(host: Host, changes: dict[str, Any] | None = None) -> None:
    state = {**myself(), "progress": {"phase": "fetching", "done": 1, "total": 4}, **(changes or {})}
    (host.states / "one.json").write_text(json.dumps(state), encoding="utf-8")


def test_an_attempt_that_goes_on_is_followed_for_a_while(filled: Host) -> None:
    left(filled)
    assert filled.run(attempt="one", wait=1) == {
        "changed": True,
        "complete": False,
        "running": True,
        "attempt": "one",
        "progress": "fetching 1 B of 4 B (25%)",
    }
    assert not filled.destination.exists()
    assert (filled.states / "one.json").exists()


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"ended": True, "error": "It failed"}, "^It failed$"),
        ({"pid": 0}, "was killed; run again, which goes on where it stopped"),
        ({"host": "before the reboot"}, "was killed"),
        ({"started": "1"}, "was killed"),
        ({"ended": True}, "was deleted right after it was made; run again"),
    ],
)
def test_how_an_attempt_ended_is_told_once(filled: Host, state: dict[str, Any], sentence: str) -> None:
    left(filled, state)
    with pytest.raises(TrainiumError, match=sentence):
        filled.run(attempt="one")
    assert not (filled.states / "one.json").exists()


def test_the_last_word_of_a_process_that_is_gone_counts(filled: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    left(filled)

    def ends(_state: Any) -> bool:
        left(filled, {"ended": True, "error": "It failed"})
        return False

    monkeypatch.setattr(background, "alive", ends)
    with pytest.raises(TrainiumError, match="It failed"):
        filled.run(attempt="one")


def test_a_state_that_is_gone_is_told(filled: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "detach", lambda _work: (filled.states / "one.json").unlink())
    with pytest.raises(TrainiumError, match="The state of the transfer one is gone from this host"):
        filled.run(attempt="one")


def test_what_nobody_foresaw_is_told_as_well(filled: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_given: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr(Job, "_fetch", fetch)
    with pytest.raises(TrainiumError, match="The transfer failed: KeyError: 'lost'"):
        filled.run()
    # A first attempt leaves nothing behind.
    assert not filled.destination.exists()


def test_states_that_nobody_asked_for_in_a_week_are_deleted(filled: Host) -> None:
    for name, age in (("old", 8), ("young", 6)):
        path = filled.states / f"{name}.json"
        path.write_text("{}", encoding="utf-8")
        then = path.stat().st_mtime - age * 86400
        os.utime(path, (then, then))
    filled.run(attempt="one")
    assert [path.name for path in filled.states.iterdir()] == ["young.json"]


def test_the_folder_of_states_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.join
    monkeypatch.setattr(os.path, "join", lambda *parts: real(str(tmp_path), *parts[1:]))
    made = Path(background._folder())
    assert made.parent == tmp_path
    assert made.stat().st_mode & 0o777 == 0o700
    assert background._folder() == str(made)
    for mode in (0o710, 0o704):
        made.chmod(mode)
        with pytest.raises(TrainiumError, match="is not a private folder of this user; delete it"):
            background._folder()
    made.rmdir()
    made.symlink_to(tmp_path)
    with pytest.raises(TrainiumError, match="is not a private folder"):
        background._folder()
