"""The modules around the real library of ParallelCluster: one cluster from its creation in a play to its end."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import REGION, REPOSITORY
from tests.contract.pcluster.conftest import Site
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python

Item = dict[str, Any]
NAME = "demo"


class Modules:
    """Modules in short form; ``site`` is the account."""

    def __init__(self, site: Site) -> None:
        self.site = site
        site.environment.update(HOME=str(site.home), PATH=site.variables["PATH"])

    def run(self, module: str, arguments: Item, check: bool = False) -> Item:
        """With a library that was imported before; the play has that of the running interpreter."""
        library = {} if module == "pcluster_logs" else {"pcluster_python": warm_python(*PCLUSTER)}
        return self.site.run(module, {**library, **arguments}, check)

    def arguments(self, count: int = 2, **changes: Any) -> Item:
        """Arguments of pcluster for a queue of ``count`` nodes."""
        configuration = self.site.configuration()
        configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = count
        idle = changes.pop("idle", None)
        if idle:
            configuration["Scheduling"]["SlurmSettings"] = {"ScaledownIdletime": idle}
        return {"name": NAME, "configuration": configuration, "suppress_validators": ["ALL"], **changes}

    def good(self, module: str, arguments: Item, check: bool = False) -> Item:
        result = self.run(module, arguments, check)
        assert not result.get("failed"), result.get("msg")
        return result

    def bad(self, module: str, arguments: Item, check: bool = False) -> Item:
        result = self.run(module, arguments, check)
        assert result.get("failed"), result
        return result

    def requests(self) -> list[str]:
        """What was asked of the compute fleet since the calls were cleared, in order."""
        told = [json.dumps(call) for call in self.site.api.calls() if call["service"] == "dynamodb" and call["write"]]
        found = [re.search(r"(STOP|START)_REQUESTED", text) for text in told]
        return [match.group(1) for match in found if match]

    def play(self, folder: Path, arguments: Item, told: Callable[[], object]) -> tuple[Item, str]:
        """The module as a task of a play: its result, and what the screen shows beside it; ``told`` hears of it."""
        task = {"name": "Cluster", "trainium.cluster.pcluster": arguments, "register": "result"}
        copy = {
            "name": "Result",
            "ansible.builtin.copy": {
                "content": "{{ result | to_json }}",
                "dest": str(folder / "result"),
                "mode": "600",
            },
        }
        play = {
            "name": "Test",
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "module_defaults": {"group/trainium.cluster.aws": {"region": REGION}},
            "tasks": [task, copy],
        }
        (folder / "play.yml").write_text(json.dumps([play]))
        (folder / "hosts.yml").write_text(
            json.dumps({"all": {"hosts": {"localhost": {"ansible_python_interpreter": warm_python()}}}})
        )
        environment = {key: value for key, value in self.site.variables.items() if not key.startswith("ANSIBLE_")}
        environment.update(ANSIBLE_CONFIG=str(REPOSITORY / "ansible.cfg"), ANSIBLE_INVENTORY=str(folder / "hosts.yml"))
        output = folder / "output"
        with output.open("w") as stream:
            process = subprocess.Popen(
                [str(warm_ansible() / "ansible-playbook"), str(folder / "play.yml")],
                cwd=folder,
                env=environment,
                stdout=stream,
                stderr=subprocess.PIPE,
                text=True,
            )
        screen = ""
        assert process.stderr
        for line in process.stderr:
            screen += line
            if line.startswith("pcluster: "):
                told()
        assert process.wait() == 0, output.read_text() + screen
        return json.loads((folder / "result").read_text()), screen


@pytest.fixture(scope="module")
def modules(site: Site) -> Modules:
    return Modules(site)


@pytest.fixture(scope="module")
def created(modules: Modules, tmp_path_factory: pytest.TempPathFactory) -> tuple[Item, str]:
    """The cluster that most tests share, and what its creation said and showed."""

    def wait(seconds: float) -> None:
        modules.site.api.control("POST", "waiting", {"mode": "succeed", "delay": seconds})

    # However slow this machine is, it is made after it was told how far it is, and not before.
    wait(100)
    try:
        return modules.play(tmp_path_factory.mktemp("play"), modules.arguments(), lambda: wait(0.3))
    finally:
        wait(0.3)


def test_bad_input_is_refused_before_a_call_of_aws(modules: Modules, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text("Image: [")
    modules.site.api.clear_calls()
    assert "name must begin" in modules.bad("pcluster", modules.arguments(name="1x"))["msg"]
    by_file = {"name": NAME, "configuration_file": str(file)}
    assert "is no YAML" in modules.bad("pcluster", by_file)["msg"]
    assert "No such file" in modules.bad("pcluster", {**by_file, "configuration_file": str(tmp_path / "x")})["msg"]
    assert "aws_ca_bundle" in modules.bad("pcluster", modules.arguments(validate_certs=False))["msg"]
    assert modules.site.api.calls() == []


def test_a_configuration_that_the_library_refuses(modules: Modules) -> None:
    arguments = modules.arguments(suppress_validators=[])
    arguments["configuration"]["HeadNode"]["Ssh"]["KeyName"] = "none"
    message = modules.bad("pcluster", arguments, check=True)["msg"]
    assert message.startswith(f"pcluster {NAME}: Invalid cluster configuration: ")
    assert "KeyPairValidator" in message
    assert modules.site.left() == {}


def test_check_mode_rehearses_and_leaves_nothing(modules: Modules) -> None:
    result = modules.good("pcluster", modules.arguments(), check=True)
    assert (result["changed"], result["operation"], result["cluster"]) == (True, "create", None)
    assert result["diff"]["after"]["Region"] == REGION
    assert modules.site.left() == {}


def test_a_play_creates_the_cluster_and_shows_how_far_it_is(created: tuple[Item, str]) -> None:
    result, screen = created
    assert result["changed"]
    assert result["operation"] == "create"
    assert result["cluster"]["cluster_status"] == "CREATE_COMPLETE"
    assert result["cluster"]["head_node"]["private_ip_address"].startswith("10.77.")
    assert "cluster_configuration" not in result["cluster"]
    (first, *_others) = [line for line in screen.splitlines() if line.startswith("pcluster: ")]
    told = re.match(rf"pcluster: (\d+) of (\d+) resources of {NAME} created, waiting for ", first)
    assert told
    assert 0 < int(told.group(1)) < int(told.group(2))
    assert "last " in first


def test_the_second_run_changes_nothing(modules: Modules, created: tuple[Item, str], tmp_path: Path) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text(json.dumps(modules.arguments()["configuration"]))
    modules.site.api.clear_calls()
    result = modules.good("pcluster", {"name": NAME, "configuration_file": str(file)})
    assert (result["changed"], result["operation"]) == (False, "none")
    assert result["cluster"]["cluster_name"] == NAME
    assert modules.site.api.writes() == []


def test_the_cluster_is_described(modules: Modules, created: tuple[Item, str]) -> None:
    (found,) = modules.good("pcluster_info", {})["clusters"]
    assert found["cluster_name"] == NAME
    assert found["compute_fleet_status"] == "RUNNING"
    assert found["configuration"] == modules.arguments()["configuration"]
    assert [item["node_type"] for item in found["instances"]] == ["HeadNode"]
    assert modules.good("pcluster_info", {"name": "other"})["clusters"] == []


def test_the_fleet_is_stopped_and_started(modules: Modules, created: tuple[Item, str]) -> None:
    stop = {"name": NAME, "state": "stopped"}
    modules.site.api.clear_calls()
    assert modules.good("pcluster_compute_fleet", stop, check=True)["status"] == "STOPPED"
    assert modules.requests() == []
    stopped = modules.good("pcluster_compute_fleet", stop)
    assert (stopped["changed"], stopped["status"]) == (True, "STOPPED")
    assert not modules.good("pcluster_compute_fleet", stop)["changed"]
    assert modules.good("pcluster_compute_fleet", {"name": NAME})["status"] == "RUNNING"
    assert modules.requests() == ["STOP", "START"]


def test_an_update_that_a_running_fleet_allows(modules: Modules, created: tuple[Item, str]) -> None:
    modules.site.api.clear_calls()
    promised = modules.good("pcluster", modules.arguments(count=4), check=True)
    assert promised["changed"]
    assert "UpdateStack" not in [call["action"] for call in modules.site.api.calls()]
    result = modules.good("pcluster", modules.arguments(count=4))
    assert (result["operation"], result["fleet_stopped"]) == ("update", False)
    assert result["change_set"] == promised["change_set"]
    (change,) = result["change_set"]
    assert change["parameter"].endswith("MaxCount")
    assert (change["current_value"], change["requested_value"]) == ("2", "4")
    assert (
        result["diff"]
        == promised["diff"]
        == {
            "before": {change["parameter"]: "2"},
            "after": {change["parameter"]: "4"},
        }
    )
    assert result["cluster"]["cluster_status"] == "UPDATE_COMPLETE"


def test_an_update_that_needs_a_stopped_fleet(modules: Modules, created: tuple[Item, str]) -> None:
    refused = modules.bad("pcluster", modules.arguments(count=4, idle=5), check=True)
    assert "All compute nodes must be stopped" in refused["msg"]
    assert "fleet_policy=stop_and_start" in refused["msg"]
    modules.site.api.clear_calls()
    result = modules.good("pcluster", modules.arguments(count=4, idle=5, fleet_policy="stop_and_start"))
    assert result["fleet_stopped"]
    assert modules.requests() == ["STOP", "START"]
    assert result["cluster"]["compute_fleet_status"] == "RUNNING"


def test_a_failed_update_starts_the_fleet_again(modules: Modules, created: tuple[Item, str]) -> None:
    fault = {"service": "cloudformation", "match": {"Type": "AWS::EC2::LaunchTemplate"}}
    for action in ("UpdateResource", "CreateResource"):
        modules.site.api.fault(action, "any", **fault)
    modules.site.api.clear_calls()
    # Another type needs another launch template, and a stopped fleet.
    arguments = modules.arguments(count=4, idle=6, fleet_policy="stop_and_start")
    arguments["configuration"]["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["InstanceType"] = "trn1n.32xlarge"
    try:
        result = modules.bad("pcluster", arguments)
    finally:
        modules.site.api.control("DELETE", "faults")
    assert "the update of the cluster failed" in result["msg"]
    assert "for the test" in result["msg"]
    assert result["msg"].endswith("the compute fleet was started again.")
    assert result["failed_resources"]
    assert modules.requests() == ["STOP", "START"]


def test_an_update_by_another_version_is_refused(modules: Modules) -> None:
    cfn = modules.site.client("cloudformation")
    body = json.dumps({"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    cfn.create_stack(StackName="newer", TemplateBody=body, Tags=[{"Key": "parallelcluster:version", "Value": "99.1.0"}])
    cfn.create_stack(StackName="foreign", TemplateBody=body)
    modules.site.wait("newer", "CREATE_COMPLETE")
    modules.site.wait("foreign", "CREATE_COMPLETE")
    message = modules.bad("pcluster", modules.arguments(name="newer"))["msg"]
    assert "made by ParallelCluster 99.1.0" in message
    assert "aws-parallelcluster==99.1.0" in message
    assert "99.1.0" in modules.bad("pcluster", {"name": "newer", "state": "absent"})["msg"]
    assert "did not make" in modules.bad("pcluster", {"name": "foreign", "state": "absent"})["msg"]
    for name in ("newer", "foreign"):
        cfn.delete_stack(StackName=name)


def test_logs_are_listed_read_and_exported(modules: Modules, created: tuple[Item, str], tmp_path: Path) -> None:
    site = modules.site
    group = modules.good("pcluster_logs", {"name": NAME})["log_group"]
    head_id = next(i["InstanceId"] for i in site.instances("running", "pending"))
    logs = site.client("logs")
    now = int(time.time() * 1000)
    for stream in (f"ip-10-0-0-1.{head_id}.cloud-init-output", "ip-10-0-0-2.i-0123456789abcdef0.slurmd"):
        logs.create_log_stream(logGroupName=group, logStreamName=stream)
        lines = [{"timestamp": now + number, "message": f"line {number}"} for number in range(3)]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=lines)
    asked = {"name": NAME, "nodes": ["HeadNode"], "logs": ["cloud-*"], "events": True, "limit": 2}
    found = modules.good("pcluster_logs", asked)
    (read,) = found["log_events"].values()
    assert [item["message"] for item in read] == ["line 1", "line 2"]
    assert found["stack_events"][0]["resource"] == NAME
    folder = tmp_path / "logs"
    export = {"name": NAME, "dest": str(folder)}
    assert modules.good("pcluster_logs", export, check=True)["changed"]
    assert not folder.exists()
    files = modules.good("pcluster_logs", export)["files"]
    assert len(files) == 3
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in files} == {0o600}
    assert "line 2" in (folder / "ip-10-0-0-2.i-0123456789abcdef0.slurmd.log").read_text()
    assert not modules.good("pcluster_logs", export)["changed"]
    assert "neither a stack nor a log group" in modules.bad("pcluster_logs", {"name": "other"})["msg"]


def test_the_cluster_goes_and_its_logs_by_choice(modules: Modules, created: tuple[Item, str]) -> None:
    absent = {"name": NAME, "state": "absent"}
    promised = modules.good("pcluster", {**absent, "keep_logs": False}, check=True)
    assert promised["deleted_log_groups"]
    deleted = modules.good("pcluster", absent)
    assert (deleted["changed"], deleted["operation"], deleted["deleted_log_groups"]) == (True, "delete", [])
    assert list(modules.site.left()) == ["log groups"]
    assert not modules.good("pcluster", absent)["changed"]
    # The logs outlive the cluster and can still be read.
    assert len(modules.good("pcluster_logs", {"name": NAME})["log_streams"]) == 2
    gone = modules.good("pcluster", {**absent, "keep_logs": False})
    assert gone["deleted_log_groups"] == promised["deleted_log_groups"]
    assert modules.site.left() == {}


def test_a_killed_creation_is_waited_for_and_its_failure_explained(modules: Modules) -> None:
    site, arguments = modules.site, modules.arguments(name="broken")
    site.api.control(
        "POST", "waiting", {"mode": "fail", "delay": 5, "reason": "Failed to run OnNodeConfigured script."}
    )
    site.api.clear_calls()
    process = site.start("pcluster", arguments)
    site.until(lambda: site.api.calls("CreateStack"), 60)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    try:
        result = modules.bad("pcluster", arguments)
    finally:
        site.api.control("POST", "waiting", {"mode": "succeed", "delay": 0.3})
    assert len([call for call in site.api.calls("CreateStack") if "broken" in json.dumps(call)]) <= 1
    assert "the creation of the cluster failed (" in result["msg"]
    assert "OnNodeConfigured" in result["msg"]
    assert "/aws/parallelcluster/broken-" in result["msg"]
    assert "state=absent" in result["msg"]
    assert "WaitCondition" in result["failed_resources"][0]["type"]
    assert result["failure_code"].startswith("OnNodeConfigured")
    assert modules.good("pcluster", {"name": "broken", "state": "absent", "keep_logs": False})["changed"]
    assert site.left() == {}


def test_images(modules: Modules) -> None:
    listed = modules.good("pcluster_image", {"state": "listed", "os": "ubuntu2404", "architecture": "x86_64"})
    assert [item["os"] for item in listed["official_images"]] == ["ubuntu2404"]
    assert listed["images"] == []
    assert not modules.good("pcluster_image", {"image_id": "mine", "state": "absent"})["changed"]
    build = {
        "image_id": "mine",
        "configuration": {"Build": {"InstanceType": "m5.xlarge", "ParentImage": "ami-00000000"}},
    }
    assert modules.good("pcluster_image", build, check=True)["operation"] == "build"
    assert "must begin" in modules.bad("pcluster_image", {"image_id": "1", "state": "absent"})["msg"]
