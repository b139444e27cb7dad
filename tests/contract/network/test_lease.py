"""One run at a time works on a cluster, and only its owner's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._lease import calls, plan
from ansible_collections.trainium.cluster.plugins.module_utils._lease.run import Lease, this_run

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller

NAME = plan.parameter_name("bert")
ARN = "arn:aws:iam::123456789012:user/ada"
ENDING = "import time; time.sleep(3600)"


@pytest.fixture
def ssm(controller: Controller) -> Iterator[Any]:
    client = controller.client("ssm")
    yield client
    calls.delete(client, Name=NAME)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """What stands for another run of Ansible."""
    with subprocess.Popen([sys.executable, "-c", ENDING]) as other:
        yield other
        other.kill()


def lease(client: Any, pid: int, owner: str = ARN) -> Lease:
    return Lease(client, "bert", this_run(owner, pid))


def test_two_runs_cannot_have_it(ssm: Any, process: subprocess.Popen[bytes]) -> None:
    mine = lease(ssm, os.getpid(), "arn:aws:iam::123456789012:user/bob")
    assert lease(ssm, process.pid).take(False, {"trainium:cluster": "bert"})
    with pytest.raises(
        TrainiumError, match=f"^{ARN} has been working on the cluster bert in us-west-2 since 20"
    ) as said:
        mine.take(False, {})
    assert f"(process {process.pid}); wait until that run has ended, or, if that machine" in str(said.value)
    # Who does not have it cannot give it back.
    mine.free()
    assert mine.take(True, {})
    assert not mine.take(False, {})
    with pytest.raises(TrainiumError, match="user/bob has been working"):
        lease(ssm, process.pid).take(False, {})
    mine.free()
    assert calls.read(ssm, NAME) == (plan.FREE, 3)
    assert mine.take(False, {})
    mine.free(delete=True)
    assert calls.read(ssm, NAME) is None


def test_of_two_that_take_it_at_the_same_time_at_most_one_has_it(
    ssm: Any, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen a dead holder; the other one writes first."""
    dead = plan.Holder(ARN, "here", "another boot", 1, "1", "2026-11-23T03:00:00+00:00")
    assert calls.create(ssm, NAME, plan.text_of(dead), {})
    write = calls.replace

    def after_another(client: Any, name: str, text: str) -> int:
        write(client, name, plan.text_of(this_run("ann", process.pid)))
        return write(client, name, text)

    monkeypatch.setattr(calls, "replace", after_another)
    with pytest.raises(TrainiumError, match="another run takes the lease of the cluster bert at the same time"):
        lease(ssm, os.getpid()).take(True, {})


def test_what_it_says_cannot_write_on_the_terminal(ssm: Any) -> None:
    away = plan.Holder("\x1b[2J" + "x" * 900, "lap\ntop", "another boot", 1, "1", "")
    assert calls.create(ssm, NAME, plan.text_of(away), {})
    with pytest.raises(TrainiumError, match=r"x{40}") as said:
        lease(ssm, os.getpid()).take(False, {})
    assert str(said.value).isprintable()
    assert len(str(said.value)) < 700


def test_a_run_that_was_killed_has_nothing(ssm: Any, process: subprocess.Popen[bytes]) -> None:
    assert lease(ssm, process.pid).take(False, {})
    process.kill()
    process.wait()
    assert lease(ssm, os.getpid()).take(False, {})


def test_a_run_of_another_machine_counts_as_alive(ssm: Any) -> None:
    away = plan.Holder(ARN, "laptop", "another boot", 1, "1", "2026-11-23T03:00:00+00:00")
    assert calls.create(ssm, NAME, plan.text_of(away), {})
    with pytest.raises(TrainiumError, match="on laptop"):
        lease(ssm, os.getpid()).take(False, {})


def test_what_nobody_can_read_is_somebodys(ssm: Any) -> None:
    ssm.put_parameter(Name=NAME, Value="{}", Type="String")
    with pytest.raises(TrainiumError, match=r"^somebody has been working"):
        lease(ssm, os.getpid()).take(False, {})


