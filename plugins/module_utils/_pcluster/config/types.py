# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ParallelCluster's configuration has to know about instance types and regions, without asking AWS.

Source: DescribeInstanceTypes (EfaSupported) and the EC2 documentation, 2026-11.
"""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.networks import KNOWN_NETWORKS

# No family has EFA on these sizes; trn2.3xlarge and p5.4xlarge have it, so the list ends below them.
_SMALL = frozenset({"nano", "micro", "small", "medium", "large", "xlarge", "2xlarge"})
# Graphics families have EFA from 8xlarge on.
_GRAPHICS = frozenset({"g4dn", "g5", "g6", "g6e", "gr6"})
_GRAPHICS_WITH_EFA = frozenset({"8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge", "metal"})
_OTHERS_WITH_EFA = frozenset({"p3dn.24xlarge", "p5.4xlarge", "trn2.3xlarge", "inf1.24xlarge"})
_NO_EFA_FAMILIES = frozenset({"inf1", "inf2", "trn1", "t2", "t3", "t3a", "t4g", "m4", "m5", "m5a", "c4", "c5", "r5"})


def family(instance_type: str) -> str:
    """``trn1`` of ``trn1.32xlarge``."""
    return instance_type.partition(".")[0]


def is_neuron(instance_type: str) -> bool:
    """Whether the type carries Neuron devices."""
    return family(instance_type).startswith(("trn", "inf"))


def has_efa(instance_type: str) -> bool | None:
    """Whether the type has EFA; None where it is not known."""
    known = KNOWN_NETWORKS.get(instance_type)
    if known:
        return known.efa > 0
    if instance_type in _OTHERS_WITH_EFA:
        return True
    group, _dot, size = instance_type.partition(".")
    if group in _GRAPHICS:
        return size in _GRAPHICS_WITH_EFA
    if group in _NO_EFA_FAMILIES or size in _SMALL:
        return False
    return None


def reserved_by_aws(instance_type: str) -> bool:
    """Whether a capacity reservation of the type is made by AWS as a rule, with its own placement group."""
    return family(instance_type).startswith(("p4", "p5", "p6"))


def root_volume_size(instance_type: str) -> int:
    """GiB that a compute node's root volume should have: the Neuron software and its caches want 512."""
    return 512 if is_neuron(instance_type) else 200


def partition(region: str) -> str:
    """The first part of ARNs in a region."""
    if region.startswith("cn-"):
        return "aws-cn"
    if region.startswith("us-gov-"):
        return "aws-us-gov"
    return "aws"
