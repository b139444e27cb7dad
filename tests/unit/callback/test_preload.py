"""Workers inherit filters and tests: none compiles them again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.sandbox_driver import REPOSITORY

# A filter of Ansible's own that tells which modules of this collection's filters its process has.
TELLS = """
import sys

class FilterModule:
    def filters(self):
        return {"inherited": lambda prefix: sorted(name for name in sys.modules if name.startswith(prefix))}
"""
FILTERS = "ansible_collections.trainium.cluster.plugins.filter."


def inherited(folder: Path, callback: str) -> list[str]:
    (folder / "filter_plugins").mkdir()
    (folder / "filter_plugins/tells.py").write_text(TELLS, encoding="utf-8")
    copy = {"content": "{{ '" + FILTERS + "' | inherited | to_json }}", "dest": str(folder / "result")}
    play = {"name": "Tell", "hosts": "localhost", "gather_facts": False}
    play = {**play, "tasks": [{"name": "Tell", "ansible.builtin.copy": copy}]}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment = {**clean, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": callback}
    ansible = str(Path(sys.executable).with_name("ansible-playbook"))
    variables = json.dumps({"ansible_connection": "local", "ansible_python_interpreter": sys.executable})
    subprocess.run(
        [ansible, "-i", "localhost,", "-e", variables, "play.yml"],
        cwd=folder,
        env={**environment, "TRAINIUM_LOG_DIR": str(folder / "log")},
        check=True,
        timeout=600,
    )
    found: list[str] = json.loads((folder / "result").read_text(encoding="utf-8"))
    return [name.removeprefix(FILTERS) for name in found]


def test_a_worker_has_every_filter_before_it_names_one(tmp_path: Path) -> None:
    files = {path.stem for path in (REPOSITORY / "plugins/filter").glob("*.py")}
    (tmp_path / "ours").mkdir()
    (tmp_path / "default").mkdir()
    assert set(inherited(tmp_path / "ours", "trainium.cluster.phases")) == files
    # What is looked at is what the callback does.
    assert not set(inherited(tmp_path / "default", "ansible.builtin.default")) & files
