"""A training as the tests of Kubernetes complete it."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import plan
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import resolve

SITE: dict[str, Any] = {
    "directory": "/fsx/trainium",
    "shared": "/fsx",
    "claim": "fsx-claim",
    "instance_type": "trn1.32xlarge",
    "huge_pages": "5120Mi",
    "resources": {},
    "tolerations": [],
    "retries": 3,
}
OWN: dict[str, Any] = {
    "preset": "none",
    "name": "bert",
    "script": "a.py",
    "files": ["a.py"],
    "image": "registry.example/bert:1",
}


def completed(
    definition: dict[str, Any] | None = None, site: dict[str, Any] | None = None, launcher: str = "kubernetes"
) -> dict[str, Any]:
    context = {
        "directory": "/fsx/trainium",
        "venv_path": "/opt/venv",
        "launcher": launcher,
        "usable": ["a", "b"],
        "known": 2,
        "checksums": {},
        "shared": True,
    }
    resolved = resolve({**OWN, **(definition or {})}, {}, context)
    return plan.completed(resolved, {**SITE, "launcher": launcher, **(site or {})})
