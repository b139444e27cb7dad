"""What look.sh, which root runs, makes of an environment that may be another user's."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import sections

LOOK = Path(__file__).resolve().parents[3] / "roles/prove/files/look.sh"


def test_its_python_runs_as_its_owner_and_its_path_is_no_command() -> None:
    # pytest's own folder is closed to others, whom the environment belongs to here.
    with tempfile.TemporaryDirectory() as folder:
        look_at(Path(folder))


def look_at(folder: Path) -> None:
    venv = folder / "a `touch here` $(touch there)\" '"
    (venv / "bin").mkdir(parents=True)
    python = venv / "bin/python"
    python.write_text('#!/bin/sh\necho "torch==$(id -un)$1"\n', encoding="utf-8")
    python.chmod(0o755)
    owner, wanted = pwd.getpwuid(os.geteuid()).pw_name, ""
    if os.geteuid() == 0:
        # Only root can run something as another user.
        owner = "nobody"
        for path in (folder, venv, venv / "bin"):
            path.chmod(0o755)
        os.chown(venv, pwd.getpwnam(owner).pw_uid, -1)
        wanted = f"torch=={owner}-I"
    done = subprocess.run(
        ["sh", str(LOOK), str(venv)], cwd=folder, capture_output=True, text=True, timeout=600, check=True
    )
    assert sections(done.stdout)["wheels"] == wanted
    assert [path.name for path in folder.iterdir()] == [venv.name]
