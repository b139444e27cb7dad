"""eks_cluster and eks_nodegroup as a whole: whoever runs them, and how a failure and a difference are told."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._eks.access import policy_arn
from ansible_collections.trainium.cluster.plugins.modules import eks_cluster, eks_nodegroup
from botocore.stub import Stubber

from tests.unit.eks.conftest import KEYS, MAKE, Aws
from tests.unit.eks.test_described import CLUSTER, GROUP
from tests.unit.in_aws import Module

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/people/ml"
CLUSTER_NOW = {**CLUSTER, "health": {"issues": []}}
NODES = {"cluster": "bert", "name": "trn", "count": 2, "min_size": 1, "max_size": 3}


@pytest.fixture
def clusters(api: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    clients = {**api.clients, **{name: MAKE(name, region_name="us-west-2", **KEYS) for name in ("sts", "iam")}}
    return Module(eks_cluster, clients, monkeypatch, capsys, {"name": "bert"})


@pytest.fixture
def groups(api: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(eks_nodegroup, api.clients, monkeypatch, capsys, NODES)


def test_differences_are_shown_to_who_asks_for_them(clusters: Module, groups: Module, api: Aws) -> None:
    for diff in (True, False):
        api.cluster(CLUSTER_NOW)
        result = clusters.run(check=True, diff=diff, admit_caller=False, support="EXTENDED")
        assert (result["changed"], "diff" in result) == (True, diff)
        api.group(GROUP)
        result = groups.run(check=True, diff=diff, max_unavailable=3)
        assert (result["changed"], "diff" in result) == (True, diff)


def test_a_failure_tells_what_it_is_about(clusters: Module, groups: Module, api: Aws) -> None:
    api.cluster({**CLUSTER_NOW, "tags": {}})
    assert clusters.said().startswith("eks_cluster bert: the cluster bert carries no tag trainium:cluster;")
    result = groups.run(min_size=3)
    assert result["msg"].startswith("eks_nodegroup bert/trn: min_size 3, count 2 and max_size 3 do not fit")
    # As documented, also where nothing was tried.
    assert result["attempts"] == []


def test_an_old_library_is_said_before_anything_is_asked(
    clusters: Module, groups: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ansible_collections.trainium.cluster.plugins.module_utils._eks import calls

    monkeypatch.setitem(calls._LATEST, "CreateCluster", "fieldOfTomorrow")
    for module in (clusters, groups):
        assert "does not know fieldOfTomorrow of CreateCluster; install a newer boto3" in module.said()


def test_what_is_warned_of(clusters: Module, groups: Module, api: Aws) -> None:
    api.group(GROUP)
    groups.run(check=True, release_version="2")
    assert "set replace_nodes=true" in groups.warned[0]
    api.cluster(CLUSTER_NOW)
    offered = [{"clusterVersion": "1.35", "versionStatus": "EXTENDED_SUPPORT"}]
    api.says("eks", "describe_cluster_versions", {"clusterVersions": offered}, includeAll=True)
    clusters.run(check=True, admit_caller=False, version="1.35")
    assert "Kubernetes 1.35 is in extended support" in clusters.warned[0]


@pytest.mark.parametrize(
    ("caller", "role", "principal"),
    [
        (f"arn:aws:iam::{ACCOUNT}:user/me", "", f"arn:aws:iam::{ACCOUNT}:user/me"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/ml/session", ROLE, ROLE),
        # Who may not ask IAM is known by an entry, or told.
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/ml/session", "AccessDenied", ""),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/ml/session", "NoSuchEntity", ""),
    ],
)
def test_whoever_runs_it_is_let_in(
    clusters: Module, api: Aws, monkeypatch: pytest.MonkeyPatch, caller: str, role: str, principal: str
) -> None:
    make: Any = boto3.client
    sts, iam = (make(name, region_name="us-west-2", **KEYS) for name in ("sts", "iam"))
    monkeypatch.setattr(
        "ansible_collections.amazon.aws.plugins.module_utils.modules.AnsibleAWSModule.client",
        lambda _module, service: {**api.clients, "sts": sts, "iam": iam}[service],
    )
    api.cluster(CLUSTER_NOW)
    api.says("eks", "list_access_entries", {"accessEntries": []}, clusterName="bert")
    if principal:
        named = {"clusterName": "bert", "principalArn": principal}
        tags = {"trainium:cluster": "bert", "trainium:role": "caller"}
        api.says("eks", "create_access_entry", {"accessEntry": {}}, **named, tags=tags)
        given = {"policyArn": policy_arn(principal), "accessScope": {"type": "cluster"}}
        api.says("eks", "associate_access_policy", {}, **named, **given)
    api.cluster(CLUSTER_NOW)
    with Stubber(sts) as who, Stubber(iam) as roles:
        who.add_response("get_caller_identity", {"Arn": caller, "Account": ACCOUNT})
        if role.startswith("arn"):
            found = {"RoleName": "ml", "Arn": role, "Path": "/people/", "RoleId": 16 * "A", "CreateDate": 0}
            roles.add_response("get_role", {"Role": found}, {"RoleName": "ml"})
        elif role:
            roles.add_client_error("get_role", role, "no", 403, None, {"RoleName": "ml"})
        result = clusters.run()
        who.assert_no_pending_responses()
        roles.assert_no_pending_responses()
    assert result["cluster"]["admins"] == ([principal] if principal else [])
    assert ("IAM does not say which path" in str(clusters.warned)) is not bool(principal)
