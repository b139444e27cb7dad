"""What a Trainium node of EKS runs before it joins, by bash, with the programs of its image in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TEMPLATE = Path(__file__).parents[3] / "roles/eks_cluster/templates/user_data.j2"


def script(**variables: object) -> str:
    known = {"eks_cluster_image_id": "", "eks_cluster_lustre": True, "eks_cluster_user_data": "echo mine", **variables}
    text = str(Templar(loader=DataLoader(), variables=known).template(trust_as_template(TEMPLATE.read_text())))
    return text.partition("#!/bin/bash\n")[2].partition("--==trainium==")[0]


def run(folder: Path, programs: dict[str, str], **variables: object) -> tuple[int, str, list[str]]:
    """Code, output, and what was called. ``programs``: name to what the shell does in it."""
    calls = folder / "calls"
    calls.write_text("")
    for name, body in programs.items():
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n{body}\n')
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", script(**variables)],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        cwd=os.sep,
    )
    return done.returncode, done.stdout, calls.read_text().splitlines()


QUIET = {"sleep": "", "systemctl": ""}


@pytest.mark.parametrize("failures", [0, 3])
def test_the_client_of_lustre_is_tried_again(tmp_path: Path, failures: int) -> None:
    # Fails as often as there are lines of it before.
    dnf = f"while read -r one; do case $one in dnf*) n=x$n ;; esac; done < {tmp_path}/calls; [ ${{#n}} -gt {failures} ]"
    code, said, calls = run(tmp_path, {**QUIET, "dnf": dnf})
    assert (code, said.splitlines()[-1]) == (0, "mine")
    assert calls.count("dnf install -y lustre-client") == failures + 1
    assert not [one for one in calls if one.startswith("systemctl")]


def test_a_node_without_it_says_so_and_does_not_join(tmp_path: Path) -> None:
    # Systemd masks nothing whose file lies in /etc/systemd/system.
    programs = {**QUIET, "dnf": "exit 1", "systemctl": "[ $1 != mask ]"}
    code, said, calls = run(tmp_path, programs, trainium_shared_storage="fsx")
    assert code == 1 and "mine" not in said.splitlines()
    assert "lustre-client cannot be installed" in said and "does not join the cluster" in said.splitlines()[-1]
    assert calls[-1] == "systemctl disable --now nodeadm-run.service"


def test_a_node_that_needs_none_joins_without_it(tmp_path: Path) -> None:
    code, said, calls = run(tmp_path, {**QUIET, "dnf": "exit 1"})
    assert (code, said.splitlines()[-1]) == (0, "mine")
    assert "lustre-client cannot be installed" in said and "systemctl" not in calls[-1]


@pytest.mark.parametrize("variables", [{}, {"eks_cluster_lustre": False}])
def test_an_image_without_dnf_has_a_client_of_its_own_or_none(tmp_path: Path, variables: dict[str, object]) -> None:
    code, said, calls = run(tmp_path, QUIET, **variables)
    assert (code, said.splitlines()[-1], calls) == (0, "mine", [])
