# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ParallelCluster's configuration has to know about instance types and regions, without asking AWS."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import family, is_neuron


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
