"""Teardown of a cluster whose node group EKS cannot delete."""

from __future__ import annotations

import time

from tests.contract.eks.conftest import Eks


def test_a_group_that_does_not_go_is_told_at_once_and_keeps_what_it_uses(eks: Eks) -> None:
    """Its Auto Scaling group would replace terminated nodes, and needs its launch template."""
    api = eks.cloud.api
    eks.cluster(security_groups=[eks.cloud.group])
    eks.group(launch_template=eks.template())
    api.control("POST", "faults", {"action": "DELETE /clusters/bert/node-groups/trn", "late": "AccessDenied"})
    started = time.monotonic()
    failed = eks._run("internal.cluster_resources", {"cluster_name": "bert", "state": "absent"}, False)
    assert time.monotonic() - started < 60
    assert failed["failed"]
    said = "EKS did not delete the node group bert/trn: AccessDenied"
    assert said in failed["msg"], failed["msg"]
    assert len(eks.cloud.instances("running")) == 2
    assert len(eks.cloud.ec2.describe_launch_templates()["LaunchTemplates"]) == 1
    api.control("POST", "faults", {"clear": True})
    done = eks._run("internal.cluster_resources", {"cluster_name": "bert", "state": "absent"}, False)
    assert done["changed"] and not done.get("failed"), done
    assert eks.cloud.instances("pending", "running") == []
    assert eks.cloud.ec2.describe_launch_templates()["LaunchTemplates"] == []


def test_a_cluster_that_goes_before_its_groups_are_listed_has_none(eks: Eks) -> None:
    """As where its deletion ends in between."""
    eks.cluster(security_groups=[eks.cloud.group])
    gone = {"code": "ResourceNotFoundException", "status": 404, "times": 1}
    eks.cloud.api.fault("GET /clusters/bert/node-groups", **gone)
    done = eks._run("internal.cluster_resources", {"cluster_name": "bert", "state": "absent"}, False)
    assert done.get("changed") and not done.get("failed"), done
    assert eks.client.list_clusters()["clusters"] == []
