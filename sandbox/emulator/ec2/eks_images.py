"""AWS's images for EKS nodes (Amazon Linux 2023, standard and Neuron) and the SSM parameters that name them.

Source: CHANGELOG.md of awslabs/amazon-eks-ami: names, release versions and the driver of Neuron in each.
"""

from __future__ import annotations

import hashlib
from typing import Any

# Release -> Kubernetes version -> its patch, newest first; a Neuron driver 2.29, 2.28, 2.27.
RELEASES = {
    "20260714": {"1.33": 13, "1.34": 9, "1.35": 6, "1.36": 2},
    "20260625": {"1.33": 13, "1.34": 9, "1.35": 6, "1.36": 2},
    "20260505": {"1.33": 11, "1.34": 7, "1.35": 4},
}
# amiType -> what the image's name says.
KINDS = {"AL2023_x86_64_STANDARD": "standard", "AL2023_x86_64_NEURON": "neuron"}
PARAMETERS = "/aws/service/eks/optimized-ami"


def image_name(kind: str, version: str, release: str) -> str:
    return f"amazon-eks-node-al2023-x86_64-{kind}-{version}-v{release}"


def image_id(kind: str, version: str, release: str) -> str:
    return f"ami-0e{hashlib.sha256(image_name(kind, version, release).encode()).hexdigest()[:15]}"


def release_versions(version: str) -> list[str]:
    """Those of a Kubernetes version, newest first."""
    return [f"{version}.{found[version]}-{release}" for release, found in RELEASES.items() if version in found]


def records() -> list[dict[str, Any]]:
    """In the form in which moto reads its list of images."""
    return [
        {
            "ami_id": image_id(kind, version, release),
            "name": image_name(kind, version, release),
            "description": f"EKS-optimized Kubernetes node based on Amazon Linux 2023, (k8s: {version}.{patch})",
            "owner_id": "602401143452",
            "owner_alias": "amazon",
            "public": True,
            "image_location": f"amazon/{image_name(kind, version, release)}",
            "image_type": "machine",
            "architecture": "x86_64",
            "state": "available",
            "hypervisor": "xen",
            "virtualization_type": "hvm",
            "root_device_type": "ebs",
            "root_device_name": "/dev/xvda",
            "sriov": "simple",
            "creation_date": f"{release[:4]}-{release[4:6]}-{release[6:]}T00:00:00.000Z",
        }
        for release, found in RELEASES.items()
        for version, patch in found.items()
        for kind in KINDS.values()
    ]


def parameters() -> dict[str, str]:
    """SSM parameter -> value: only what is recommended has one here."""
    found = {}
    for version in next(iter(RELEASES.values())):
        newest = release_versions(version)[0]
        for kind in KINDS.values():
            folder = f"{PARAMETERS}/{version}/amazon-linux-2023/x86_64/{kind}/recommended"
            found[f"{folder}/image_id"] = image_id(kind, version, newest.rpartition("-")[2])
            found[f"{folder}/release_version"] = newest
    return found
