"""User data of an EKS node as nodeadm reads it, and what it makes of that. Pure but for the YAML library.

See https://awslabs.github.io/amazon-eks-ami/nodeadm/: NodeConfig objects as they are, or as parts of a MIME document,
merged in their order, the last one wins.
"""

from __future__ import annotations

import email
from collections.abc import Iterator
from typing import Any

import yaml

VERSION = "node.eks.aws/v1alpha1"
Config = dict[str, Any]


class NodeConfigError(ValueError):
    """Why the user data makes no node."""


def parts(user_data: str) -> Iterator[tuple[str, str]]:
    """(content type, text) of each part of the user data."""
    if "mime-version:" not in user_data[:400].lower():
        yield ("text/x-shellscript" if user_data.startswith("#!") else "application/node.eks.aws"), user_data
        return
    for part in email.message_from_string(user_data.lstrip()).walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            yield part.get_content_type(), payload.decode("utf-8", "replace")


def scripts(user_data: str) -> list[str]:
    """What cloud-init runs before the node joins."""
    return [text for kind, text in parts(user_data) if kind in ("text/x-shellscript", "text/cloud-boothook")]


def merged(user_data: str) -> Config | None:
    """The ``spec`` of all NodeConfigs together; None where there is none: a host that is no node of a cluster.

    Raises:
        NodeConfigError: one cannot be read, or what every node needs is missing.
    """
    spec: Config = {}
    found = False
    for kind, text in parts(user_data):
        if kind != "application/node.eks.aws":
            continue
        try:
            documents = [one for one in yaml.safe_load_all(text) if isinstance(one, dict)]
        except yaml.YAMLError as error:
            raise NodeConfigError(f"the NodeConfig is no YAML: {error}") from error
        for document in documents:
            if (document.get("apiVersion"), document.get("kind")) != (VERSION, "NodeConfig"):
                raise NodeConfigError(
                    f"{document.get('apiVersion')} {document.get('kind')} is no NodeConfig of {VERSION}"
                )
            spec, found = merge(spec, document.get("spec") or {}), True
    if not found:
        return None
    cluster = spec.get("cluster") or {}
    missing = [name for name in ("name", "apiServerEndpoint", "certificateAuthority", "cidr") if not cluster.get(name)]
    if missing:
        raise NodeConfigError(f"cluster.{missing[0]} is missing in the NodeConfig")
    return spec


def merge(first: Config, second: Config) -> Config:
    """Maps are merged, lists of kubelet's flags follow each other, all else is replaced."""
    result = dict(first)
    for key, value in second.items():
        old = first.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merge(old, value)
        elif key == "flags" and isinstance(old, list) and isinstance(value, list):
            result[key] = [*old, *value]
        else:
            result[key] = value
    return result


def flags(spec: Config, labels: dict[str, str]) -> list[str]:
    """Kubelet's flags: the user's, and ``labels`` added to those that the user gives."""
    given = [str(flag) for flag in (spec.get("kubelet") or {}).get("flags") or []]
    own = [flag.removeprefix("--node-labels=") for flag in given if flag.startswith("--node-labels=")]
    every = [*(f"{key}={value}" for key, value in labels.items()), *own]
    others = [flag for flag in given if not flag.startswith("--node-labels=")]
    return [*others, f"--node-labels={','.join(every)}"]


def kubelet(spec: Config, dns: str, max_pods: int) -> Config:
    """Kubelet's configuration: nodeadm's, with what the user changes."""
    base: Config = {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/seed/kubernetes/kubelet.crt",
        "tlsPrivateKeyFile": "/seed/kubernetes/kubelet.key",
        "clusterDNS": [dns],
        "clusterDomain": "cluster.local",
        "maxPods": max_pods,
        "hairpinMode": "hairpin-veth",
        # A container has no cgroups of systemd to offer, and the machine's disk is not the node's.
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "protectKernelDefaults": False,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "5s",
    }
    changed = merge(base, (spec.get("kubelet") or {}).get("config") or {})
    return {**changed, "maxPods": min(int(changed["maxPods"]), max_pods), "cgroupDriver": "cgroupfs"}
