"""owned_folders: folders that are made with their mode, and what is refused by the name of the variable."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import owned_folders

from tests.in_process import ended


def run(capsys: pytest.CaptureFixture[str], check: bool = False, **options: Any) -> dict[str, Any]:
    given = {**options, "_ansible_check_mode": check}
    return ended(owned_folders.main, given, capsys)[0]


def test_folders_are_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert run(capsys, True, paths=paths, mode="0700")["changed"] is True
    assert list(tmp_path.iterdir()) == []
    assert run(capsys, paths=paths, mode="0700")["changed"] is True
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o700, 0o700]
    assert run(capsys, paths=paths, mode="0700")["changed"] is False
    # One that is there already does not hide that another was made.
    (tmp_path / "a").rmdir()
    assert run(capsys, paths=paths)["changed"] is True
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


@pytest.mark.parametrize(("variable", "begins"), [("", "owned_folders"), ("training_job_dir", "training_job_dir")])
def test_a_refusal_begins_with_the_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], variable: str, begins: str
) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "a")
    result = run(capsys, paths=[path], variable=variable)
    assert result["failed"]
    assert result["msg"].startswith(f"{begins}: {tmp_path}")
    assert result["msg"].endswith(".")
    result = run(capsys, paths=[path], variable=variable, mode="0o9")
    assert result["msg"] == f"{begins}: the mode '0o9' is not octal; write it as 0755."
    result = run(capsys, paths=[path], variable=variable, owner="nobody-at-all")
    assert result["msg"].startswith(f"{begins}: ")
    assert "nobody-at-all" in result["msg"]
