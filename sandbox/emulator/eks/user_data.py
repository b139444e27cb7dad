"""The user data of a managed node: what the launch template has, and behind it nodeadm's configuration that EKS adds.

Sources: the user guide's page "Customize managed nodes with launch templates" (MIME multi-part), nodeadm's API in
awslabs/amazon-eks-ami.
"""

from __future__ import annotations

import base64
import json
from email import message_from_bytes, policy
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any

KIND = "node.eks.aws"


def _bytes(data: Any) -> bytes:
    """User data of moto's launch templates, which is encoded."""
    return base64.b64decode(data if isinstance(data, bytes) else data.as_bytes())


def is_mime(data: Any) -> bool:
    """Whether it is a MIME multi-part archive, which alone EKS can add to."""
    return message_from_bytes(_bytes(data), policy=policy.default).is_multipart()


def merged(cluster: dict[str, Any], group: dict[str, Any], image: str, own: Any) -> bytes:
    """The user data of a node, encoded as RunInstances takes it.

    Args:
        cluster: as DescribeCluster shows it.
        group: as DescribeNodegroup shows it.
        own: that of the launch template, or None.
    """
    template = group["launchTemplate"]
    labels = {
        "eks.amazonaws.com/nodegroup": group["nodegroupName"],
        "eks.amazonaws.com/nodegroup-image": image,
        "eks.amazonaws.com/capacityType": group["capacityType"],
        **({"eks.amazonaws.com/sourceLaunchTemplateId": template["id"]} if template else {}),
        **({"eks.amazonaws.com/sourceLaunchTemplateVersion": template["version"]} if template else {}),
        **group["labels"],
    }
    effects = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
    taints = [f"{one['key']}={one.get('value', '')}:{effects[one['effect']]}" for one in group["taints"]]
    flags = [f"--node-labels={','.join(f'{key}={value}' for key, value in labels.items())}"]
    if taints:
        flags.append(f"--register-with-taints={','.join(taints)}")
    service = cluster["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
    configuration = {
        "apiVersion": f"{KIND}/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster["name"],
                "apiServerEndpoint": cluster["endpoint"],
                "certificateAuthority": cluster["certificateAuthority"]["data"],
                "cidr": service,
            },
            "kubelet": {
                "config": {"clusterDNS": [f"{service.rsplit('.', maxsplit=1)[0]}.10"]},
                "flags": flags,
            },
        },
    }
    archive = MIMEMultipart("mixed")
    if own:
        for part in message_from_bytes(_bytes(own), policy=policy.default).iter_parts():
            archive.attach(part)
    # JSON is YAML, which nodeadm reads.
    text = MIMEText(json.dumps(configuration, indent=1))
    del text["Content-Type"]
    text["Content-Type"] = f'application/{KIND}; charset="us-ascii"'
    archive.attach(text)
    return base64.b64encode(archive.as_bytes())
