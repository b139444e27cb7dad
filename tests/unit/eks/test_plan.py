"""Clusters of EKS: what is asked for, what changes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import check_ours
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan import (
    LOGS,
    check_groups,
    check_new,
    check_version,
    cluster_of,
    creation,
    logging_request,
    plan_cluster,
    predicted,
    version_steps,
)
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

EKS: Any = ServiceModel(Loader().load_service_model("eks", "service-2"))
PARAMS: dict[str, Any] = {
    "name": "bert",
    "cluster_name": "bert",
    "role_arn": "arn:aws:iam::123456789012:role/r",
    "subnets": ["subnet-2", "subnet-1"],
    "public_access_cidrs": ["192.0.2.0/24"],
}
ANY_PARAMS = st.fixed_dictionaries(
    {**{key: st.just(value) for key, value in PARAMS.items()}, "version": st.sampled_from([None, "1.34", "1.35"])},
    optional={
        "security_groups": st.just(["sg-1"]),
        "public_access": st.booleans(),
        "private_access": st.just(True),
        "logging": st.lists(st.sampled_from(LOGS), unique=True),
        "authentication_mode": st.sampled_from(["API", "API_AND_CONFIG_MAP"]),
        "support": st.sampled_from(["STANDARD", "EXTENDED"]),
        "deletion_protection": st.booleans(),
        "tags": st.just({"team": "speech"}),
    },
)


def made(params: dict[str, Any]) -> dict[str, Any]:
    """What DescribeCluster shows of a cluster that was made with a request."""
    asked = creation(params)
    return {"status": "ACTIVE", "version": "1.34", **asked}


def check_request(operation: str, request: dict[str, Any]) -> None:
    report = ParamValidator().validate(request, EKS.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


@given(ANY_PARAMS)
def test_what_was_made_as_asked_is_not_changed(params: dict[str, Any]) -> None:
    check_request("CreateCluster", creation(params))
    current = cluster_of(made(params))
    assert not plan_cluster(current, params).changes
    assert predicted(params, plan_cluster(current, params)) == current


@given(ANY_PARAMS, ANY_PARAMS)
def test_updates_lead_from_any_cluster_to_what_is_asked(before: dict[str, Any], after: dict[str, Any]) -> None:
    there = made(before)
    try:
        plan = plan_cluster(cluster_of(there), after)
    except TrainiumError as error:
        assert "no way back" in str(error) or "does not lower" in str(error)
        return
    for update in plan.updates:
        check_request(
            "UpdateClusterVersion" if "version" in update.request else "UpdateClusterConfig",
            {"name": "bert", **update.request},
        )
        # One kind of change a call.
        (key,) = update.request
        value = update.request[key]
        there[key] = {**there[key], **value} if isinstance(there.get(key), dict) and key != "logging" else value
    there["tags"] = {**there["tags"], **plan.tags}
    assert not plan_cluster(cluster_of(there), after).changes


def test_the_endpoint_is_never_open_to_everyone_unasked() -> None:
    with pytest.raises(TrainiumError, match="whole Internet"):
        check_new({**PARAMS, "public_access_cidrs": []}, False)
    check_new({**PARAMS, "public_access": False, "public_access_cidrs": None}, False)
    with pytest.raises(TrainiumError, match="role_arn is empty"):
        check_new({**PARAMS, "role_arn": None}, False)
    check_new({**PARAMS, "role_arn": None, "subnets": []}, True)
    private = cluster_of(made({**PARAMS, "public_access": False}))
    with pytest.raises(TrainiumError, match="whole Internet"):
        plan_cluster(private, {**PARAMS, "public_access": True, "public_access_cidrs": []})
    assert not plan_cluster(private, {**PARAMS, "public_access": None, "public_access_cidrs": []}).changes
    network = creation(PARAMS)["resourcesVpcConfig"]
    assert network["endpointPrivateAccess"] and network["publicAccessCidrs"] == ["192.0.2.0/24"]


def test_modes_of_authentication_come_one_after_the_other() -> None:
    old = cluster_of({**made(PARAMS), "accessConfig": {"authenticationMode": "CONFIG_MAP"}})
    plan = plan_cluster(old, {**PARAMS, "authentication_mode": "API"})
    modes = [update.request["accessConfig"]["authenticationMode"] for update in plan.updates]
    assert modes == ["API_AND_CONFIG_MAP", "API"]


def test_further_subnets_are_no_change_and_others_are() -> None:
    current = cluster_of(made(PARAMS))
    more = {**PARAMS, "subnets": [*PARAMS["subnets"], "subnet-3"]}
    assert not plan_cluster(current, more).changes and predicted(more, plan_cluster(current, more)) == current
    (update,) = plan_cluster(current, {**PARAMS, "subnets": ["subnet-1", "subnet-4"]}).updates
    assert update.request == {"resourcesVpcConfig": {"subnetIds": ["subnet-1", "subnet-4"]}}


def test_every_type_of_log_is_on_or_off() -> None:
    on, off = logging_request(["audit"])["clusterLogging"]
    assert (on, off["enabled"], len(off["types"])) == ({"types": ["audit"], "enabled": True}, False, 4)


def test_versions() -> None:
    offered = [
        {"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT"},
        {"clusterVersion": "1.33", "status": "extended-support"},
        {"clusterVersion": "1.30", "versionStatus": "UNSUPPORTED"},
    ]
    assert check_version("1.35", offered) == ""
    assert "costs more" in check_version("1.33", offered) and "1.35 are in standard" in check_version("1.33", offered)
    for version in ("1.30", "1.9"):
        with pytest.raises(TrainiumError, match=r"take one of 1\.35, 1\.33"):
            check_version(version, offered)
    assert version_steps("1.33", "1.36") == ["1.34", "1.35", "1.36"] and version_steps("1.34", "1.34") == []
    with pytest.raises(TrainiumError, match="does not lower"):
        version_steps("1.35", "1.34")


def test_node_groups_are_not_left_behind_by_several_versions() -> None:
    check_groups("1.34", "1.35", {"trn": "1.33"})
    check_groups("1.34", "1.36", {})
    check_groups("1.34", "1.36", {"trn": "1.35"})
    with pytest.raises(TrainiumError, match=r"node groups gpu, trn are older than 1\.35;.*first to 1\.35"):
        check_groups("1.34", "1.36", {"trn": "1.34", "gpu": "1.33", "new": "1.35"})


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"status": "FAILED", "health": {"issues": [{"code": "Other", "message": "no"}]}}, "Other: no; remove it"),
        ({"status": "DELETING"}, "wait until it is gone"),
        ({"roleArn": "arn:aws:iam::123456789012:role/x"}, "EKS does not change it"),
    ],
)
def test_what_is_refused(state: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        plan_cluster(cluster_of({**made(PARAMS), **state}), PARAMS)


@pytest.mark.parametrize(
    ("tags", "sentence"),
    [
        ({}, "carries no tag"),
        ({"trainium:cluster": "x"}, "belongs to the cluster x"),
        ({"trainium:cluster": "bert", "trainium:owner": "arn:aws:sts::1:assumed-role/ops/eve"}, "role/ops, and you"),
    ],
)
def test_what_is_somebody_elses_is_refused(tags: dict[str, str], sentence: str) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        check_ours(tags, {**PARAMS, "owner": "me"}, "the cluster bert")
    check_ours(None, PARAMS, "the cluster bert")


def test_sessions_of_a_role_are_one_owner_and_who_says_none_is_let() -> None:
    role = "arn:aws:sts::1:assumed-role/ops"
    tags = {"trainium:cluster": "bert", "trainium:owner": f"{role}/one"}
    for owner in (role, f"{role}/two", None):
        check_ours(tags, {**PARAMS, "owner": owner}, "the cluster bert")
    people = "arn:aws:sts::1:assumed-role/AWSReservedSSO_x/"
    with pytest.raises(TrainiumError, match="take another name, or give their owner"):
        check_ours({**tags, "trainium:owner": people + "ann"}, {**PARAMS, "owner": people + "bob"}, "the cluster bert")
