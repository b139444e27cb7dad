"""The commands of Ansible that tests take: their configuration is the caller's, though Ansible was imported before.

What is compiled or read once for all is what Ansible would have compiled or read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.warm_python import CONTROLLER, _compiled, warm_ansible, warm_python


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


SETTINGS = r"""
- name: The same text, read in two ways
  hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - name: As a task has it
      ansible.builtin.debug:
        msg: "{{ 'a\\tb' }}"
    - name: As a file has it, in which a backslash is Jinja's
      ansible.builtin.debug:
        msg: "{{ lookup('ansible.builtin.template', 'text.j2') }}"
    - name: With signs of its own
      ansible.builtin.debug:
        msg: "{{ lookup('ansible.builtin.template', 'text.j2', variable_start_string='<<', variable_end_string='>>') }}"
    - name: As an expression
      ansible.builtin.assert:
        that: "'a\\tb' == 'a\\tb' and other is undefined"
    - name: What is wrong is found at its line
      ansible.builtin.assert:
        that: other
"""


def test_what_is_compiled_once_depends_on_how_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "text.j2").write_text(r"{{ 'a\tb' }}", encoding="utf-8")
    said = []
    for command in (warm_ansible() / "ansible-playbook", Path(sys.executable).with_name("ansible-playbook")):
        # The second takes what the first has kept.
        kept = [len(list(Path(_compiled()).iterdir()))]
        for _time in range(2):
            asked = [str(command), "-i", "localhost,", "play.yml"]
            environment = {**os.environ, "ANSIBLE_NOCOLOR": "1"}
            done = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 2, done.stdout
            kept.append(len(list(Path(_compiled()).iterdir())))
            # Some lines name the command itself.
            said.append([line for line in (done.stdout + done.stderr).splitlines() if "warm-python" not in line])
        assert kept[1] == kept[2]
        assert (kept[0] < kept[1]) == (command.parent == warm_ansible())
    assert said[0] == said[1] == said[2] == said[3]
    whole = "\n".join(said[0])
    for text in (r'"msg": "a\\tb"', r'"msg": "a\tb"', r'''"msg": "{{ 'a\\tb' }}"''', "play.yml:21:15"):
        assert text in whole


def test_a_key_that_stands_twice_is_warned_of_each_time(tmp_path: Path) -> None:
    (tmp_path / "vars.yml").write_text("twice: 1\ntwice: 2\n", encoding="utf-8")
    play = [{"hosts": "localhost", "gather_facts": False, "vars_files": ["vars.yml"], "tasks": []}]
    (tmp_path / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", "play.yml"]
    for _time in range(3):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "duplicate mapping key" in done.stderr


def test_what_was_decrypted_is_kept_nowhere(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("a password", encoding="utf-8")
    (tmp_path / "vars.yml").write_text("hidden: no-such-word-anywhere\n", encoding="utf-8")
    vault = [str(Path(sys.executable).with_name("ansible-vault")), "encrypt", "--vault-password-file", "password"]
    subprocess.run([*vault, "vars.yml"], cwd=tmp_path, capture_output=True, check=True)
    tasks = [{"name": "Tell", "ansible.builtin.debug": {"msg": "{{ hidden }}"}}]
    play = [{"hosts": "localhost", "gather_facts": False, "vars_files": ["vars.yml"], "tasks": tasks}]
    (tmp_path / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", "--vault-password-file", "password"]
    done = subprocess.run([*command, "play.yml"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "no-such-word-anywhere" in done.stdout
    kept = [path for path in Path(_compiled()).iterdir() if b"no-such-word-anywhere" in path.read_bytes()]
    assert kept == []
    assert any(Path(_compiled()).iterdir())
