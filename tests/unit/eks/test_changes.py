"""Each change of a cluster or a node group is one request, and what stays is none."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan as clusters
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_nodegroup as groups

from tests.unit.eks import test_plan, test_plan_nodegroup
from tests.unit.eks.test_described import CLUSTER, GROUP

PARAMS = {**test_plan.PARAMS, "subnets": ["subnet-1", "subnet-2"], "public_access_cidrs": None}


@pytest.mark.parametrize(
    ("change", "what", "request_"),
    [
        ({"public_access": False}, "endpoint access", {"resourcesVpcConfig": {"endpointPublicAccess": False}}),
        ({"private_access": True}, "endpoint access", {"resourcesVpcConfig": {"endpointPrivateAccess": True}}),
        (
            {"public_access_cidrs": ["198.51.100.0/24", "10.0.0.0/8"]},
            "endpoint access",
            {"resourcesVpcConfig": {"publicAccessCidrs": ["10.0.0.0/8", "198.51.100.0/24"]}},
        ),
        (
            {"security_groups": ["sg-3", "sg-1"]},
            "subnets and security groups",
            {"resourcesVpcConfig": {"securityGroupIds": ["sg-1", "sg-3"]}},
        ),
        ({"support": "EXTENDED"}, "support", {"upgradePolicy": {"supportType": "EXTENDED"}}),
        ({"deletion_protection": False}, "deletion protection", {"deletionProtection": False}),
        ({"version": "1.35"}, "Kubernetes 1.35", {"version": "1.35"}),
        (
            {"logging": []},
            "logging",
            {"logging": {"clusterLogging": [{"types": list(clusters.LOGS), "enabled": False}]}},
        ),
    ],
)
def test_each_change_of_a_cluster_is_a_call(change: dict[str, Any], what: str, request_: dict[str, Any]) -> None:
    plan = clusters.plan_cluster(clusters.cluster_of(CLUSTER), {**PARAMS, **change})
    assert plan.updates == [clusters.Update(what, request_)] and plan.changes is True
    after = clusters.predicted({**PARAMS, **change}, plan)
    for option, value in change.items():
        assert after[option] == (sorted(value) if isinstance(value, list) else value)
    if change == {"public_access": False}:
        assert after["public_access_cidrs"] == []


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"logging": ["scheduler", "api"], "security_groups": ["sg-2", "sg-1"], "deletion_protection": True},
        {"public_access_cidrs": ["192.0.2.0/24", "10.0.0.0/8"], "public_access": True, "private_access": False},
        {"authentication_mode": "API", "support": "STANDARD", "version": "1.34"},
        # Of a closed endpoint it says nothing who reaches it.
        {"role_arn": None, "subnets": None, "security_groups": []},
    ],
)
def test_what_is_the_same_is_none(same: dict[str, Any]) -> None:
    plan = clusters.plan_cluster(clusters.cluster_of(CLUSTER), {**PARAMS, **same})
    assert plan.changes is False and clusters.predicted({**PARAMS, **same}, plan) == clusters.cluster_of(CLUSTER)


def test_tags_alone_and_a_new_cluster_are_changes() -> None:
    plan = clusters.plan_cluster(clusters.cluster_of(CLUSTER), {**PARAMS, "tags": {"team": "text"}, "owner": "me"})
    assert plan.tags == {"team": "text", "trainium:owner": "me"} and plan.changes is True and plan.updates == []
    assert clusters.predicted(PARAMS, plan)["tags"]["team"] == "text"
    assert clusters.plan_cluster(None, PARAMS).changes is True


def test_networks_of_a_closed_endpoint_do_not_open_it() -> None:
    closed = {**CLUSTER, "resourcesVpcConfig": {**CLUSTER["resourcesVpcConfig"], "endpointPublicAccess": False}}
    wanted = {**PARAMS, "public_access_cidrs": ["192.0.2.0/24"]}
    assert clusters.plan_cluster(clusters.cluster_of(closed), wanted).changes is False
    opened = clusters.plan_cluster(clusters.cluster_of(closed), {**wanted, "public_access": True})
    access = {"endpointPublicAccess": True, "publicAccessCidrs": ["192.0.2.0/24"]}
    assert [one.request for one in opened.updates] == [{"resourcesVpcConfig": access}]


def test_a_failed_cluster_without_a_reason() -> None:
    failed = clusters.cluster_of({**CLUSTER, "status": "FAILED", "health": None})
    with pytest.raises(TrainiumError, match="could not be made: EKS gives no reason; remove it"):
        clusters.plan_cluster(failed, PARAMS)
    later = clusters.cluster_of({**CLUSTER, "accessConfig": {"authenticationMode": "API"}})
    with pytest.raises(TrainiumError, match="from which there is no way back to API_AND_CONFIG_MAP"):
        clusters.plan_cluster(later, {**PARAMS, "authentication_mode": "API_AND_CONFIG_MAP"})


def test_what_a_new_cluster_is_made_with() -> None:
    asked = clusters.creation({**PARAMS, "public_access_cidrs": ["192.0.2.0/24"]})
    # Whoever makes it could not use it otherwise.
    access = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    assert asked["accessConfig"] == access and asked["roleArn"] == PARAMS["role_arn"]
    network = asked["resourcesVpcConfig"]
    assert (network["endpointPublicAccess"], network["endpointPrivateAccess"]) == (True, True)
    assert network["subnetIds"] == ["subnet-1", "subnet-2"] and "securityGroupIds" not in network
    assert not {"version", "upgradePolicy", "deletionProtection"} & set(asked)
    full = {"security_groups": ["sg-1"], "version": "1.34", "support": "STANDARD", "deletion_protection": False}
    asked = clusters.creation({**PARAMS, **full, "public_access": False, "private_access": False})
    assert asked["resourcesVpcConfig"]["securityGroupIds"] == ["sg-1"]
    assert "publicAccessCidrs" not in asked["resourcesVpcConfig"]
    assert (asked["version"], asked["deletionProtection"]) == ("1.34", False)
    assert asked["upgradePolicy"] == {"supportType": "STANDARD"}
    for option in ("role_arn", "subnets"):
        with pytest.raises(TrainiumError, match=f"{option} is empty; a new cluster needs it"):
            clusters.check_new({**PARAMS, option: None}, False)


NODES = {**test_plan_nodegroup.PARAMS, "subnets": ["subnet-1", "subnet-2"], "min_size": 1, "max_size": 3}
NODES = {**NODES, "launch_template": {"id": "lt-1", "version": "3"}}


def update(**change: Any) -> groups.GroupPlan:
    return groups.plan_group(groups.group_of(GROUP), {**NODES, **change})


@pytest.mark.parametrize(
    ("change", "config"),
    [
        ({}, {}),
        ({"count": 3}, {"scalingConfig": {"minSize": 1, "desiredSize": 3, "maxSize": 3}}),
        ({"min_size": 2}, {"scalingConfig": {"minSize": 2, "desiredSize": 2, "maxSize": 3}}),
        ({"max_size": 4}, {"scalingConfig": {"minSize": 1, "desiredSize": 2, "maxSize": 4}}),
        ({"count": 1, "allow_shrink": True}, {"scalingConfig": {"minSize": 1, "desiredSize": 1, "maxSize": 3}}),
        ({"labels": {"team": "speech"}, "taints": [{"key": "neuron", "effect": "NO_SCHEDULE"}]}, {}),
        ({"labels": {}}, {"labels": {"removeLabels": ["team"]}}),
        ({"labels": {"team": "text"}}, {"labels": {"addOrUpdateLabels": {"team": "text"}}}),
        ({"taints": []}, {"taints": {"removeTaints": [{"key": "neuron", "value": "", "effect": "NO_SCHEDULE"}]}}),
        ({"max_unavailable": 1}, {"updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}}),
        ({"max_unavailable": 2, "node_repair": True}, {}),
        ({"node_repair": False}, {"nodeRepairConfig": {"enabled": False}}),
    ],
)
def test_each_change_of_a_node_group(change: dict[str, Any], config: dict[str, Any]) -> None:
    plan = update(**change)
    assert (plan.config, plan.version, plan.tags, plan.create, plan.again) == (config, {}, {}, False, False)
    assert plan.changes is bool(config)
    after = groups.predicted({**NODES, **change}, plan, groups.group_of(GROUP))
    wanted = {key: value for key, value in change.items() if key not in ("taints", "allow_shrink")}
    assert {key: after[key] for key in wanted} == wanted and after["max_unavailable"] == change.get(
        "max_unavailable", 2
    )
    if "taints" in change:
        assert [one["key"] for one in after["taints"]] == [one["key"] for one in change["taints"]]


def test_a_taint_of_the_same_key_with_another_effect_is_another() -> None:
    other = {"key": "neuron", "value": "", "effect": "NO_EXECUTE"}
    found = update(taints=[other]).config["taints"]
    assert found == {"addOrUpdateTaints": [other], "removeTaints": [{**other, "effect": "NO_SCHEDULE"}]}


@pytest.mark.parametrize(
    ("change", "request_", "said"),
    [
        ({"release_version": "2"}, {"releaseVersion": "2"}, "release 1.34.9-20260625 of the image, not 2"),
        # The release is of a version.
        ({"release_version": "2", "version": "1.35"}, {"releaseVersion": "2"}, "release 1.34.9-20260625 of the image"),
        ({"release_version": None, "version": "1.35"}, {"version": "1.35"}, "Kubernetes 1.34, not 1.35"),
        (
            {"launch_template": {"id": "lt-1", "version": "4"}},
            {"launchTemplate": {"id": "lt-1", "version": "4"}, "releaseVersion": "1.34.9-20260625"},
            "version 3 of the launch template, not 4",
        ),
    ],
)
def test_what_replaces_nodes(change: dict[str, Any], request_: dict[str, Any], said: str) -> None:
    plan = update(**change)
    assert (plan.version, plan.changes) == ({}, False) and said in plan.outdated[0] and len(plan.outdated) == 1
    assert groups.predicted({**NODES, **change}, plan, groups.group_of(GROUP))["version"] == "1.34"
    plan = update(**change, replace_nodes=True)
    assert (plan.version, plan.changes) == (request_, True)
    after = groups.predicted({**NODES, **change}, plan, groups.group_of(GROUP))
    for option in ("release_version", "version"):
        assert change.get(option) in (None, after[option])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"node_role_arn": "r"}, "has node_role_arn arn:aws:iam::123456789012:role/node, not r, which EKS cannot"),
        ({"capacity_type": "ON_DEMAND"}, "has capacity_type SPOT, not ON_DEMAND"),
        ({"launch_template": {"name": "b"}}, "has the launch template a, not b, which EKS cannot change; remove it"),
    ],
)
def test_what_EKS_does_not_change(change: dict[str, Any], said: str) -> None:  # noqa: N802
    with pytest.raises(TrainiumError, match=said):
        update(**change)
    with pytest.raises(TrainiumError, match="is being deleted; wait until it is gone"):
        groups.plan_group(groups.group_of({**GROUP, "status": "DELETING"}), NODES)
    assert not update(launch_template={"name": "a"}).changes and not update(launch_template={"id": "lt-1"}).changes
    assert groups.plan_group(None, NODES).changes is True and update(tags={"team": "text"}).changes is True


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((0, None, None), (0, 0, 1)),
        ((3, None, None), (3, 3, 3)),
        ((3, 0, 5), (0, 3, 5)),
        ((3, 3, 3), (3, 3, 3)),
        ((3, 4, None), None),
        ((3, None, 2), None),
        ((0, 0, 0), None),
        ((3, -1, None), None),
    ],
)
def test_numbers_of_nodes(numbers: tuple[Any, ...], found: tuple[int, ...] | None) -> None:
    asked = dict(zip(("count", "min_size", "max_size"), numbers))
    if found:
        assert tuple(groups.scaling(asked).values()) == found
        return
    with pytest.raises(TrainiumError, match="give 0 <= min_size <= count <= max_size"):
        groups.scaling(asked)


def test_what_a_new_group_is_made_with() -> None:
    plain = groups.creation(
        {**NODES, "launch_template": None, "release_version": None, "version": "1.34"}, ["subnet-2"]
    )
    assert (plain["subnets"], plain["version"]) == (["subnet-2"], "1.34")
    assert not {"launchTemplate", "releaseVersion", "nodeRepairConfig", "capacityType"} & set(plain)
    full = {"version": "1.34", "node_repair": True, "capacity_type": "SPOT", "max_unavailable": 3}
    asked = groups.creation({**NODES, **full, "launch_template": {"id": "lt-1", "name": "", "version": 3}}, [])
    assert asked["launchTemplate"] == {"id": "lt-1", "version": "3"} and "version" not in asked
    assert (asked["nodeRepairConfig"], asked["capacityType"]) == ({"enabled": True}, "SPOT")
    assert asked["updateConfig"]["maxUnavailable"] == 3 and asked["releaseVersion"] == "1.34.9-20260625"
    groups.check_new({**NODES, "node_role_arn": "", "subnets": []}, True)
    with pytest.raises(TrainiumError, match="node_role_arn is empty; a new node group needs it"):
        groups.check_new({**NODES, "node_role_arn": ""}, False)
    # One that failed goes first; what it had is of no matter.
    again = groups.GroupPlan(True, True, {}, {}, {}, [])
    after = groups.predicted({**NODES, "tags": {"a": "b"}, "labels": None}, again, groups.group_of(GROUP))
    assert (after["labels"], after["tags"], after["status"]) == ({}, {"a": "b", "trainium:cluster": "bert"}, "")
    assert after["launch_template"] == {"id": "lt-1", "version": "3"} and after["max_unavailable"] == 2


def test_a_group_that_does_not_say_how_it_is_updated_loses_one_node_at_a_time() -> None:
    old = groups.group_of({**GROUP, "updateConfig": None})
    plan = groups.plan_group(old, NODES)
    assert plan.config == {"updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}}
    assert groups.predicted(NODES, plan, old)["max_unavailable"] == 1
    assert groups.predicted(NODES, groups.plan_group(None, NODES), None)["max_unavailable"] == 1
