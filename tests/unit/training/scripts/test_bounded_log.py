"""A log that is fetched from a node has a size, whatever it holds: its beginning and its end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "roles" / "training_job" / "files" / "bounded.sh"


def shown(path: Path, size: int) -> bytes:
    return subprocess.run(["sh", str(SCRIPT), str(path), str(size)], capture_output=True, check=True).stdout


@pytest.mark.parametrize("size", [10, 11, 1000])
def test_a_short_log_is_shown_whole(tmp_path: Path, size: int) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    assert shown(tmp_path / "log", size) == b"0123456789"


@pytest.mark.parametrize(("size", "begin"), [(9, 4), (200_000, 65536), (131_072, 65536), (131_070, 65535)])
def test_of_a_long_one_the_middle_is_left_out(tmp_path: Path, size: int, begin: int) -> None:
    log = tmp_path / "a log"
    content = bytes(number % 251 for number in range(size + 1000))
    log.write_bytes(content)
    note = (
        f"\nJOB note: 1000 bytes of this log are left out here, all of it is in {log} on {os.uname().nodename}.\n"
    ).encode()
    assert shown(log, size) == content[:begin] + note + content[-(size - begin) :]


def test_what_is_no_file_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none", "."):
        assert shown(tmp_path / name, 10) == b""
