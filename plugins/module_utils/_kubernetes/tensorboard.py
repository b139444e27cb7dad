# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""TensorBoard beside a training: a Deployment that reads the events on the claim, for ``kubectl port-forward``. Pure.

No Service: it listens in its own pod only, where port-forward comes out and no other pod gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan, pods
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.pods import Object

PORT = 6006
_SUFFIX = "-tensorboard"


def deployment(job: Mapping[str, Any], site: Mapping[str, Any]) -> Object:
    """One for all definitions of a training: the newest says what is read. ``site`` as of `plan.objects`."""
    name = f"{names.slug(job['name'], names.LONGEST - len(_SUFFIX))}{_SUFFIX}"
    labels = names.labels(job["name"], name, "tensorboard")
    container = {
        "name": "tensorboard",
        "image": pods.checked_image(job["image"]),
        "command": [
            *("python3", "-m", "tensorboard.main", "--logdir", job["tensorboard"]),
            *("--host", "127.0.0.1", "--port", str(PORT)),
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "8Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "shared", "mountPath": site["shared"], "readOnly": True}],
    }
    volumes = [{"name": "shared", "persistentVolumeClaim": {"claimName": site["claim"], "readOnly": True}}]
    spec = {**plan.beside_spec(container, volumes, site), "restartPolicy": "Always"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(name, labels, job["name"], site.get("owner") or ""),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {names.APP: name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
