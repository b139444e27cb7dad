"""node_look in a play: what it says of a role agrees with what the role then does."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.contract.warm_python import warm_ansible, warm_python

PLAY = """\
- hosts: compute
  gather_facts: false
  tasks:
    - name: Know the variables
      ansible.builtin.import_role:
        name: trainium.cluster.cluster_hosts
        tasks_from: variables
    - name: Be two hosts on one machine
      ansible.builtin.set_fact:
        nodename: "{{ inventory_hostname }}"
        cacheable: true
    - name: Render the entries
      ansible.builtin.import_role:
        name: trainium.cluster.cluster_hosts
        tasks_from: entries
    - name: Look
      trainium.cluster.internal.node_look:
        roles: [cluster_hosts]
      register: look
    - name: Do what is due
      ansible.builtin.include_role:
        name: trainium.cluster.cluster_hosts
        tasks_from: work
      when: "'cluster_hosts' in look.due"
    - name: Show
      ansible.builtin.debug:
        msg: "found {{ look.due | join(' ') or 'nothing' }}, and {{ 'role' if __ran else 'no role' }} was run"
      vars:
        __ran: "{{ __cluster_hosts_result is defined }}"
"""
INVENTORY = """\
[compute]
n1 private_address=192.0.2.1
n2 private_address=192.0.2.2
[all:vars]
ansible_connection=local
ansible_python_interpreter={python}
cluster_hosts_manage_hostname=false
cluster_hosts_backup=false
cluster_hosts_path={folder}/{{{{ inventory_hostname }}}}
"""


def test_a_role_with_nothing_to_do_is_told_from_one_that_mends(tmp_path: Path) -> None:
    playbook, inventory = tmp_path / "play.yml", tmp_path / "inventory"
    playbook.write_text(PLAY, encoding="utf-8")
    inventory.write_text(INVENTORY.format(python=warm_python(), folder=tmp_path), encoding="utf-8")
    files = [tmp_path / "n1", tmp_path / "n2"]
    for file in files:
        file.write_text("127.0.0.1 localhost\n", encoding="utf-8")

    def said() -> list[str]:
        command = [str(warm_ansible() / "ansible-playbook"), "-i", str(inventory), str(playbook)]
        environment = {**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_STDOUT_CALLBACK": "default"}
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)
        assert run.returncode == 0, run.stdout + run.stderr
        return sorted(re.findall(r"found (.*) was run", run.stdout))

    due, nothing = "cluster_hosts, and role", "nothing, and no role"
    assert said() == [due, due]
    right = [file.read_text(encoding="utf-8") for file in files]
    assert said() == [nothing, nothing]
    files[0].write_text(right[0].replace("192.0.2.2", "192.0.2.9"), encoding="utf-8")
    assert said() == [due, nothing]
    assert [file.read_text(encoding="utf-8") for file in files] == right
