"""Node groups: what is asked for, what changes, what replaces nodes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan_nodegroup import (
    check_arguments,
    check_new,
    creation,
    group_of,
    is_lack,
    plan_group,
    predicted,
    scaling,
    warning,
)
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

EKS: Any = ServiceModel(Loader().load_service_model("eks", "service-2"))
PARAMS: dict[str, Any] = {
    "cluster": "bert",
    "name": "trn",
    "cluster_name": "bert",
    "state": "present",
    "count": 2,
    "allow_shrink": False,
    "replace_nodes": False,
    "single_zone": True,
    "node_role_arn": "arn:aws:iam::123456789012:role/node",
    "subnets": ["subnet-1", "subnet-2"],
    "launch_template": {"id": "lt-1", "version": "1"},
    "ami_type": "AL2023_x86_64_NEURON",
    "release_version": "1.34.9-20260625",
}
EFFECTS = st.sampled_from(["NO_SCHEDULE", "NO_EXECUTE"])
TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from("ab"),
            "value": st.sampled_from(["", "x"]),
            "effect": st.sampled_from(["NO_SCHEDULE", "NO_EXECUTE"]),
        }
    ),
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)
ANY_PARAMS = st.fixed_dictionaries(
    {key: st.just(value) for key, value in PARAMS.items() if key not in ("count", "allow_shrink")}
    | {"count": st.integers(0, 3), "allow_shrink": st.just(True)},
    optional={
        "min_size": st.just(0),
        "max_size": st.just(4),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
        "taints": TAINTS,
        "max_unavailable": st.integers(1, 2),
        "node_repair": st.booleans(),
        "tags": st.just({"team": "speech"}),
    },
)


def made(params: dict[str, Any]) -> dict[str, Any]:
    """What DescribeNodegroup shows of a group that was made with a request."""
    return {"status": "ACTIVE", "version": "1.34", **creation(params, params["subnets"][:1])}


def check_request(operation: str, request: dict[str, Any]) -> None:
    report = ParamValidator().validate(request, EKS.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


@given(ANY_PARAMS)
def test_what_was_made_as_asked_is_not_changed(params: dict[str, Any]) -> None:
    check_request("CreateNodegroup", creation(params, params["subnets"]))
    current = group_of(made(params))
    plan = plan_group(current, params)
    assert not plan.changes and not plan.outdated
    assert predicted(params, plan, current) == {
        **current,
        **({"labels": params["labels"]} if "labels" in params else {}),
    }


@given(ANY_PARAMS, ANY_PARAMS)
def test_changes_lead_from_any_group_to_what_is_asked(before: dict[str, Any], after: dict[str, Any]) -> None:
    there = made(before)
    plan = plan_group(group_of(there), after)
    check_request("UpdateNodegroupConfig", {"clusterName": "c", "nodegroupName": "n", **plan.config})
    labels, taints = dict(there["labels"]), list(there["taints"])
    for key in plan.config.get("labels", {}).get("removeLabels", ()):
        del labels[key]
    labels.update(plan.config.get("labels", {}).get("addOrUpdateLabels", {}))
    changed = [one for kind in plan.config.get("taints", {}).values() for one in kind]
    keys = [(one["key"], one["effect"]) for one in changed]
    assert len(set(keys)) == len(keys)
    taints = [one for one in taints if (one["key"], one["effect"]) not in keys]
    taints += plan.config.get("taints", {}).get("addOrUpdateTaints", [])
    there.update(plan.config, labels=labels, taints=taints, tags={**there["tags"], **plan.tags})
    assert not plan_group(group_of(there), after).changes


def test_nodes_are_replaced_only_when_that_is_allowed() -> None:
    wanted = {**PARAMS, "release_version": "1.34.7-20260505", "launch_template": {"id": "lt-1", "version": "3"}}
    current = group_of(made(PARAMS))
    plan = plan_group(current, wanted)
    assert not plan.changes and "20260625 of the image, not 1.34.7-20260505" in warning(plan, "trn")
    assert predicted(wanted, plan, current)["release_version"] == "1.34.9-20260625"
    plan = plan_group(current, {**wanted, "replace_nodes": True})
    assert plan.version == {"releaseVersion": "1.34.7-20260505", "launchTemplate": {"id": "lt-1", "version": "3"}}
    check_request("UpdateNodegroupVersion", {"clusterName": "c", "nodegroupName": "n", **plan.version})


def test_nodes_of_a_capacity_block_are_replaced_while_there_are_none() -> None:
    """So the user guide has it, "Create a managed node group with Capacity Blocks for ML"."""
    current = group_of({**made(PARAMS), "capacityType": "CAPACITY_BLOCK"})
    wanted = {**PARAMS, "capacity_type": "CAPACITY_BLOCK", "release_version": "1.34.7-20260505"}
    assert plan_group(current, wanted).outdated
    wanted = {**wanted, "replace_nodes": True, "region": "us-west-2"}
    # Neither the playbooks nor the role take 0 nodes.
    call = (
        "aws eks update-nodegroup-config --cluster-name bert --nodegroup-name trn --region us-west-2 "
        "--scaling-config minSize=0,desiredSize=0"
    )
    with pytest.raises(TrainiumError, match=call):
        plan_group(current, wanted)
    # The nodes drain for minutes after the number has changed.
    plan = plan_group(current, {**wanted, "count": 0, "allow_shrink": True})
    assert (plan.config["scalingConfig"]["desiredSize"], plan.version) == (0, {})
    assert "run this again when its instances are terminated" in warning(plan, "trn", True)
    plan = plan_group({**current, "count": 0, "min_size": 0}, wanted)
    assert (plan.config["scalingConfig"]["desiredSize"], plan.version) == (2, {"releaseVersion": "1.34.7-20260505"})


@pytest.mark.parametrize(
    ("wanted", "current", "request_made"),
    [
        ({}, {}, {"releaseVersion": "1.34.9-20260625"}),
        ({"version": "1.35"}, {}, {"version": "1.35"}),
        ({}, {"amiType": "CUSTOM"}, {}),
    ],
)
def test_another_template_leaves_the_release_as_it_is(
    wanted: dict[str, Any], current: dict[str, Any], request_made: dict[str, Any]
) -> None:
    changes = {"ami_type": None, "release_version": None, "launch_template": {"id": "lt-1", "version": "3"}}
    plan = plan_group(group_of({**made(PARAMS), **current}), {**PARAMS, **changes, **wanted, "replace_nodes": True})
    assert plan.version == {**request_made, "launchTemplate": {"id": "lt-1", "version": "3"}}
    check_request("UpdateNodegroupVersion", {"clusterName": "c", "nodegroupName": "n", **plan.version})


def test_nodes_are_ended_before_others_take_their_place() -> None:
    """What is reserved or scarce has no room for more."""
    config = {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}
    assert creation(PARAMS, ["subnet-1"])["updateConfig"] == config
    other = group_of({**made(PARAMS), "updateConfig": {"maxUnavailable": 2, "updateStrategy": "DEFAULT"}})
    for wanted, number in ((None, 2), (3, 3)):
        plan = plan_group(other, {**PARAMS, "max_unavailable": wanted})
        assert plan.config == {"updateConfig": {**config, "maxUnavailable": number}}
        check_request("UpdateNodegroupConfig", {"clusterName": "c", "nodegroupName": "n", **plan.config})


def test_a_group_that_failed_is_made_again() -> None:
    plan = plan_group(group_of({**made(PARAMS), "status": "CREATE_FAILED"}), PARAMS)
    assert plan.create and plan.again


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"count": 1}, "would terminate nodes"),
        ({"ami_type": "AL2023_x86_64_STANDARD"}, "has ami_type AL2023_x86_64_NEURON, not AL2023_x86_64_STANDARD"),
        ({"instance_types": ["trn1.2xlarge"]}, "has instance_types , not trn1.2xlarge"),
        ({"subnets": ["subnet-2"]}, "is in the subnets subnet-1, not in subnet-2"),
        ({"subnets": ["subnet-2"], "single_zone": False}, "is in the subnets subnet-1, not in subnet-2"),
        ({"launch_template": {"id": "lt-2"}}, "has the launch template lt-1, not lt-2"),
    ],
)
def test_what_eks_cannot_change_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        plan_group(group_of(made(PARAMS)), {**PARAMS, **changes})
    with pytest.raises(TrainiumError, match="was made without a launch template, which EKS cannot add"):
        plan_group(group_of(made({**PARAMS, "launch_template": {}})), PARAMS)


@pytest.mark.parametrize("single_zone", [False, True])
def test_a_further_subnet_leaves_a_group_where_it_is(single_zone: bool) -> None:
    wanted = {**PARAMS, "subnets": ["subnet-1", "subnet-2", "subnet-3"], "single_zone": single_zone}
    plan = plan_group(group_of(made(PARAMS)), wanted)
    assert not (plan.create or plan.config or plan.version or plan.tags)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"min_size": 3}, "min_size 3, count 2 and max_size 2 do not fit"),
        ({"count": -1}, "do not fit"),
        ({"launch_template": {"id": "lt-1", "name": "a"}}, "only one of them"),
        ({"launch_template": {}, "capacity_type": "CAPACITY_BLOCK"}, "needs a launch_template"),
    ],
)
def test_arguments(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        check_arguments({**PARAMS, **changes})
    check_arguments({**PARAMS, "state": "absent", **changes})
    assert scaling({"count": 0}) == {"minSize": 0, "desiredSize": 0, "maxSize": 1}
    with pytest.raises(TrainiumError, match="subnets is empty"):
        check_new({**PARAMS, "subnets": []}, False)


def test_only_a_lack_of_capacity_is_a_reason_to_try_another_zone() -> None:
    assert is_lack(["AsgInstanceLaunchFailures: Could not launch. InsufficientInstanceCapacity - We do not have it."])
    assert not is_lack(["NodeCreationFailure: Instances failed to join the kubernetes cluster"])
