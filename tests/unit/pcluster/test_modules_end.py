"""What the modules of ParallelCluster hand to its library, and how they end."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import calls, library
from ansible_collections.trainium.cluster.plugins.modules import (
    pcluster,
    pcluster_compute_fleet,
    pcluster_image,
    pcluster_info,
    pcluster_logs,
)

from tests.in_process import ended
from tests.unit.pcluster.pcluster_stand_ins import ARN, Item, ToldAccount, ToldError, ToldLibrary, event, groups

GONE = ToldError("ValidationError", "Stack with id bert does not exist")
THERE: Item = {
    "Stacks": [
        {
            "StackName": "bert",
            "StackId": ARN,
            "StackStatus": "CREATE_COMPLETE",
            "Tags": [{"Key": "parallelcluster:version", "Value": "3.16.1"}],
        }
    ]
}


class Modules:
    """Modules whose library and account answer as they are told."""

    def __init__(self, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.library, self.account, self._capsys = ToldLibrary(), ToldAccount(), capsys
        self.handed: list[Item] = []
        patch.setattr(calls, "call", self._call)
        patch.setattr(AnsibleAWSModule, "client", lambda _module, service, **_options: self.account.client(service))

    def _call(self, python: str | None, operation: str, arguments: Item, **connection: Any) -> Any:
        self.handed.append({"python": python, **connection})
        return self.library.call(operation, **arguments)

    def run(self, module: ModuleType, check: bool = False, diff: bool = False, **arguments: Any) -> Item:
        modes = {"_ansible_check_mode": check, "_ansible_diff": diff}
        given = {"region": "us-west-2", "access_key": "id", "secret_key": "secret", **arguments, **modes}
        result, _code = ended(module.main, given, self._capsys)
        return result


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Modules:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return Modules(monkeypatch, capsys)


def test_the_library_gets_interpreter_region_and_credentials(modules: Modules) -> None:
    modules.library.told.update(list_clusters={"clusters": []}, version="3.16.1")
    result = modules.run(pcluster_info, pcluster_python="/opt/python", session_token="token")
    assert (result["clusters"], result["installed_version"], result["changed"]) == ([], "3.16.1", False)
    environment = {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_PROFILE": None,
    }
    assert modules.handed[0] == {"python": "/opt/python", "region": "us-west-2", "environment": environment}


def test_a_module_without_a_region_is_refused() -> None:
    with pytest.raises(TrainiumError, match="the region is not known; set region, or AWS_REGION"):
        library.library_of(SimpleNamespace(region=None, params={"pcluster_python": None}))


@pytest.mark.parametrize(
    ("module", "given", "begins"),
    [
        (pcluster_info, {}, "pcluster_info: the library is ill."),
        (pcluster, {"name": "bert", "configuration": {"A": 1}}, "pcluster bert: the library is ill."),
        (pcluster_image, {"image_id": "mine", "state": "absent"}, "pcluster_image mine: the library is ill."),
        (pcluster_image, {"state": "listed"}, "pcluster_image: the library is ill."),
        (pcluster_compute_fleet, {"name": "bert"}, "pcluster_compute_fleet bert: the library is ill."),
    ],
)
def test_a_failure_is_one_sentence_of_the_module(
    modules: Modules, module: ModuleType, given: Item, begins: str
) -> None:
    modules.account.told.update(DescribeStacks=THERE)
    error = calls.PclusterError(500, "the library is ill")
    error.details["stack_status"] = "X"
    modules.library.told.update(
        dict.fromkeys(
            ("list_clusters", "cluster_state", "describe_image", "list_images", "describe_compute_fleet"), error
        )
    )
    result = modules.run(module, **given)
    assert (result["failed"], result["msg"], result["stack_status"]) == (True, begins, "X")


def test_a_cluster_is_made_from_a_file(modules: Modules, tmp_path: Path) -> None:
    modules.account.told.update(DescribeStacks=GONE)
    file = tmp_path / "bert.yaml"
    file.write_text("Region: us-west-2\nDay: 2026-01-01\n")
    result = modules.run(pcluster, check=True, diff=True, name="bert", configuration_file=str(file))
    assert (result["changed"], result["operation"]) == (True, "create")
    assert result["diff"]["after"] == {"Region": "us-west-2", "Day": "2026-01-01"}
    assert "diff" not in modules.run(pcluster, check=True, name="bert", configuration_file=str(file))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("a: [", "is no YAML: "), ("- a\n", "holds no dictionary"), (None, "bert.yaml: No such file or directory")],
)
def test_a_file_that_is_no_configuration_is_refused(
    modules: Modules, tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "bert.yaml"
    if text is not None:
        file.write_text(text)
    for module, name in ((pcluster, "name"), (pcluster_image, "image_id")):
        given: Item = {name: "bert", "configuration_file": str(file)}
        result = modules.run(module, **given)
        assert result["failed"] and sentence in result["msg"] and "\n" not in result["msg"]
    assert modules.handed == []


def test_an_absent_cluster_needs_no_configuration(modules: Modules) -> None:
    modules.account.told.update(DescribeStacks=GONE)
    assert not modules.run(pcluster, name="bert", state="absent")["changed"]


def test_images_are_listed_and_check_mode_foresees_a_build(modules: Modules) -> None:
    modules.library.told.update(list_images={"images": []}, list_official_images={"images": [{"amiId": "ami-1"}]})
    assert modules.run(pcluster_image, state="listed")["official_images"] == [{"ami_id": "ami-1"}]
    modules.library.told.update(describe_image=calls.PclusterError(404, "none"))
    build: Item = {"image_id": "mine", "configuration": {"Build": {}}}
    made = modules.run(pcluster_image, check=True, diff=True, **build)
    assert (made["changed"], made["diff"]["after"]) == (True, {"image_build_status": "BUILD_COMPLETE"})
    assert "diff" not in modules.run(pcluster_image, check=True, **build)
    assert not modules.run(pcluster_image, diff=True, image_id="mine", state="absent")["changed"]


def test_a_fleet_is_stopped_once(modules: Modules) -> None:
    modules.account.told.update(DescribeStacks=THERE)
    statuses = [{"status": "RUNNING"}, {"status": "STOPPED", "lastStatusUpdatedTime": "t"}]
    modules.library.told.update(describe_compute_fleet=statuses)
    result = modules.run(pcluster_compute_fleet, diff=True, name="bert", state="stopped")
    assert (result["changed"], result["status"], result["last_status_updated_time"]) == (True, "STOPPED", "t")
    assert result["diff"] == {"before": {"status": "RUNNING"}, "after": {"status": "STOPPED"}}
    again = modules.run(pcluster_compute_fleet, name="bert", state="stopped")
    assert (again["changed"], again["status"]) == (False, "STOPPED")
    assert modules.library.operations.count("update_compute_fleet") == 1
    promised = modules.run(pcluster_compute_fleet, check=True, diff=True, name="bert")
    assert (promised["changed"], promised["diff"]["after"]) == (True, {"status": "RUNNING"})
    asked = modules.run(pcluster_compute_fleet, name="bert", wait=False)
    assert (asked["changed"], asked["status"]) == (True, "STOPPED")
    assert modules.library.arguments("update_compute_fleet")["status"] == "START_REQUESTED"


def test_a_fleet_on_its_way_is_awaited_and_is_no_change(modules: Modules) -> None:
    modules.account.told.update(DescribeStacks=THERE)
    modules.library.told.update(describe_compute_fleet=[{"status": "STOPPING"}, {"status": "STOPPED"}])
    result = modules.run(pcluster_compute_fleet, diff=True, name="bert", state="stopped")
    assert (result["changed"], result["status"], result["last_status_updated_time"]) == (False, "STOPPED", "")
    assert result["diff"]["after"] == {"status": "STOPPING"}
    assert "update_compute_fleet" not in modules.library.operations


def test_the_fleet_of_somebody_else_is_left_alone(modules: Modules) -> None:
    modules.account.told.update(DescribeStacks=THERE)
    result = modules.run(pcluster_compute_fleet, name="bert", owner="arn:aws:iam::1:user/me")
    assert "carries no tag trainium:cluster" in result["msg"]
    assert modules.handed == []


def test_logs_are_read_by_a_clusters_name(modules: Modules) -> None:
    modules.account.told.update(
        DescribeLogGroups=groups(),
        DescribeStackEvents={"StackEvents": [event("bert", "CREATE_IN_PROGRESS", Timestamp="t")]},
    )
    assert modules.run(pcluster_logs, name="bert")["stack_events"][0]["resource"] == "bert"
    assert modules.run(pcluster_logs, name="bert", limit=1)["changed"] is False
    assert modules.run(pcluster_logs, name="bert", limit=0)["msg"] == "pcluster_logs bert: limit must be at least 1."
