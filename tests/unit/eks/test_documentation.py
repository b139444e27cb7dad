"""eks_cluster and eks_nodegroup take and return what their documentation says."""

from __future__ import annotations

from types import ModuleType

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan, plan_nodegroup
from ansible_collections.trainium.cluster.plugins.modules import eks_cluster, eks_nodegroup

from tests.unit.documented import check_options, check_result, hidden
from tests.unit.eks import test_plan_nodegroup as groups


@pytest.mark.parametrize("module", [eks_cluster, eks_nodegroup])
def test_the_options_are_as_documented_and_none_is_hidden(module: ModuleType) -> None:
    check_options(module)
    assert hidden(module.ARGUMENTS) == []


def test_a_cluster_is_shown_as_documented() -> None:
    found = plan.cluster_of({"name": "bert"})
    check_result(eks_cluster, {**found, "admins": []}, "cluster")


def test_a_node_group_is_shown_as_documented() -> None:
    check_result(eks_nodegroup, plan_nodegroup.group_of(groups.made(groups.PARAMS)), "nodegroup")
    check_result(eks_nodegroup, plan_nodegroup.group_of({"nodegroupName": "trn"}), "nodegroup")
