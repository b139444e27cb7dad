"""What EFS and FSx have in common: lists, the wait for what goes, and results."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import file_systems
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from botocore.stub import Stubber

Item = dict[str, Any]
KEYS: Any = {"region_name": "us-west-2", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
EFS, FSX = boto3.client("efs", **KEYS), boto3.client("fsx", **KEYS)


def test_all_pages_of_a_region_are_listed() -> None:
    with Stubber(FSX) as stub:
        stub.add_response(
            "describe_file_systems", {"FileSystems": [{"FileSystemId": "fs-01234567"}], "NextToken": "x"}, {}
        )
        stub.add_response(
            "describe_file_systems", {"FileSystems": [{"FileSystemId": "fs-01234568"}]}, {"NextToken": "x"}
        )
        assert [item["FileSystemId"] for item in file_systems.describe_all(FSX)] == ["fs-01234567", "fs-01234568"]
        stub.add_client_error("describe_file_systems", "AccessDeniedException", "no")
        with pytest.raises(AwsCallError, match="AWS would not list the file systems: no"):
            file_systems.describe_all(FSX)


def test_one_that_is_not_there_is_none() -> None:
    with Stubber(FSX) as stub:
        asked = {"FileSystemIds": ["fs-01234567"]}
        stub.add_response("describe_file_systems", {"FileSystems": [{"FileSystemId": "fs-01234567"}]}, asked)
        stub.add_response("describe_file_systems", {"FileSystems": [], "NextToken": "x"}, asked)
        stub.add_client_error("describe_file_systems", "FileSystemNotFound", expected_params=asked)
        found = [file_systems.describe_one(FSX, **asked) for _time in range(3)]
    assert found == [{"FileSystemId": "fs-01234567"}, None, None]


class Run(file_systems.FileSystemRun):
    """Shows a file system in one state after the other, the last one for ever; None once it is gone."""

    TEXTS, STATE = ("owner",), "Lifecycle"

    def __init__(self, *states: str | None, **params: Any) -> None:
        super().__init__(None, {"name": "a", "owner": "", "wait": True, "wait_timeout": 60, **params}, False)
        self.states, self.looks = list(states), [0]

    def _describe(self, identity: str) -> Item | None:
        self.looks[0] += 1
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return {"FileSystemId": identity, "Lifecycle": state} if state else None


ONE = [{"file_system_id": "fs-1"}]


@pytest.mark.parametrize(
    ("states", "looks"), [((None,), 1), (("deleted",), 1), (("deleting", None), 2), (("deleting", "deleted"), 2)]
)
def test_what_goes_is_waited_for(states: tuple[str | None, ...], looks: int) -> None:
    run = Run(*states)
    run._wait_gone(ONE)
    assert run.looks == [looks]


def test_what_does_not_go_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainiumError, match=r"fs-1 \(deleting\) is not gone after 0 s; run again"):
        Run("deleting", wait_timeout=0)._wait_gone(ONE)
    monkeypatch.setattr(file_systems.time, "monotonic", lambda: 1e9)
    assert Run("x", wait_timeout=7)._left() == 7


@pytest.mark.parametrize("required", [False, True])
def test_an_old_one_must_be_gone_where_a_new_one_has_its_name(required: bool) -> None:
    run = Run(None, wait=False)
    if not required:
        run._wait_gone(ONE)
        return
    with pytest.raises(
        TrainiumError, match="fs-1 by the same name is being deleted; wait until it is gone, or set wait"
    ):
        run._wait_gone(ONE, required=True)
    Run(None)._wait_gone(ONE, required=True)


def test_a_result_has_names_and_lists_where_nothing_is_there() -> None:
    assert Run("x")._result(False, {}, {"a": 1}, {}, deleted=["fs-1"]) == {
        "changed": False,
        "file_system": {},
        "file_system_id": "",
        "dns_name": "",
        "mount_source": "",
        "deleted": ["fs-1"],
        "deleting": [],
        "diff": {"before": {"a": 1}, "after": {}},
    }
    assert Run("x")._result(True, {"dns_name": "d"}, {}, {})["dns_name"] == "d"
    assert Run("x")._params["owner"] is None
