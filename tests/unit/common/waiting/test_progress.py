"""Progress from a module to the screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import PROGRESS_FILE, Progress
from ansible_collections.trainium.cluster.plugins.plugin_utils._progress import Follower, followed, progress_text


def test_lines_are_written_on_change_and_from_time_to_time(tmp_path: Path) -> None:
    now = [0.0]
    file = tmp_path / "progress"
    progress = Progress(str(file), clock=lambda: now[0])
    for second in (0, 1, 2, 12):
        now[0] = second
        progress.report("running", 0, 1, ["i-1"])
    progress.report("running", 1, 1)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["done"] for line in lines] == [0, 0, 1]
    assert lines[0] == {"what": "running", "done": 0, "total": 1, "missing": ["i-1"]}


def test_a_note_alone_makes_no_line(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    progress = Progress(str(file), clock=lambda: 0.0)
    for note in ("1 s", "2 s"):
        progress.report("created", 1, 2, ["HeadNode"], note)
    (line,) = file.read_text().splitlines()
    assert progress_text("pcluster", line) == "pcluster: 1 of 2 created, waiting for HeadNode (1 s)"


def test_without_a_watcher_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(PROGRESS_FILE, raising=False)
    Progress().report("running", 0, 1)
    monkeypatch.setenv(PROGRESS_FILE, str(tmp_path / "no" / "such" / "folder"))
    Progress().report("running", 0, 1)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            '{"what": "running", "done": 3, "total": 4, "missing": ["i-1"]}',
            "efa_instance: 3 of 4 running, waiting for i-1",
        ),
        ('{"what": "running", "done": 4, "total": 4, "missing": []}', "efa_instance: 4 of 4 running"),
        (
            json.dumps({"what": "running", "done": 0, "total": 9, "missing": [str(n) for n in range(9)]}),
            "efa_instance: 0 of 9 running, waiting for 0, 1, 2, 3 and 5 more",
        ),
        ("", ""),
        ("[]", ""),
        ("{", ""),
        ('{"what": "running"}', ""),
    ],
)
def test_what_is_shown(line: str, text: str) -> None:
    assert progress_text("efa_instance", line) == text


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    file = tmp_path / "progress"
    shown: list[str] = []
    follower = Follower(file, lambda line: shown.append(progress_text("m", line)))
    whole = json.dumps({"what": "up", "done": 1, "total": 2, "missing": ["é"]}, ensure_ascii=False).encode() + b"\n"
    file.write_bytes(whole + whole[:-4])
    follower.catch_up()
    assert shown == ["m: 1 of 2 up, waiting for é"]
    with file.open("ab") as stream:
        stream.write(whole[-4:])
    follower.catch_up()
    assert len(shown) == 2


def test_the_last_line_is_shown_and_the_file_removed() -> None:
    shown: list[str] = []
    with followed("m", shown.append) as path:
        Progress(path).report("up", 2, 2)
    assert shown == ["m: 2 of 2 up"]
    assert not Path(path).exists()
