"""What TorchX's component gives the shell of a pod, under real torchrun: which pod has rank 0."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import volcano

from tests.training.conftest import free_port
from tests.unit.kubernetes.definitions import SITE, completed

# The address of the first pod comes after those of the others.
OWN = ["127.0.0.9", "127.0.0.1", "127.0.0.2"]


def test_rank_0_is_in_the_pod_that_is_followed(python: Path, tmp_path: Path) -> None:
    site = {**SITE, "queue": "trainium"}
    options = volcano.options_of(completed({"processes_per_node": 1}, site, "torchx"), site, False)
    script = tmp_path / "said.py"
    script.write_text("import os\nprint('RANK', os.environ['RANK'], os.environ['MASTER_ADDR'])\n", encoding="utf-8")
    program = tmp_path / "hostname"
    program.write_text('#!/bin/sh\necho "$OWN"\n', encoding="utf-8")
    program.chmod(0o755)
    whole = {**options, "script": str(script), "script_args": "", "nnodes": len(OWN)}
    # The name of the first pod means nothing to this machine.
    whole["rdzv_endpoint"] = f"127.0.0.1:{free_port()}"
    job = volcano.volcano_job("bert-1", whole, site)
    path = f"{tmp_path}:{python.parent}:{os.environ['PATH']}"
    pods = []
    for task, own in zip(job["spec"]["tasks"], OWN):
        (container,) = task["template"]["spec"]["containers"]
        environment = {"PATH": path, "HOME": str(tmp_path), "OMP_NUM_THREADS": "1", "OWN": own}
        pods.append(
            subprocess.Popen(
                container["command"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    try:
        logs = [pod.communicate(timeout=120)[0] for pod in pods]
    finally:
        for pod in pods:
            pod.kill()
    assert [pod.returncode for pod in pods] == [0, 0, 0], logs
    for replica, log in enumerate(logs):
        assert f"RANK {replica} {OWN[0]}\n" in log
