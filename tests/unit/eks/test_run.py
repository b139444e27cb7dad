"""eks_cluster call by call: what it asks in which order, what it waits for, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan as planner

from tests.unit.eks.clusters import ME, ML, OPS, PARAMS, Clusters, Result, known
from tests.unit.eks.conftest import Aws
from tests.unit.eks.test_described import CLUSTER


@pytest.fixture
def clusters(api: Aws) -> Clusters:
    return Clusters(api)


def test_what_is_as_wanted_is_looked_at_twice(clusters: Clusters) -> None:
    for _look in range(2):
        clusters.api.cluster(known())
    result = clusters.run()
    assert (result["changed"], result["updated"]) == (False, [])
    assert result["cluster"] == {**planner.cluster_of(known()), "admins": []}
    assert result["diff"]["before"] == result["diff"]["after"] and result["diff"]["after"]["admins"] == []
    assert "status" not in result["diff"]["after"]
    # Empty text, as roles pass it, is not given.
    empty: Result = dict.fromkeys(("version", "role_arn", "support", "authentication_mode"), "")
    clusters.api.cluster(known())
    assert clusters.run(check=True, **empty)["diff"] == result["diff"]


def test_changes_one_after_the_other_each_waited_for(clusters: Clusters) -> None:
    api = clusters.api
    api.cluster(known())
    offered = [{"clusterVersion": "1.35", "versionStatus": "EXTENDED_SUPPORT"}]
    api.says("eks", "describe_cluster_versions", {"clusterVersions": offered}, includeAll=True)
    api.says("eks", "tag_resource", {}, resourceArn=CLUSTER["arn"], tags={"team": "text"})
    clusters.changes("u1", resourcesVpcConfig={"endpointPrivateAccess": True})
    api.update("u1", "Successful")
    clusters.changes("u2", version="1.35")
    api.update("u2", "Successful")
    api.cluster(known(version="1.35"))
    result = clusters.run(version="1.35", private_access=True, tags={"team": "text"})
    assert (result["changed"], result["updated"]) == (True, ["endpoint access", "Kubernetes 1.35"])
    assert result["cluster"]["version"] == "1.35" and len(clusters.warned) == 1
    assert "Kubernetes 1.35 is in extended support" in clusters.warned[0]


@pytest.mark.parametrize(
    ("status", "errors", "said"),
    [
        ("Failed", [{"errorCode": "A", "errorMessage": "b"}, {"errorCode": "C", "errorMessage": "d"}], "A: b; C: d"),
        ("Cancelled", [], "it gives no reason"),
    ],
)
def test_an_update_that_fails(clusters: Clusters, status: str, errors: Any, said: str) -> None:
    clusters.api.cluster(known())
    clusters.changes("u1", upgradePolicy={"supportType": "EXTENDED"})
    clusters.api.update("u1", status, errors)
    with pytest.raises(TrainiumError, match=f"EKS gave up changing bert's support: {said}$"):
        clusters.run(support="EXTENDED")


@pytest.mark.parametrize(("status", "shown"), [("InProgress", "InProgress"), ("", "not visible yet")])
def test_an_update_that_takes_too_long(clusters: Clusters, status: str, shown: str) -> None:
    clusters.api.cluster(known())
    clusters.changes("u1", upgradePolicy={"supportType": "EXTENDED"})
    clusters.api.update("u1", status)
    with pytest.raises(TrainiumError, match=rf"bert's support \({shown}\) is not bert's support changed after"):
        clusters.run(support="EXTENDED")


def test_a_new_one_lets_in_who_is_asked_for_when_it_is_there(clusters: Clusters) -> None:
    api = clusters.api
    api.cluster(None)
    request = planner.creation({**PARAMS, "cluster_name": "bert", "version": None})
    api.says("eks", "create_cluster", {"cluster": known(status="CREATING")}, **request)
    api.cluster(known())
    clusters.entries(ME)
    clusters.entry(ME)
    clusters.admits(ML, "admin")
    result = clusters.run(admins=[ML], admit_caller=True)
    assert (result["changed"], result["diff"]["before"]) == (True, {})
    assert result["cluster"]["admins"] == result["diff"]["after"]["admins"] == [ME, ML]
    # One that is not waited for takes no entries yet.
    api.cluster(None)
    api.says("eks", "create_cluster", {"cluster": known(status="CREATING")}, **request)
    result = clusters.run(admins=[ML], admit_caller=True, wait=False)
    assert (result["cluster"]["status"], result["cluster"]["admins"]) == ("CREATING", [ML])


def test_one_that_is_being_made_is_waited_for(clusters: Clusters) -> None:
    clusters.api.cluster(known(status="CREATING"))
    clusters.api.cluster(known())
    clusters.api.cluster(known())
    clusters.entries()
    clusters.admits(ML, "admin")
    result = clusters.run(admins=[ML])
    # Who comes in later is no change that could be seen before.
    assert result["changed"] is True and result["cluster"]["admins"] == [ML]
    for state, said in (
        ("FAILED", "no; remove it with state=absent"),
        ("CREATING", r"bert \(CREATING\) is not active"),
    ):
        clusters.api.cluster(known(status="UPDATING"))
        clusters.api.cluster(known(status=state, health={"issues": [{"code": "Other", "message": "no"}]}))
        with pytest.raises(TrainiumError, match=said):
            clusters.run()
    clusters.api.cluster(known(status="UPDATING"))
    clusters.api.cluster(known(status="DELETING"))
    with pytest.raises(TrainiumError, match="the cluster became DELETING: EKS gives no reason; remove it"):
        clusters.run()
    clusters.api.cluster(known(status="UPDATING"))
    clusters.api.cluster(None)
    with pytest.raises(TrainiumError, match=r"bert \(not visible yet\) is not active after"):
        clusters.run()


def test_who_comes_and_goes(clusters: Clusters) -> None:
    ours = {"trainium:cluster": "bert", "trainium:role": "admin"}
    clusters.api.cluster(known())
    clusters.entries(OPS, ML)
    clusters.entry(OPS, ours)
    # The policy for a namespace is not that for the cluster.
    clusters.entry(ML, ours, scope="namespace")
    clusters.admits(ME, "caller")
    clusters.admits(ML)
    clusters.api.says("eks", "delete_access_entry", {}, clusterName="bert", principalArn=OPS)
    clusters.api.cluster(known())
    result = clusters.run(admins=[ML], admit_caller=True)
    assert result["changed"] is True and result["diff"]["before"]["admins"] == [OPS]
    assert result["cluster"]["admins"] == [ME, ML]
    clusters.api.cluster(known())
    clusters.entries(ME)
    clusters.entry(ME, {}, admin=False)
    result = clusters.run(check=True, admit_caller=True)
    assert (result["changed"], result["cluster"]["admins"]) == (True, [ME])


@pytest.mark.parametrize(
    ("caller", "admits", "warned"),
    [
        # A role with a path that nobody says is known by its entry.
        (("arn:aws:iam::123456789012:role/a", False), None, False),
        (("arn:aws:iam::123456789012:role/b", False), None, True),
        (("arn:aws:iam::123456789012:root", True), None, False),
        ((ME, True), ME, False),
    ],
)
def test_whoever_runs_it(clusters: Clusters, caller: tuple[str, bool], admits: str | None, warned: bool) -> None:
    there = "arn:aws:iam::123456789012:role/ml/a"
    clusters.api.cluster(known())
    clusters.entries(there)
    clusters.entry(there)
    if admits:
        clusters.admits(admits, "caller")
    clusters.api.cluster(known())
    assert clusters.run(caller=caller, admit_caller=True)["changed"] is bool(admits)
    assert bool(clusters.warned) is warned
    assert not warned or f"IAM does not say which path {caller[0]} has. Allow iam:GetRole" in clusters.warned[0]


def test_a_mode_that_knows_no_entries(clusters: Clusters) -> None:
    old = known(accessConfig={"authenticationMode": "CONFIG_MAP"})
    for asked in ({"admins": [ML]}, {"admit_caller": True}):
        clusters.api.cluster(old)
        with pytest.raises(TrainiumError, match="set authentication_mode=API_AND_CONFIG_MAP, or leave admins out"):
            clusters.run(**asked)
    clusters.api.cluster(old)
    clusters.api.cluster(old)
    assert clusters.run()["changed"] is False
    clusters.api.cluster(old)
    mode: Result = {"authentication_mode": "API_AND_CONFIG_MAP"}
    result = clusters.run(check=True, admins=[ML], **mode)
    assert (result["updated"], result["cluster"]["admins"]) == (["authentication mode"], [ML])
    with pytest.raises(TrainiumError, match="admins has 'ml', which is no ARN"):
        clusters.api.cluster(known())
        clusters.run(admins=["ml"])


def test_node_groups_are_asked_for_their_version_before_several_steps(clusters: Clusters) -> None:
    api = clusters.api
    api.cluster(known())
    api.groups("new", "gone", "old")
    for name, version in (("new", "1.35"), ("gone", ""), ("old", "1.34")):
        api.group({"nodegroupName": name, "version": version} if version else None, name)
    with pytest.raises(TrainiumError, match=r"the node groups old are older than 1\.35"):
        clusters.run(version="1.36")
    api.cluster(known())
    offered = [{"clusterVersion": "1.34"}]
    api.says("eks", "describe_cluster_versions", {"clusterVersions": offered}, includeAll=True)
    with pytest.raises(TrainiumError, match=r"EKS does not offer Kubernetes 1\.35; take one of 1\.34"):
        clusters.run(version="1.35")
    # That it has is not asked for.
    api.cluster(known())
    assert not clusters.run(check=True, version="1.34")["changed"]


def test_a_cluster_goes_unless_it_has_node_groups_or_is_protected(clusters: Clusters) -> None:
    api = clusters.api
    api.cluster(known())
    api.groups()
    api.says("eks", "delete_cluster", {"cluster": known()}, name="bert")
    api.cluster(None)
    result = clusters.run(state="absent")
    assert (result["changed"], result["cluster"], result["updated"], result["diff"]["after"]) == (True, {}, [], {})
    assert result["diff"]["before"]["version"] == "1.34"
    api.cluster(None)
    assert clusters.run(state="absent") == {**result, "changed": False, "diff": {"before": {}, "after": {}}}
    for there, groups, said in (
        (known(), ("trn", "a"), r"the cluster has the node groups trn, a; remove them first"),
        (known(deletionProtection=True), (), "is protected from deletion; run with deletion_protection=false"),
    ):
        api.cluster(there)
        api.groups(*groups)
        with pytest.raises(TrainiumError, match=said):
            clusters.run(state="absent", check=True)
    # It goes already: nothing is asked of it but to be gone.
    api.cluster(known(status="DELETING", deletionProtection=True))
    assert clusters.run(state="absent", wait=False)["changed"] is False
    api.cluster(known(status="DELETING"))
    api.cluster(known(status="DELETING"))
    with pytest.raises(TrainiumError, match=r"bert \(DELETING\) is not gone after"):
        clusters.run(state="absent")
    api.cluster(known())
    api.groups()
    assert clusters.run(state="absent", check=True)["changed"] is True


def test_one_of_another_cluster_is_not_touched(clusters: Clusters) -> None:
    for state in ("present", "absent"):
        clusters.api.cluster(known(tags={"trainium:cluster": "gpt"}))
        with pytest.raises(TrainiumError, match="the cluster bert belongs to the cluster gpt"):
            clusters.run(state=state)
    clusters.api.cluster(known(tags={"trainium:cluster": "gpt"}))
    assert not clusters.run(check=True, cluster_name="gpt")["changed"]
    clusters.api.cluster(None)
    with pytest.raises(TrainiumError, match="role_arn is empty; a new cluster needs it"):
        clusters.run(role_arn="")
    clusters.api.cluster(None)
    promised = clusters.run(check=True, role_arn="", admins=[ML])
    assert promised["changed"] is True and promised["cluster"]["admins"] == [ML]
