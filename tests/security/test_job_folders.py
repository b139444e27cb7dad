"""A link in the place of a folder of a job is not followed by what root does there: its parent is the job's user's."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.security.test_job_environment import play


def test_root_gives_away_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("pass\n", encoding="utf-8")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "output").symlink_to(private)
    done = play(tmp_path, ["check", "stage"], {"preset": "none", "files": [str(script)], "script": "a.py"})
    assert done.returncode != 0
    assert f"{tmp_path}/jobs/output already exists as a link" in done.stdout
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert list(private.iterdir()) == []
