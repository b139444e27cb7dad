"""A process that goes on by itself, and what an attempt leaves where it ends in the middle."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import background, run
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import myself
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.stage import Stage

from tests.unit.dataset.answering import CONTENT, Server
from tests.unit.dataset.host import Host


def _children() -> set[int]:
    """Those of this process, with those that have ended and were not waited for."""
    found = set[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Of a process that has ended meanwhile there is none.
        with contextlib.suppress(OSError):
            parent = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            if int(parent) == os.getpid():
                found.add(int(path.parent.name))
    return found


def test_a_process_of_its_own_has_nothing_of_this_one(tmp_path: Path) -> None:
    told, opened = tmp_path / "told", os.open(tmp_path, os.O_RDONLY)

    def work() -> None:
        found = {
            "pid": os.getpid(),
            "session": os.getsid(0),
            "parent": os.getppid(),
            "cwd": os.getcwd(),
            "files": [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)],
            "open": os.path.exists(f"/proc/self/fd/{opened}"),
            "mask": os.umask(0o022),
        }
        (tmp_path / "new").write_text(json.dumps(found), encoding="utf-8")
        os.rename(tmp_path / "new", told)

    before = _children()
    background.detach(work)
    # What was forked first has ended, and was waited for; those of other tests are not ours to reap.
    assert _children() - before == set()
    deadline = time.monotonic() + 300
    while not told.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.close(opened)
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    assert found["pid"] != os.getpid()
    assert found["parent"] != os.getpid()
    assert found["session"] not in (found["pid"], os.getsid(0))
    assert (found["cwd"], found["files"], found["open"]) == ("/", ["/dev/null"] * 3, False)
    assert found["mask"] == 0o022


def test_a_process_lives_on_its_host_with_its_start() -> None:
    assert background.alive(myself())
    for change in ({"host": "x"}, {"pid": 0}, {"started": "0"}):
        assert not background.alive({**myself(), **change})
    assert not background.alive({})


def test_what_was_wrong_leaves_nothing_of_a_first_run(host: Host, server: Server) -> None:
    with pytest.raises(TrainiumError, match="it was deleted, check the checksum and the source"):
        host.run(source=f"{server.url}/f", checksum="0" * 64)
    assert not host.destination.exists()


def test_what_was_fetched_stays_of_a_run_that_was_refused_later(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: Any) -> None:
        raise TrainiumError("make room")

    monkeypatch.setattr(run.Job, "_stage", full)
    with pytest.raises(TrainiumError, match="make room"):
        host.run(source=f"{server.url}/f")
    assert (host.hidden / "parts" / "f").read_bytes() == CONTENT


def test_what_was_put_in_place_before_it_ended_is_known_to_the_next(
    host: Host, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are in the stage no more, and the marker has to name them all the same."""
    kept = Stage.put_in_place

    def ends(stage: Stage) -> None:
        kept(stage)
        raise TrainiumError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "put_in_place", ends)
        with pytest.raises(TrainiumError, match="killed"):
            host.run(source=f"{server.url}/f")
    assert host.run(source=f"{server.url}/f")["fetched"] == 0
    marker = json.loads((host.hidden / "complete.json").read_text(encoding="utf-8"))
    assert marker["entries"] == ["f"]
    (host.destination / "f").unlink()
    assert host.run(source=f"{server.url}/f")["fetched"] == len(CONTENT)
