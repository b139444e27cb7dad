"""eks_nodegroup call by call: what it changes in which order, what it waits for, and what it returns."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_nodegroup as planner

from tests.unit.eks.conftest import Aws
from tests.unit.eks.node_groups import LACK, ROOM, Groups, Hurried, known
from tests.unit.eks.test_described import GROUP


@pytest.fixture
def groups(api: Aws) -> Groups:
    return Groups(api)


def test_what_is_as_wanted_is_looked_at_twice(groups: Groups) -> None:
    groups.api.group(known())
    groups.api.group(known())
    result = groups.run()
    assert (result["changed"], result["outdated"], result["attempts"], groups.warned) == (False, [], [], [])
    assert result["nodegroup"] == planner.group_of(known())
    assert result["diff"]["before"] == result["diff"]["after"] == planner.lasting(planner.group_of(known()))
    # Who has gone meanwhile is shown as nothing.
    groups.api.group(known())
    groups.api.group(None)
    assert groups.run()["nodegroup"]["status"] == ""


def test_changes_come_one_after_the_other(groups: Groups) -> None:
    sizes = {"minSize": 1, "desiredSize": 3, "maxSize": 3}
    version = {"releaseVersion": "2"}
    more: dict[str, Any] = {"count": 3, "release_version": "2", "replace_nodes": True, "tags": {"team": "text"}}
    groups.api.group(known())
    groups.api.says("eks", "tag_resource", {}, resourceArn=GROUP["nodegroupArn"], tags={"team": "text"})
    groups.changes("config", scalingConfig=sizes)
    groups.done("config")
    groups.changes("version", **version)
    groups.done("version")
    groups.api.group(known(releaseVersion="2"))
    result = groups.run(**more)
    assert (result["changed"], result["outdated"]) == (True, [])
    assert result["nodegroup"]["release_version"] == "2"
    # Without waiting, all but the last.
    groups.api.group(known(tags={"trainium:cluster": "bert", "team": "text"}))
    groups.changes("config", scalingConfig=sizes)
    groups.done("config")
    groups.changes("version", **version)
    groups.api.group(known("UPDATING"))
    assert groups.run(**more, wait=False)["nodegroup"]["status"] == "UPDATING"


def test_a_group_without_nodes_is_made_as_wanted_first(groups: Groups) -> None:
    none: dict[str, Any] = {"scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 3}}
    groups.api.group(known(**none))
    groups.changes("version", releaseVersion="2")
    groups.done("version")
    groups.changes("config", scalingConfig={"minSize": 1, "desiredSize": 2, "maxSize": 3})
    groups.done("config")
    groups.api.group(known())
    assert groups.run(release_version="2", replace_nodes=True)["changed"] is True


def test_only_new_tags_or_a_new_version_are_not_waited_for(groups: Groups) -> None:
    groups.api.group(known())
    groups.changes("version", releaseVersion="2")
    groups.done("version")
    groups.api.group(known("DEGRADED", releaseVersion="2"))
    assert groups.run(release_version="2", replace_nodes=True)["nodegroup"]["status"] == "DEGRADED"
    groups.api.group(known())
    groups.changes("version", releaseVersion="2")
    groups.api.update("version", "Failed", [{"errorCode": "A", "errorMessage": "b"}], nodegroupName="trn")
    with pytest.raises(TrainiumError, match=r"EKS gave up changing trn's nodes: A: b$"):
        groups.run(release_version="2", replace_nodes=True)


@pytest.mark.parametrize("status", ["CREATING", "UPDATING"])
def test_what_another_run_has_begun_is_waited_for(groups: Groups, status: str) -> None:
    for _look in range(2):
        groups.api.group(known(status if not _look else "ACTIVE"))
    groups.api.group(known())
    assert groups.run()["changed"] is False
    groups.api.group(known(status))
    groups.api.group(known("CREATE_FAILED", LACK))
    with pytest.raises(TrainiumError, match="became CREATE_FAILED: AsgInstanceLaunchFailures: Insufficient"):
        groups.run()
    groups.api.group(known(status))
    groups.api.group(known(status, ROOM))
    with pytest.raises(TrainiumError, match=rf"trn \({status}; NodeCreationFailure: failed to join\.\) is not active"):
        groups.run(kind=Hurried)


def test_nodes_that_stay_as_they_are_are_warned_of(groups: Groups) -> None:
    groups.api.group(known())
    groups.api.group(known())
    result = groups.run(release_version="2")
    assert result["changed"] is False and result["outdated"] == ["release 1.34.9-20260625 of the image, not 2"]
    assert "set replace_nodes=true to let it" in groups.warned[0]
    groups.api.group(known())
    result = groups.run(check=True, release_version="2", replace_nodes=True)
    assert (result["changed"], result["outdated"], result["nodegroup"]["release_version"]) == (True, [], "2")
    assert len(groups.warned) == 1


def test_a_node_group_goes_unless_it_belongs_to_another_cluster(groups: Groups) -> None:
    groups.api.group(known())
    groups.deletes()
    groups.api.group(None)
    result = groups.run(state="absent", count=-1)
    assert (result["changed"], result["nodegroup"], result["outdated"], result["attempts"]) == (True, {}, [], [])
    assert result["diff"] == {"before": planner.lasting(planner.group_of(known())), "after": {}}
    groups.api.group(known())
    groups.deletes()
    assert groups.run(state="absent", wait=False)["changed"] is True
    groups.api.group(known())
    assert groups.run(state="absent", check=True)["changed"] is True
    groups.api.group(None)
    assert groups.run(state="absent")["diff"] == {"before": {}, "after": {}}
    groups.api.group(known("DELETING"))
    groups.deletes()
    groups.api.group(None)
    assert groups.run(state="absent")["changed"] is False
    for state in ("absent", "present"):
        groups.api.group(known(tags={"trainium:cluster": "gpt"}))
        with pytest.raises(TrainiumError, match="the node group trn belongs to the cluster gpt"):
            groups.run(state=state)


def test_empty_text_as_roles_pass_it_is_not_given(groups: Groups) -> None:
    texts = ("node_role_arn", "ami_type", "capacity_type", "release_version", "version")
    empty: dict[str, Any] = dict.fromkeys(texts, "")
    groups.api.group(known())
    result = groups.run(check=True, **empty, launch_template={"id": "", "version": ""})
    assert result["changed"] is False and result["nodegroup"] == planner.group_of(known())
    assert result["diff"]["before"] == result["diff"]["after"]
