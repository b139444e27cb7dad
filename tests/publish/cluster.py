"""The whole way, from the archive alone to a trained model."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

from tests.publish.check import NAME, Check
from tests.publish.users import REPOSITORY, FailedError


def cluster(check: Check) -> str:
    """From an empty folder to a falling loss in the sandbox, and back"""
    user, sandbox = check.galaxy(), [sys.executable, "-m", "sandbox"]
    up = subprocess.run([*sandbox, "status"], cwd=REPOSITORY, capture_output=True, check=False)
    if up.returncode == 0:
        raise FailedError("a sandbox is up already, which this step would take down; end it by make teardown")
    try:
        check.here(*sandbox, "up", where=REPOSITORY)
        exports = check.here(*sandbox, "env", where=REPOSITORY)
        given = {name: shlex.split(value)[0] for name, value in re.findall(r"(?m)^export (\w+)=(.+)$", exports)}
        # Reports go where the user works, and Ansible comes from the user's environment.
        del given["TRAINIUM_REPORT_DIR"]
        path = os.pathsep.join([str(user.programs), given.pop("PATH")])
        given |= {"ANSIBLE_CONFIG": str(user.collection / "ansible.cfg"), "PATH": path}
        where = user.empty
        (where / "cluster.yml").write_text("trainium_cluster_name: trainium\n", encoding="utf-8")
        try:
            for name in ("site", "status", "report"):
                user.run("ansible-playbook", f"{NAME}.{name}", "-e", "@cluster.yml", where=where, **given)
            told = json.loads((where / "reports/report.json").read_text(encoding="utf-8"))
            if not told["final_loss"] < told["initial_loss"]:
                raise FailedError(f"the loss went from {told['initial_loss']} to {told['final_loss']}")
        finally:
            user.run("ansible-playbook", f"{NAME}.teardown", "-e", "@cluster.yml", where=where, **given)
    finally:
        check.here(*sandbox, "down", where=REPOSITORY)
    return f"loss {told['initial_loss']} to {told['final_loss']} in {told['steps']} steps; nothing is left"
