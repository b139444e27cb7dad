"""Claims on a folder, with real processes: one holds it at a time, and the dead hold nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import lease_files as claims
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import Claims

HOLDER = """
import os, sys, time
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import Folder
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.lease_files import Claims
mine = Claims(Folder(os.open(sys.argv[1], os.O_RDONLY)))
while mine.take():
    time.sleep(0.01 * (1 + os.getpid() % 7))
os.mkdir(sys.argv[1] + "/held")
time.sleep(0.05)
os.rmdir(sys.argv[1] + "/held")
if len(sys.argv) > 2:
    os._exit(0)
mine.release()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(os.open(tmp_path, os.O_RDONLY))
    yield made
    made.close()


def test_one_of_many_holds_it_at_a_time_though_some_die_with_it(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), *(["die"] if number % 2 else [])])
        for number in range(6)
    ]
    # Two at a time would meet at the folder, and one of them would fail.
    assert [process.wait(timeout=600) for process in processes] == [0] * 6


def test_a_holder_on_another_host_lives_while_it_touches_its_claim(
    tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.2)
    (tmp_path / "claims").mkdir()
    other = tmp_path / "claims" / "other.claim"
    other.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "1", "name": "node"}), encoding="utf-8")
    mine = Claims(folder)
    for number in range(5):
        time.sleep(0.1)
        os.utime(other, (number, number))
        assert [holder["name"] for holder in mine.take()] == ["node"]
    time.sleep(0.3)
    assert mine.take() == []
    assert not other.exists()
    mine.release()
    assert list((tmp_path / "claims").iterdir()) == []


def test_a_claim_that_was_taken_away_is_lost(tmp_path: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "TOUCH_SECONDS", 0.05)
    mine = Claims(folder)
    assert mine.take() == []
    mine.keep(lambda: "half of it")
    claim = next(iter(tmp_path.glob("claims/*.claim")))
    deadline = time.monotonic() + 300
    while json.loads(claim.read_text(encoding="utf-8"))["progress"] != "half of it":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not mine.lost
    while not mine.lost:
        for path in tmp_path.glob("claims/*.claim"):
            path.unlink(missing_ok=True)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    mine.release()
