"""A module of the controller or of a node in a process of its own, as Ansible starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MODULES = "ansible_collections.trainium.cluster.plugins.modules.internal"


def run(module: str, temporary: Path, **options: Any) -> dict[str, Any]:
    """What a module answers; its temporary folders are made in ``temporary``."""
    arguments = {**options, "_ansible_remote_tmp": str(temporary), "_ansible_keep_remote_files": False}
    process = subprocess.run(
        [sys.executable, "-m", f"{MODULES}.{module}", json.dumps({"ANSIBLE_MODULE_ARGS": arguments})],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)},
        check=False,
    )
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer
