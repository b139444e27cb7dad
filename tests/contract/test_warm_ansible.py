"""The commands of Ansible that tests take: their configuration is the caller's, though Ansible was imported before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.warm_python import CONTROLLER, warm_ansible, warm_python


def test_each_run_has_its_own_configuration(tmp_path: Path) -> None:
    message = "msg={{ [lookup('config','DEFAULT_FORKS'),lookup('config','DEFAULT_TIMEOUT')]|join('-') }}"
    command = [str(warm_ansible() / "ansible"), "localhost", "-m", "debug", "-a", message]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    for forks, timeout in ((7, 11), (8, 12)):
        folder = tmp_path / str(forks)
        folder.mkdir()
        (folder / "ansible.cfg").write_text(f"[defaults]\nforks = {forks}\n", encoding="utf-8")
        environment = {**clean, "ANSIBLE_TIMEOUT": str(timeout)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        assert f'"msg": "{forks}-{timeout}"' in done.stdout
        assert "reconfigure" not in done.stderr


@pytest.mark.parametrize("name", ["ansible", "ansible-inventory", "ansible-playbook"])
def test_it_says_of_itself_what_the_command_says(name: str) -> None:
    commands = [warm_ansible() / name, Path(sys.executable).with_name(name)]
    first, second = (subprocess.check_output([str(command), "--version"], text=True) for command in commands)
    assert first == second


def test_what_was_imported_before_reads_no_configuration() -> None:
    text = (
        "import sys; print(sorted({'ansible.constants', 'ansible.utils.display', 'ansible.errors'} & {*sys.modules}))"
    )
    said = subprocess.check_output([warm_python(*CONTROLLER), "-c", text], text=True)
    assert said == "['ansible.errors']\n"
