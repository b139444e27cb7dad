"""What a node answers becomes the result of a task: a hostile one changes nothing of other hosts by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.warm_python import warm_ansible

# In the place of the node's Python, which Ansible gives its modules on standard input.
LIAR = """#!{python}
import sys
sys.stdin.buffer.read()
print({answer!r})
"""


@pytest.mark.parametrize("where", ["above", "within"])
def test_a_node_adds_no_host_and_no_variable(tmp_path: Path, where: str) -> None:
    planted: dict[str, Any] = {
        "add_host": {"host_name": "bystander", "host_vars": {"planted": "yes"}, "groups": ["all"]},
        "ansible_facts": {"planted": "yes"},
        "_ansible_no_log": True,
    }
    found = {"__monitoring_found": {"packages": {}, **(planted if where == "within" else {})}}
    answer = {"changed": False, "found": found, **(planted if where == "above" else {})}
    liar = tmp_path / "python"
    liar.write_text(LIAR.format(python=sys.executable, answer=json.dumps(answer)), encoding="utf-8")
    liar.chmod(0o755)
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        f"node ansible_connection=local ansible_python_interpreter={liar}\nbystander ansible_connection=local\n",
        encoding="utf-8",
    )
    ask = {"name": "Ask", "trainium.cluster.internal.node_look": {"role": "monitoring"}, "register": "said"}
    seen = "{{ [said.packages, hostvars.bystander.planted | default('no'), planted | default('no')] | to_json }}"
    tell = {"name": "Tell", "ansible.builtin.debug": {"msg": seen}}
    play = {"hosts": "node", "gather_facts": False, "vars": {"__monitoring_look": {}}, "tasks": [ask, tell]}
    (tmp_path / "play.yml").write_text(json.dumps([{**play, "name": "Ask"}]), encoding="utf-8")
    done = subprocess.run(
        [str(warm_ansible() / "ansible-playbook"), "-i", str(inventory), str(tmp_path / "play.yml")],
        env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_STDOUT_CALLBACK": "default"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '[{}, "no", "no"]' in done.stdout.replace('\\"', '"'), done.stdout
