"""Which files programs open meanwhile, Python's own copies of them among these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.mutants.opened import FOLDERS, Opened


def test_every_program_that_imports_a_file_is_seen_and_not_only_the_first(tmp_path: Path) -> None:
    """The first compiles it, into a folder that was not there, and those after it read no more than that."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
    (tmp_path / "plugins/thing.py").write_text("NUMBER = 1\n", encoding="utf-8")
    opened = Opened(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "plugins")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for _time in range(2):
        subprocess.run([sys.executable, "-c", "import thing"], env=environment, check=True)
        assert "plugins/thing.py" in opened.since()
    assert opened.since() == set()
