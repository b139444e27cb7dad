"""How to log in is told to whoever has an inventory of their own, and no configuration of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_playbooks_log_in_by_the_public_variables(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("[compute]\nnode\n", encoding="utf-8")
    command = [str(Path(sys.executable).with_name("ansible-inventory")), "--inventory", "hosts.ini", "--host", "node"]
    done = subprocess.run(
        [*command, "--playbook-dir", str(ROOT / "playbooks"), "-e", "trainium_ssh_user=ec2-user"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        capture_output=True,
        text=True,
        check=True,
    )
    asked = json.loads(done.stdout)
    assert asked["ansible_user"] == "{{ trainium_ssh_user | default('ubuntu') }}"
    assert "trainium_ssh_private_key_file" in asked["ansible_ssh_private_key_file"]
    # For commands without a playbook.
    ours, others = (ROOT / place / "group_vars/all.yml" for place in ("playbooks", "inventory"))
    assert [line for line in others.read_text().splitlines() if line.startswith("ansible_")] == [
        line for line in ours.read_text().splitlines() if line.startswith("ansible_")
    ]
