"""Files that are replaced in one step."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_the_mode_is_what_was_asked_for(tmp_path: Path, mode: int) -> None:
    replace(tmp_path / "record", b"new", mode)
    assert stat.S_IMODE((tmp_path / "record").stat().st_mode) == mode


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"old")
    (tmp_path / "record").symlink_to("other")
    replace(tmp_path / "record", b"new")
    assert (tmp_path / "other").read_bytes() == b"old"
    assert (tmp_path / "record").read_bytes() == b"new"


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    with pytest.raises(OSError, match="record"):
        replace(tmp_path / "record", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["record"]
