"""network_info and cluster_resources as modules, with clients whose calls are answered here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import cluster_resources, network_info

from tests.in_process import ended
from tests.unit.aws_answers import Aws, Item

Run = Callable[..., Item]


def tags(**more: str) -> list[Item]:
    every = {"trainium:cluster": "bert", "trainium:owner": "ada", **more}
    return [{"Key": key, "Value": value} for key, value in every.items()]


@pytest.fixture
def aws() -> Aws:
    return Aws({})


@pytest.fixture
def run(aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    def call(module: Any, check: bool = False, diff: bool = False, **options: Any) -> Item:
        clients: dict[str, Any] = {}

        def client(_self: Any, service: str, **_more: Any) -> Any:
            clients.setdefault(service, aws.client(service))
            return clients[service]

        monkeypatch.setattr(module.AnsibleAWSModule, "client", client)
        given = {"cluster_name": "bert", "owner": "ada", "region": "us-west-2", **options}
        private = {"_ansible_check_mode": check, "_ansible_diff": diff}
        return ended(module.main, {**given, **private}, capsys)[0]

    return call


def test_the_look_at_a_network_changes_nothing(run: Run, aws: Aws) -> None:
    caller = "arn:aws:sts::123456789012:assumed-role/ml/i-1"
    aws.answers["GetCallerIdentity"] = {"Arn": caller}
    result = run(network_info, owner="")
    assert (result["changed"], result["owner"]) == (False, "arn:aws:sts::123456789012:assumed-role/ml")
    assert result["caller"] == caller


def test_what_is_wrong_begins_with_the_module(run: Run, aws: Aws) -> None:
    aws.answers["DescribeVpcs"] = "UnauthorizedOperation"
    result = run(network_info)
    assert result["failed"]
    assert result["msg"].startswith("network_info: ")
    result = run(cluster_resources)
    assert result["failed"]
    assert result["msg"].startswith("cluster_resources bert: ")


@pytest.mark.parametrize("name", ["", "ber*", "b?rt", "b\\rt"])
def test_a_name_that_would_be_a_pattern_is_refused(run: Run, aws: Aws, name: str) -> None:
    result = run(cluster_resources, cluster_name=name)
    assert result["msg"] == f"cluster_name is '{name}'; give the name of one cluster, without * and ?."
    assert aws.asked == []


def image(name: str, made: str, owner: str = "ada") -> Item:
    return {"ImageId": name, "CreationDate": made, "Tags": tags(**{"trainium:owner": owner, "trainium:image": "x"})}


def test_of_a_cluster_that_is_not_there_nothing_is_told_but_its_images(run: Run, aws: Aws) -> None:
    aws.answers["DescribeImages"] = {
        "Images": [image("ami-2", "2026-12"), image("ami-1", "2026-11"), image("ami-3", "2026-10", "bob")]
    }
    result = run(cluster_resources)
    command = "aws ec2 deregister-image --region us-west-2 --delete-associated-snapshots --image-id"
    told = [f"the image {one}, which is billed until: {command} {one}" for one in ("ami-1", "ami-2")]
    assert {key: result[key] for key in ("changed", "found", "left", "kept", "kept_file_systems", "kept_images")} == {
        "changed": False,
        "found": {},
        "left": {},
        "kept": [],
        "kept_file_systems": [],
        "kept_images": told,
    }
    assert "unmarked" not in result
    assert "diff" not in result
    assert aws.last("DescribeImages")["Owners"] == ["self"]
    assert aws.filters("DescribeImages") == {"tag:trainium:cluster": ["bert"], "tag-key": ["trainium:image"]}
    writes = [name for name in aws.names() if not name.startswith(("Describe", "List", "Get"))]
    assert writes == []


def test_who_may_not_see_images_is_warned(run: Run, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ansible's own goes to the screen where this process has loaded what is of the controller.
    warned: list[str] = []
    monkeypatch.setattr(cluster_resources, "warn", warned.append)
    aws.answers["DescribeImages"] = "UnauthorizedOperation"
    assert run(cluster_resources)["kept_images"] == []
    assert warned[0].endswith("; where image.yml built images for the cluster bert, they stay and are billed")


def volume(**more: Any) -> Item:
    return {"Volumes": [{"VolumeId": "vol-1", "State": "available", "Tags": tags(), **more}]}


@pytest.mark.parametrize(
    ("state", "check", "changed", "deletes"),
    [("listed", False, False, False), ("absent", True, True, False), ("absent", False, True, True)],
)
def test_what_is_found_goes_where_it_is_told_to(
    run: Run, aws: Aws, state: str, check: bool, changed: bool, deletes: bool
) -> None:
    aws.answers["DescribeVolumes"] = lambda _asked: {} if "DeleteVolume" in aws.names() else volume()
    result = run(cluster_resources, check, True, state=state, mark="proof")
    assert (result["changed"], result["found"]) == (changed, {"volumes": ["vol-1"]})
    assert result["unmarked"] == {"volumes": ["vol-1"]}
    assert ("DeleteVolume" in aws.names()) is deletes
    assert result["left"] == ({} if deletes else {"volumes": ["vol-1"]})
    assert result.get("diff") == (None if state == "listed" else {"before": {"volumes": ["vol-1"]}, "after": {}})


def test_what_stays_is_a_failure_with_its_reason(run: Run, aws: Aws) -> None:
    aws.answers.update(DescribeVolumes=volume(), DeleteVolume="VolumeInUse")
    result = run(cluster_resources, state="absent")
    assert result["failed"]
    assert result["msg"].startswith("The cluster bert still has {'volumes': ['vol-1']} in us-west-2; ")
    assert "VolumeInUse it is" in result["msg"]
    assert result["msg"].endswith("look into what uses them, then run teardown again.")
    assert result["left"] == {"volumes": ["vol-1"]}
    assert len(result["reasons"]) == 1


def test_what_is_another_owner_s_is_refused(run: Run, aws: Aws) -> None:
    aws.answers["DescribeVolumes"] = volume(Tags=tags(**{"trainium:owner": "bob"}))
    result = run(cluster_resources, state="absent")
    assert result["failed"]
    assert "vol-1 of the volumes" in result["msg"]
    assert "DeleteVolume" not in aws.names()


def test_log_groups_stay_where_they_are_kept(run: Run, aws: Aws) -> None:
    groups = {"logGroups": [{"logGroupName": "/aws/eks/bert/cluster"}]}
    aws.answers.update(DescribeLogGroups=groups, ListTagsLogGroup={"tags": {"trainium:cluster": "bert"}})
    result = run(cluster_resources, state="absent")
    assert result["kept"] == ["/aws/eks/bert/cluster"]
    assert result["found"] == {}
    assert "DeleteLogGroup" not in aws.names()
    aws.answers["DescribeLogGroups"] = lambda _asked: {} if "DeleteLogGroup" in aws.names() else groups
    result = run(cluster_resources, state="absent", keep_logs=False)
    assert (result["found"], result["left"], result["kept"]) == ({"log groups": ["/aws/eks/bert/cluster"]}, {}, [])
    assert aws.last("DeleteLogGroup") == {"logGroupName": "/aws/eks/bert/cluster"}
