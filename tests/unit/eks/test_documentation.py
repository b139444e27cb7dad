"""eks_cluster and eks_nodegroup return what their documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan, plan_nodegroup
from ansible_collections.trainium.cluster.plugins.modules import eks_cluster, eks_nodegroup

from tests.unit.eks import test_plan_nodegroup as groups
from tests.unit.modules.documented import check_result


def test_a_cluster_is_shown_as_documented() -> None:
    found = plan.cluster_of({"name": "bert"})
    check_result(eks_cluster, {**found, "admins": []}, "cluster")


def test_a_node_group_is_shown_as_documented() -> None:
    check_result(eks_nodegroup, plan_nodegroup.group_of(groups.made(groups.PARAMS)), "nodegroup")
    check_result(eks_nodegroup, plan_nodegroup.group_of({"nodegroupName": "trn"}), "nodegroup")
