"""What is known of a phase, what a run leaves on the controller, and how long it took before."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.plugin_utils import _run_log
from ansible_collections.trainium.cluster.plugins.plugin_utils._phases import (
    PLAYBOOKS,
    Phase,
    is_due,
    is_rescued,
    printable,
    short,
)
from ansible_collections.trainium.cluster.plugins.plugin_utils._run_log import Details, RunLog, Seconds


def test_when_a_phase_says_that_it_goes_on() -> None:
    due = [seconds for seconds in range(1, 20000) if is_due(seconds)]
    assert due[:4] == [15, 30, 60, 120]
    # By the minute for ten minutes, by five for two hours, by the half hour then.
    gaps = {second: second - first for first, second in zip(due, due[1:])}
    assert gaps[540] == 60
    assert gaps[600] == 60
    assert gaps[900] == 300
    assert gaps[7200] == 300
    assert gaps[9000] == 1800


def test_what_a_task_is_called() -> None:
    assert short(SimpleNamespace(get_name=lambda: " trainium.cluster.efa : Install ")) == "efa : Install"
    assert short(SimpleNamespace(get_name=lambda: "Look trainium.cluster.a trainium.cluster.b")) == (
        "Look a trainium.cluster.b"
    )


def block(parent: Any = None, rescue: Any = (), always: Any = (), name: str = "b") -> Any:
    return SimpleNamespace(_parent=parent, rescue=list(rescue), always=list(always), _uuid=name)


def test_a_failure_that_something_mends() -> None:
    mends = SimpleNamespace(_uuid="r")
    assert is_rescued(SimpleNamespace(_uuid="t", _parent=block(rescue=[mends])))
    assert is_rescued(SimpleNamespace(_uuid="t", _parent=block(parent=block(rescue=[mends], name="outer"))))
    assert not is_rescued(SimpleNamespace(_uuid="t", _parent=block()))
    assert not is_rescued(SimpleNamespace(_uuid="t", _parent=None))
    # What fails while it mends, or in what is done always, is mended by nothing of the same block.
    assert not is_rescued(SimpleNamespace(_uuid="r", _parent=block(rescue=[mends])))
    cleans = SimpleNamespace(_uuid="c")
    assert not is_rescued(SimpleNamespace(_uuid="c", _parent=block(rescue=[mends], always=[cleans])))
    assert not is_rescued(SimpleNamespace(_uuid="t", _parent=block(always=[cleans])))


def test_only_the_collection_s_own_playbooks_are_described(tmp_path: Path) -> None:
    assert Phase("network", str(PLAYBOOKS / "network.yml")).about == "VPC, subnets, security groups"
    assert Phase("network", str(tmp_path / "network.yml")).about == ""
    assert Phase("network", "").about == ""
    assert Phase("other", str(PLAYBOOKS / "other.yml")).about == ""


@pytest.mark.parametrize(
    ("hosts", "changed", "failed", "text"),
    [
        ("", "", "", "no hosts"),
        ("a", "", "", "1 host, none changed"),
        ("ab", "a", "", "2 hosts, 1 changed"),
        ("abc", "ab", "cb", "3 hosts, 2 changed, failed: b, c"),
    ],
)
def test_the_outcome_of_a_phase(hosts: str, changed: str, failed: str, text: str) -> None:
    phase = Phase("nodes", "")
    phase.hosts, phase.changed, phase.failed = set(hosts), set(changed), set(failed)
    assert phase.outcome() == text


@pytest.mark.parametrize("sign", ["\x00", "\x08", "\x0b", "\x1f", "\x7f", "\x9b", "\u202e", "\u2066", "\r"])
def test_signs_that_do_something_to_a_terminal_are_written_out(sign: str) -> None:
    shown = printable(f"a{sign}b")
    assert shown == f"a{sign!r}b".replace("'", "")
    assert shown.isprintable()


def test_signs_of_a_text_stay() -> None:
    assert printable("a\tä\n雪") == "a\tä\n雪"


def test_a_log_is_its_owner_s_and_old_ones_go(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "logs"
    folder.mkdir(parents=True)
    for number in range(25):
        (folder / f"20260101T0000{number:02}-1-site.log").touch()
    (folder / "20250101T000000-mine.log").touch()
    (folder / "seconds.json").touch()
    log = RunLog(folder, "site")
    log.write("one")
    log.write("two", "")
    # By the line, so that a run that is killed leaves what was done.
    assert log.path.read_text(encoding="utf-8") == "one\n" or log.path.read_text(encoding="utf-8") == "one\ntwo"
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert log.path.name.endswith(f"-{os.getpid()}-site.log")
    assert log.problem == ""
    left = sorted(path.name for path in folder.iterdir() if path.name.startswith("2026") and path != log.path)
    assert len(left) == _run_log.LOGS - 1 == 19
    assert left[-1] == "20260101T000024-1-site.log"
    assert (folder / "20250101T000000-mine.log").exists()
    # A second one of the same moment is none.
    assert "cannot be written to (File exists)" in RunLog(folder, "site").problem


def test_a_folder_for_logs_is_closed_to_others(tmp_path: Path) -> None:
    RunLog(tmp_path / "a" / "logs", "site")
    assert stat.S_IMODE((tmp_path / "a" / "logs").stat().st_mode) == 0o700


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = RunLog(tmp_path / "file" / "logs", "site")
    log.write("one")
    assert log.problem == f"{tmp_path / 'file' / 'logs'} cannot be written to (Not a directory)"


class Screen:
    verbosity = 3

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []

    def display(self, msg: str, color: str | None = None, *_more: Any, **named: Any) -> None:
        self.said.append((msg, named.get("log_only", False)))

    def banner(self, msg: str, *_more: Any, **_named: Any) -> None:
        self.said.append((f"banner {msg}", False))

    def _error(self, *_more: Any, **_named: Any) -> None:
        self.said.append(("error", False))


def test_details_go_to_the_log_and_to_the_screen_where_they_are_shown(tmp_path: Path) -> None:
    screen, log = Screen(), RunLog(tmp_path, "site")
    details = Details(screen, log)
    assert details.verbosity == 3
    details.display("one")
    details.display("two", screen_only=True)
    details.display("three", newline=False)
    details.banner("TASK")
    details._error("x")
    # What log_path of ansible.cfg names stays whole.
    (one, three, banner) = screen.said
    assert (one, three) == (("one", True), ("three", True))
    assert banner[0].startswith("\nTASK ***")
    assert banner[1] is True
    details.shown = True
    details.display("four", screen_only=True)
    details.display("five")
    details.banner("PLAY")
    details._error("x")
    assert screen.said[3:] == [("four", False), ("five", False), ("banner PLAY", False), ("error", False)]
    log.write("")
    text = log.path.read_text(encoding="utf-8")
    assert text.startswith("one\nthree\nTASK ***")
    assert "two" not in text
    assert "four" not in text
    assert "five\n\nPLAY ***" in text
    Details(screen).display("no log")


def test_how_long_phases_took_is_kept_beside_other_runs(tmp_path: Path) -> None:
    (tmp_path / "seconds.json").write_text(json.dumps({"other": {"a": 1}, "site": {"nodes": "x"}}), encoding="utf-8")
    seconds = Seconds(tmp_path, "site")
    assert seconds.expected("nodes") is None
    assert Seconds(tmp_path, "other").expected("a") == 1.0
    seconds.keep({"nodes": 1.26, "network": 2})
    kept = json.loads((tmp_path / "seconds.json").read_text(encoding="utf-8"))
    assert kept == {"other": {"a": 1}, "site": {"nodes": 1.3, "network": 2}}
    assert stat.S_IMODE((tmp_path / "seconds.json").stat().st_mode) == 0o600
    assert Seconds(tmp_path, "site").expected("nodes") == 1.3


@pytest.mark.parametrize("text", ["", "[]", '{"site": 3}'])
def test_a_record_that_is_none_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "seconds.json").write_text(text, encoding="utf-8")
    assert Seconds(tmp_path, "site").expected("nodes") is None
    # And without a folder there is none.
    Seconds(tmp_path / "none", "site").keep({"nodes": 1.0})
    assert not (tmp_path / "none").exists()
