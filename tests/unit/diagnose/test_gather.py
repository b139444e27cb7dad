"""The ends of logs as nodes give them: cut at the end of a line, so that no secret is cut before it is masked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked_lines

SCRIPT = Path(__file__).parents[3] / "roles/diagnose/files/gather.sh"
SECRET = "wJalrXUtnFEMIbPxRfiCYEXAMPLEKEY"


def gathered(log: Path, lines: int, number: int) -> list[str]:
    """The lines of a log of which so many lines and bytes at most are wanted."""
    command = ["sh", str(SCRIPT), str(lines), str(number), "1", "no", str(log), "--"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    head, *rest = done.stdout.split("\n")
    assert head == f"==> {log} <=="
    return rest[: rest.index("")] if "" in rest else rest


@pytest.mark.parametrize("before", ["export AWS_SECRET_ACCESS_KEY=", "Authorization: Basic ", 'log: {"HF_TOKEN": "'])
def test_no_part_of_a_secret_is_shown_wherever_the_log_is_cut(tmp_path: Path, before: str) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"first\n{before}{SECRET}\nlast\n")
    size = log.stat().st_size
    for number in (1, 5, 6, *range(6 + 4, 6 + len(SECRET) + 4, 4), size - 7, size - 6, size - 1, size, size + 1):
        shown = "\n".join(masked_lines(gathered(log, 10, number)))
        assert not any(SECRET[start : start + 4] in shown for start in range(len(SECRET) - 3)), (number, shown)


def test_what_is_whole_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("first\nsecond\nthird\n")
    assert [gathered(log, 10, number) for number in (100, 19, 18, 13, 12, 6)] == [
        *([["first", "second", "third"]] * 2),
        *([["second", "third"]] * 2),
        *([["third"]] * 2),
    ]
    assert gathered(log, 2, 100) == ["second", "third"]


def test_the_states_of_a_progress_bar_are_lines(tmp_path: Path) -> None:
    """All of them together are one line, which would be left out whole."""
    log = tmp_path / "a.log"
    log.write_text("begins\n" + "".join(f"\r{number}%" for number in range(90, 101)) + "\n")
    assert gathered(log, 10, 20) == ["97%", "98%", "99%", "100%"]
