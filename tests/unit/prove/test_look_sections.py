"""The sections of look.sh, from stand-ins of the programs of a node that answer as theirs do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import sections

LOOK = Path(__file__).resolve().parents[3] / "roles/prove/files/look.sh"
# By the name of the program; one that is called in another way than this says so.
PROGRAMS = {
    "hostname": '[ "$*" = -s ] && echo ip-10-77-0-4',
    "uname": '[ "$*" = -r ] && echo 6.8.0-aws',
    "cloud-init": '[ "$*" = "status --wait" ] && echo "status: done"; exit 2',
    "awk": "echo us-west-2.compute.internal",
    "systemctl": 'case "$*" in *is-active*) exit 0;; "is-enabled aws-ubuntu-eni-helper.service") echo enabled;; esac',
    "resolvectl": 'case "$*" in "query --synthesize=no"*" -4 "*) echo "$*" >&2;; esac',
    "getent": '[ "$1" = ahostsv4 ] && [ "$2" != unknown ] && echo "10.77.0.4 $2"',
    "curl": 'case "$*" in *" --request PUT "*"token-ttl-seconds: "*latest/api/token) printf 200;; esac',
    "cat": 'case "$1" in /etc/apt/*) printf "#1\\n  # 2\\n\\ndeb a\\ndeb b\\n";; *) exec /bin/cat "$@";; esac',
    "modinfo": '[ "$*" = "-F version neuron" ] && echo 2.29.0.0',
    "dkms": '[ "$*" = status ] && echo "aws-neuron, installed"',
    "ls": 'case "$2" in /dev/neuron*) printf "/dev/neuron0\\n/dev/neuron1\\n";; esac',
    "neuron-ls": '[ "$*" = -j ] && echo "[]"',
    "dpkg-query": '[ "$*" = "--show aws-neuronx-*" ] && printf "aws-neuronx-dkms\\t2.29\\n"',
    "slurmctld": "exit 127",
    "slurmd": '[ "$*" = -V ] && echo "slurm 24.11"',
    "head": 'case "$3" in /opt/*) echo "EFA 1.51";; *) exec /usr/bin/head "$@";; esac',
}


def look(folder: Path, **programs: str) -> dict[str, str]:
    """What it says on a node that has these programs."""
    for name, text in {**PROGRAMS, **programs}.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", str(LOOK), "/no/venv"], capture_output=True, text=True, timeout=600, check=True, env=environment
    )
    return sections(done.stdout)


def test_what_a_node_shows(tmp_path: Path) -> None:
    found = look(tmp_path)
    system = next(line for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "PRETTY" in line)
    assert found.pop("system") == system.partition("=")[2].strip('"')
    assert found.pop("apt_lists").isdigit()
    assert found == {
        "name": "ip-10-77-0-4",
        "kernel": "6.8.0-aws",
        # It ends with an error that is none, where cloud-init warned of something.
        "cloud_init": "status: done",
        "resolver": "query --synthesize=no --legend=no -4 ip-10-77-0-4.us-west-2.compute.internal",
        "metadata": "200",
        "neuron_source": "deb a deb b",
        "eni_helper": "enabled",
        "neuron_module": "2.29.0.0",
        "dkms": "aws-neuron, installed",
        "devices": "2",
        "neuron_ls": "[]",
        "neuron_packages": "aws-neuronx-dkms\t2.29",
        "efa_installer": "EFA 1.51",
        "slurm": "slurm 24.11",
        "wheels": "",
    }


@pytest.mark.parametrize(
    ("domain", "told"),
    [
        ("us-west-2.compute.internal", "10.77.0.4 ip-10-77-0-4.us-west-2.compute.internal"),
        ("", "10.77.0.4 ip-10-77-0-4"),
    ],
)
def test_a_node_without_systemd_s_resolver_asks_the_one_that_it_has(tmp_path: Path, domain: str, told: str) -> None:
    assert look(tmp_path, systemctl="exit 3", awk=f"echo {domain}")["resolver"] == told


def test_a_name_that_nobody_knows_is_told(tmp_path: Path) -> None:
    assert look(tmp_path, systemctl="exit 3", getent="exit 2")["resolver"].endswith(".internal: not found")


def test_a_newer_neuron_ls_is_asked_as_it_wants(tmp_path: Path) -> None:
    newer = '[ "$*" = "--output-format json" ] && echo "{}"'
    assert look(tmp_path, neuron_ls=newer)["neuron_ls"] == "{}"


def test_a_section_is_no_longer_than_a_report_takes(tmp_path: Path) -> None:
    found = look(tmp_path, dkms="yes | /usr/bin/head -c 100000", modinfo="echo gone >&2; exit 1")
    assert len(found["dkms"]) in (3999, 4000)
    assert found["neuron_module"] == ""
    assert found["devices"] == "2"
