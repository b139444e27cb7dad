"""User data of EKS nodes."""

from __future__ import annotations

import pytest

from sandbox.kubernetes.inside import node_config
from sandbox.kubernetes.inside.node_config import NodeConfigError

CLUSTER = """\
---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: trn
    apiServerEndpoint: https://10.0.0.3
    certificateAuthority: Y2VydA==
    cidr: 172.20.0.0/16
  kubelet:
    flags:
      - --node-labels=eks.amazonaws.com/nodegroup=trn1
"""
MIME = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="B"

--B
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
dnf install -y lustre-client

--B
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    flags:
      - --node-labels=team=blue
    config:
      maxPods: 20
      shutdownGracePeriod: 30s

--B
Content-Type: application/node.eks.aws

{CLUSTER}
--B--
"""


def test_parts_are_merged_in_their_order() -> None:
    spec = node_config.merged(MIME)
    assert spec is not None
    assert spec["cluster"]["name"] == "trn"
    flags = node_config.flags(spec, {"zone": "us-west-2d"})
    assert flags == ["--node-labels=zone=us-west-2d,team=blue,eks.amazonaws.com/nodegroup=trn1"]
    kubelet = node_config.kubelet(spec, "172.20.0.10", 58)
    assert (kubelet["maxPods"], kubelet["shutdownGracePeriod"]) == (20, "30s")
    assert kubelet["clusterDNS"] == ["172.20.0.10"]


def test_a_node_has_no_more_pods_than_addresses() -> None:
    spec = {"kubelet": {"config": {"maxPods": 247, "cgroupDriver": "systemd"}}}
    kubelet = node_config.kubelet(spec, "172.20.0.10", 58)
    assert (kubelet["maxPods"], kubelet["cgroupDriver"]) == (58, "cgroupfs")


def test_scripts_run_before_the_node_joins() -> None:
    assert node_config.scripts(MIME) == ["#!/bin/bash\ndnf install -y lustre-client\n"]
    assert node_config.scripts("#!/bin/sh\ntrue\n") == ["#!/bin/sh\ntrue\n"]


def test_the_object_alone_is_user_data() -> None:
    spec = node_config.merged(CLUSTER)
    assert spec is not None
    assert spec["cluster"]["cidr"] == "172.20.0.0/16"


@pytest.mark.parametrize("text", ["", "#!/bin/sh\ntrue\n"])
def test_without_a_config_there_is_no_node(text: str) -> None:
    assert node_config.merged(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CLUSTER.replace("    cidr: 172.20.0.0/16\n", ""), "cluster.cidr is missing"),
        (CLUSTER.replace("v1alpha1", "v2"), "is no NodeConfig of"),
        ("spec: [", "is no YAML"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NodeConfigError, match=reason):
        node_config.merged(text)