def test_a_playbook_takes_it_and_gives_it_back(
    controller: Controller, ssm: Any, process: subprocess.Popen[bytes]
) -> None:
    """Also one that fails: here for a key that is not there, after the lease was taken."""
    controller.variables["trainium_cluster_name"] = "bert"
    options = ["-e", json.dumps({**controller.variables, "network_public_key_file": "/nowhere/id.pub"})]
    controller.api.clear_calls()
    done = controller.run(REPOSITORY / "playbooks/network.yml", *options)
    assert done.returncode == 2, done.stdout
    assert "There is no public key at /nowhere/id.pub" in done.stdout + done.stderr
    taken, *_given_back = controller.api.calls("PutParameter")
    holder = plan.holder_of(taken["parameters"]["Value"])
    assert holder
    assert holder.owner == controller.client("sts").get_caller_identity()["Arn"]
    tags = {tag["Key"]: tag["Value"] for tag in taken["parameters"]["Tags"]}
    assert tags == {"trainium:cluster": "bert", "trainium:owner": holder.owner}
    deadline = time.monotonic() + 300
    while (calls.read(ssm, NAME) or ("", 0))[0] != plan.FREE:
        assert time.monotonic() < deadline, "the lease was not given back"
        time.sleep(0.1)
    # And it does not get one that another run has; whose nodes they are is asked first.
    assert lease(ssm, process.pid).take(False, {})
    image = controller.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    theirs = [{"Key": "trainium:cluster", "Value": "ann"}, {"Key": "trainium:owner", "Value": "ann"}]
    controller.ec2.run_instances(
        ImageId=image,
        InstanceType="trn1.2xlarge",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": theirs}],
    )
    taken_by_another, owned = controller.cases(
        ("network:alone", {}), ("network:alone", {"network_cluster_name": "ann"})
    )
    assert taken_by_another.startswith(f"{ARN} has been working on the cluster bert in us-west-2")
    assert taken_by_another.endswith("run again with trainium_break_lease=true.")
    assert owned.startswith("The cluster ann in us-west-2 belongs to ann, and you are arn:aws:")


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("AccessDeniedException", "have the permission granted, or set trainium_lease to false"),
        ("ExpiredTokenException", "log in to AWS again and run it once more"),
    ],
)
def test_a_refusal_says_what_helps_against_it(controller: Controller, code: str, advice: str) -> None:
    controller.api.fault("GetParameter", code)
    (said,) = controller.cases(("network:alone", {"network_cluster_name": "bert"}))
    assert said == f"AWS would not read the lease of the cluster: for the test ({code}); {advice}."


def test_while_a_run_has_it_the_owner_is_looked_at_once(controller: Controller, ssm: Any) -> None:
    """Until another run takes it, which may be that of another owner."""
    controller.variables["trainium_cluster_name"] = "bert"
    alone = {"name": "trainium.cluster.network", "tasks_from": "alone"}
    freed = f"put_parameter(Name={NAME!r}, Value={plan.FREE!r}, Overwrite=True)"
    broken = f"import boto3; boto3.client('ssm', 'us-west-2').{freed}"
    said = controller.folder / "leases.json"
    tasks: list[dict[str, Any]] = [
        *({"name": f"Run {number}", "ansible.builtin.include_role": alone} for number in (1, 2)),
        {"name": "Had", "ansible.builtin.set_fact": {"had": "{{ __network_lease }}"}},
        {"name": "Break it", "ansible.builtin.command": {"argv": [sys.executable, "-c", broken]}},
        {"name": "Run 3", "ansible.builtin.include_role": alone},
        {
            "name": "Tell",
            "ansible.builtin.copy": {
                "content": "{{ [had, __network_lease] | to_json }}",
                "dest": str(said),
                "mode": "0600",
            },
        },
    ]
    controller.api.clear_calls()
    done = controller.run(controller.play(tasks))
    assert done.returncode == 0, done.stdout + done.stderr
    kept, retaken = json.loads(said.read_text())
    assert [(one["holds"], one["lost"], one["region"]) for one in (kept, retaken)] == [
        (True, False, "us-west-2"),
        (True, True, "us-west-2"),
    ]
    seen = [call["action"] for call in controller.api.calls()]
    assert [action for action in seen if action in ("DescribeVpcs", "GetParameter")] == [
        *("DescribeVpcs", "GetParameter", "GetParameter"),
        *("GetParameter", "DescribeVpcs"),
    ]
    # Who calls stays the same.
    assert seen.count("GetCallerIdentity") == 1
