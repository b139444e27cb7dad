"""What the all-reduce across the nodes tells nccom-test, salloc, torchrun and the libraries, as bash runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.test_templates import ACCEPTANCE, render

SHOW = f"""#!{sys.executable}
import json, os, sys
print(json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], dict(os.environ), os.getcwd()]))
"""
# As it runs what follows its own options, in an allocation of a number.
SALLOC = """#!/bin/bash
echo "$*" > "$SHOWN"
while [ "${1#--}" != "$1" ]; do shift; done
export SLURM_JOB_ID=7
exec "$@"
"""
FOR_NCCOM = [
    *("--nworkers", "64", "--nnodes", "2", "--datatype", "fp32", "--minbytes", "33554432", "--maxbytes", "33554432"),
    "--check",
]


def run(tmp_path: Path, template: str, **changes: Any) -> tuple[list[str], dict[str, str], str]:
    """The arguments, the environment and the folder of the program that does the work, with EFA on the node."""
    programs = tmp_path / "bin"
    programs.mkdir()
    texts = {"nccom-test": SHOW, "torchrun": SHOW, "salloc": SALLOC, "fi_info": "#!/bin/sh\n"}
    texts["uname"] = "#!/bin/sh\necho 6.8.0\n"
    # A second interface may have the same address, such as a bridge.
    shown = ((1, "lo", "127.0.0.1/8"), (2, "eth7", "192.0.2.2/24"), (3, "br0", "192.0.2.2/32"))
    texts["ip"] = "#!/bin/sh\n" + "".join(f"echo '{at}: {name}    inet {to} scope {name}'\n" for at, name, to in shown)
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = tmp_path / "script"
    script.write_text(render(f"acceptance/templates/{template}.sh.j2", {**ACCEPTANCE, **changes}))
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "SHOWN": str(tmp_path / "salloc")}
    done = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=True)
    _name, argv, seen, folder = json.loads(done.stdout)
    return argv, seen, folder


@pytest.mark.parametrize(
    ("gate", "count", "more"),
    [
        ({"slurm": False}, 2, ["allr", "--hosts", "192.0.2.1", "192.0.2.2"]),
        ({"slurm": False}, 1, ["allr"]),
        ({"slurm": True}, 2, ["allr", "--slurm-mode", "--slurm-job-id", "7"]),
    ],
)
def test_what_nccom_is_told(tmp_path: Path, gate: dict[str, bool], count: int, more: list[str]) -> None:
    argv, seen, folder = run(tmp_path, "nccom", __acceptance_gate=gate, __acceptance_count=str(count))
    assert argv == [str(count) if word == "2" and at == 3 else word for at, word in enumerate(FOR_NCCOM)] + more
    assert {name: seen[name] for name in ("FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA")} == {
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
    }
    # In an allocation nccom-test finds the first node by itself, and this one is not of it.
    assert seen.get("NEURON_RT_ROOT_COMM_ID") == (None if gate["slurm"] else "192.0.2.1:29510")
    assert folder == "/"


def test_what_salloc_is_told(tmp_path: Path) -> None:
    run(tmp_path, "nccom", __acceptance_gate={"slurm": True})
    told = (tmp_path / "salloc").read_text()
    own = "--nodes=2 --nodelist=n1,n2 --exclusive --immediate=60 --job-name=acceptance --chdir=/ bash "
    assert told.startswith(own)


def test_what_torchrun_is_told(tmp_path: Path) -> None:
    own = {"private_address": "192.0.2.2", "__acceptance_rank": "1", "acceptance_collective_processes": "3"}
    argv, seen, folder = run(tmp_path, "gloo", **own, acceptance_venv_path=str(tmp_path))
    assert argv == [
        *("--nnodes=2", "--nproc-per-node=3", "--local-addr=192.0.2.2", "--node-rank=1", "--master-addr=192.0.2.1"),
        *("--master-port=29510", "/nonexistent/allreduce.py", "--bytes=33554432"),
    ]
    assert (seen["GLOO_SOCKET_IFNAME"], seen["OMP_NUM_THREADS"], folder) == ("eth7", "1", "/")
