"""An image of the cluster's own: what is asked for, how long it is waited for, and what is said of one that fails."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils import modules
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import PROGRESS_FILE
from ansible_collections.trainium.cluster.plugins.modules.internal import own_image

from tests.in_process import ended
from tests.unit.passing_time import Clock

Item = dict[str, Any]
NEW = {"instance_id": "i-1", "name": "bert", "description": "of bert", "tags": {"b": 1, "a": "x"}}


def image(state: str = "available", encrypted: tuple[bool, ...] = (True,), **more: Any) -> Item:
    disks = [{"Ebs": {"SnapshotId": f"snap-{number}", "Encrypted": one}} for number, one in enumerate(encrypted)]
    devices = [*disks, {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}]
    return {"ImageId": "ami-1", "State": state, "BlockDeviceMappings": devices, **more}


class Ec2(Clock):
    """Shows one image after the other, the last one for ever; time passes by sleeping alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *shown: Any, snapshots: Any = None) -> None:
        super().__init__()
        self.shown, self.snapshots = list(shown), snapshots or {}
        self.made: list[Item] = []
        self.looks = 0
        for name in ("create_image", "describe_image", "describe_snapshots"):
            monkeypatch.setattr(own_image.ec2, name, getattr(self, f"_{name}"))
        self.governs(monkeypatch, own_image)
        monkeypatch.setattr(modules.AnsibleAWSModule, "client", lambda _self, service: SimpleNamespace(name=service))

    def _create_image(self, client: Any, request: Item) -> str:
        assert client.name == "ec2"
        self.made.append(request)
        return "ami-1"

    def _describe_image(self, _client: Any, identity: str) -> Item | None:
        assert identity == "ami-1"
        self.looks += 1
        found = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        if isinstance(found, Exception):
            raise found
        answer: Item | None = found
        return answer

    def _describe_snapshots(self, _client: Any, **request: Any) -> list[Item]:
        if isinstance(self.snapshots, Exception):
            raise self.snapshots
        return [{"Progress": self.snapshots.get(name)} for name in request["SnapshotIds"]]


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> Item:
    result, code = ended(own_image.main, {"region": "us-west-2", **arguments}, capsys)
    assert bool(code) == bool(result.get("failed"))
    return result


def test_an_image_is_made_and_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ec2 = Ec2(monkeypatch, None, image("pending"), image())
    result = run(capsys, **NEW)
    assert (result["changed"], result["image_id"], result["encrypted"]) == (True, "ami-1", True)
    tags = [{"Key": "a", "Value": "x"}, {"Key": "b", "Value": 1}]
    assert ec2.made == [
        {
            "InstanceId": "i-1",
            "Name": "bert",
            "Description": "of bert",
            # It is stopped; a reboot would start it.
            "NoReboot": True,
            "TagSpecifications": [
                {"ResourceType": "image", "Tags": tags},
                {"ResourceType": "snapshot", "Tags": tags},
            ],
        }
    ]
    assert (ec2.looks, ec2.now) == (3, 2.5)


def test_one_that_was_begun_is_only_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ec2 = Ec2(monkeypatch, image())
    result = run(capsys, image_id="ami-1")
    assert (result["changed"], result["image_id"], ec2.made) == (False, "ami-1", [])


@pytest.mark.parametrize(("encrypted", "whole"), [((True, True), True), ((True, False), False), ((), False)])
def test_it_is_encrypted_where_all_of_its_disks_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], encrypted: tuple[bool, ...], whole: bool
) -> None:
    Ec2(monkeypatch, image(encrypted=encrypted))
    assert run(capsys, image_id="ami-1")["encrypted"] == whole


@pytest.mark.parametrize("missing", [["image_id", "instance_id"], ["image_id", "name"], ["image_id"]])
def test_without_an_image_an_instance_and_a_name_are_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: list[str]
) -> None:
    ec2 = Ec2(monkeypatch, image())
    result = run(capsys, **{key: value for key, value in NEW.items() if key not in missing})
    said = "own_image: there is no image_id, so instance_id and name are needed; give one or the other."
    assert result.get("msg") == (said if len(missing) > 1 else None)
    assert len(ec2.made) == (0 if len(missing) > 1 else 1)


# The states of EC2's API reference (Image) from which there is no way back.
@pytest.mark.parametrize("state", ["invalid", "deregistered", "failed", "error", "disabled"])
@pytest.mark.parametrize(
    ("reason", "said"), [({"Message": "no room"}, "no room"), (None, "EC2 says no reason"), ({}, "EC2 says no reason")]
)
def test_one_that_failed_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, reason: Any, said: str
) -> None:
    ec2 = Ec2(monkeypatch, image("pending"), image(state, StateReason=reason))
    result = run(capsys, **NEW)
    assert result["msg"] == f"own_image bert: the image is {state}: {said}; deregister it and build it again."
    # There is none to wait on for.
    assert (result["image_id"], ec2.looks) == ("", 2)


@pytest.mark.parametrize("state", ["pending", "transient", None])
def test_one_that_takes_too_long_may_be_waited_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str | None
) -> None:
    ec2 = Ec2(monkeypatch, image(state) if state else None)
    result = run(capsys, **NEW, timeout=40)
    said = f"the image is {state or 'pending'} after 40 s; run the same again, which waits on, or give more time"
    assert result["msg"] == f"own_image bert: {said}."
    assert (result["image_id"], ec2.now) == ("ami-1", 40)


def test_an_error_of_aws_keeps_the_image_and_what_nobody_foresaw_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Ec2(monkeypatch, AwsCallError("AWS would not describe the image: no", "Denied"))
    result = run(capsys, **NEW)
    assert result["msg"] == "own_image bert: AWS would not describe the image: no."
    assert (result["image_id"], result["error_code"]) == ("ami-1", "Denied")
    Ec2(monkeypatch, KeyError("x"))
    said = "own_image ami-1: an error that should not be: KeyError: 'x'; please report it."
    assert run(capsys, image_id="ami-1")["msg"] == said


def test_check_mode_makes_none_and_looks_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ec2 = Ec2(monkeypatch, image("pending"))
    result = run(capsys, **NEW, _ansible_check_mode=True)
    assert (result["changed"], result["image_id"], result["encrypted"]) == (True, "", False)
    assert (ec2.made, ec2.looks) == ([], 0)
    assert "is pending after 0 s" in run(capsys, image_id="ami-1", _ansible_check_mode=True)["msg"]
    assert (ec2.looks, ec2.now) == (1, 0)


@pytest.mark.parametrize(
    ("shown", "snapshots", "notes"),
    [
        (image("pending", (True, True)), {"snap-0": "42%", "snap-1": "7%"}, ["42%, 7% of its snapshot, 0 s"]),
        (image("pending", ()), {}, [None]),
        (None, {}, [None]),
        ({**image("pending"), "BlockDeviceMappings": [{"Ebs": {}}]}, {}, [None]),
        # Only a comfort, which somebody may not have the right to.
        (image("pending"), AwsCallError("no"), [None]),
    ],
)
def test_how_far_its_snapshots_are_is_told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    shown: Any,
    snapshots: Any,
    notes: list[str | None],
) -> None:
    monkeypatch.setenv(PROGRESS_FILE, str(tmp_path / "progress"))
    Ec2(monkeypatch, shown, image(), snapshots=snapshots)
    run(capsys, **NEW)
    lines = [json.loads(line) for line in (tmp_path / "progress").read_text(encoding="utf-8").splitlines()]
    assert [line.pop("note", None) for line in lines] == notes
    assert lines == [{"what": "available", "done": 0, "total": 1, "missing": ["ami-1"]}]
