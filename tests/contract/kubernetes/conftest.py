"""Modules for Kubernetes as processes, against an API server in memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.kubernetes.api import Cluster
from tests.contract.warm_python import warm_python

MODULES = "ansible_collections.trainium.cluster.plugins.modules"
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("kubernetes")
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


@pytest.fixture
def run(cluster: Cluster) -> Run:
    """A module's result; ``kubeconfig`` is that of the cluster."""

    def call(module: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
        private = {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_remote_tmp": tempfile.gettempdir()}
        arguments = {"kubeconfig": str(cluster.kubeconfig), **arguments}
        done = subprocess.run(
            [warm_python("kubernetes.config"), "-m", f"{MODULES}.{module}"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, **private}}),
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
            timeout=600,
        )
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    return call
