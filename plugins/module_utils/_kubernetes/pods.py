# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a pod of a training asks for and sees. Pure; no field that Kubernetes 1.20 lacks.

Names of resources are those that the device plugins register (``aws.amazon.com/neuron`` of Neuron's,
``vpc.amazonaws.com/efa`` of EFA's). Huge pages as "Run machine learning training on Amazon EKS with Elastic Fabric
Adapter" (EKS user guide) asks for them: 5120Mi of 2 MiB pages, which Kubernetes takes only beside cpu or memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES, InstanceType
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import RefusedError, is_text

NEURON = "aws.amazon.com/neuron"
EFA = "vpc.amazonaws.com/efa"
HUGE_PAGES = "hugepages-2Mi"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
# Of a namespace, in which nobody can run a pod then that has what the node has, and so root of it.
POD_SECURITY = {"pod-security.kubernetes.io/enforce": "baseline"}
# Where the job's files and its variables are in each pod.
JOB = "/etc/trainium/job"
ENVIRONMENT = "/etc/trainium/environment"
# A node that does not answer is given up after this time; Kubernetes would wait five minutes.
SECONDS_UNTIL_LOST = 60
# [registry/]name[:tag][@digest] as "docker pull" takes it.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,254}(@sha256:[0-9a-f]{64})?")
# Stands for the image that role eks_image has not built yet: a name that no registry can have (RFC 2606).
NO_IMAGE = "unknown.invalid/training:unknown"

Object = dict[str, Any]


def hardware_of(instance_type: str) -> InstanceType:
    """What the type has. Raises ValueError for one without Neuron devices."""
    known = TYPES.get(instance_type)
    if known is None or not known.devices:
        raise ValueError(
            f"trainium_instance_type is '{instance_type}', of which no Neuron devices are known; use one such as "
            "trn1.32xlarge."
        )
    return known


def processes_of(job: Mapping[str, Any], instance_type: str) -> int:
    """Processes a node: as the definition says, or one a NeuronCore.

    Cores of trn2 are joined in pairs unless NEURON_LOGICAL_NC_CONFIG is 1.
    """
    if job["processes_per_node"] != "auto":
        return int(job["processes_per_node"])
    known = hardware_of(instance_type)
    physical = str(job["env"].get("NEURON_LOGICAL_NC_CONFIG", "")) == "1"
    return known.devices * (max if physical else min)(known.cores)


def checked_image(image: Any, to_come: bool = False) -> str:
    """The image of the definition, which Kubernetes cannot do without; ``to_come`` where nothing is submitted yet."""
    if image == NO_IMAGE and not to_come:
        raise ValueError(
            "The image of the training is not built; run role eks_image before, as playbooks/training.yml does, or "
            "name an image in trainium_training."
        )
    if not is_text(image) or not _IMAGE.fullmatch(image):
        raise RefusedError("image", image, "name the container image to train in, as <registry>/<repository>:<tag>")
    return str(image)


def resources(instance_type: str, huge_pages: str, more: Mapping[str, Any]) -> Object:
    """All devices of a node, so that a pod is alone on it. ``more`` overrides limits; null takes one away."""
    known = hardware_of(instance_type)
    limits: dict[str, Any] = {NEURON: str(known.devices)}
    if known.efa:
        limits[EFA] = str(known.efa)
        if huge_pages:
            limits[HUGE_PAGES] = huge_pages
    limits.update(more)
    limits = {name: str(value) for name, value in limits.items() if value is not None}
    # What is no device may be used beyond; Kubernetes wants limit and request of devices and pages to be the same.
    return {"limits": limits, "requests": {"cpu": "1", "memory": "1Gi", **limits}}


def tolerations(more: list[Object]) -> list[Object]:
    """Nodes that are kept for whoever asks for their devices, and how long a node may be silent."""
    kept = [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in (NEURON, EFA)]
    lost = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": SECONDS_UNTIL_LOST,
        }
        for key in ("not-ready", "unreachable")
    ]
    return [*kept, *lost, *more]


def volumes(app: str, items: list[Object], claim: str, shared: str) -> tuple[list[Object], list[Object]]:
    """Volumes of a pod and where its container sees them."""
    found: list[tuple[str, Object, str]] = [
        ("job", {"configMap": {"name": app, "items": items, "defaultMode": 0o555}}, JOB),
        ("environment", {"secret": {"secretName": app, "defaultMode": 0o444}}, ENVIRONMENT),
        ("shared", {"persistentVolumeClaim": {"claimName": claim}}, shared),
        # 64 MiB otherwise, too little for the workers of a DataLoader.
        ("shm", {"emptyDir": {"medium": "Memory"}}, "/dev/shm"),  # noqa: S108 - the pod's own
    ]
    return (
        [{"name": name, **source} for name, source, _path in found],
        [{"name": name, "mountPath": path} for name, _source, path in found],
    )


def container(image: str, command: list[str], env: Mapping[str, str], mounts: list[Object]) -> Object:
    """The one container of a pod, without resources."""
    fields = {"TRAINIUM_POD": "metadata.uid", "TRAINIUM_POD_IP": "status.podIP"}
    return {
        "name": "training",
        "image": image,
        "command": command,
        "env": [
            *({"name": name, "value": value} for name, value in env.items()),
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
        ],
        "volumeMounts": mounts,
    }
