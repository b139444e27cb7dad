"""The same training in Pods of a real Kubernetes, from an empty account and back. One story, in order."""

from __future__ import annotations

import json
import subprocess
import threading
import time

from sandbox.kubernetes.inside.api import Api
from tests.sandbox_driver import REPOSITORY, Sandbox

CLUSTER = "trainium"


def demo(sandbox: Sandbox, name: str = "site", *more: str) -> list[str]:
    """A playbook with what ``make demo`` gives it."""
    return [name, "-e", "trainium_backend=eks", "-e", f"@{sandbox.reports.parent / 'eks.json'}", *more]


def report(sandbox: Sandbox) -> dict[str, object]:
    found: dict[str, object] = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    return found


def test_the_demo_trains_in_pods(sandbox: Sandbox) -> None:
    assert sandbox.instances("pending", "running") == []
    command = ["make", "demo", "BACKEND=eks"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    found = report(sandbox)
    assert (found["nodes"], found["processes"], found["launcher"]) == (2, 4, "kubernetes")
    assert found["final_loss"] < 0.85 * found["initial_loss"]  # type: ignore[operator]


def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook(*demo(sandbox))
    assert run.returncode == 0, sandbox.why(run.output)
    assert set(run.changed.values()) == {0}
    # The lease of the cluster, taken and given back.
    assert sandbox.writes() == ["PutParameter", "PutParameter"]


def test_torchx_and_volcano_train_to_the_same_loss(sandbox: Sandbox) -> None:
    """The launcher that is the default on AWS: its parts follow each other, and Volcano starts their pods."""
    undisturbed = report(sandbox)["final_loss"]
    settings = json.loads((sandbox.reports.parent / "eks.json").read_text(encoding="utf-8"))
    job = {**settings["trainium_training"], "name": "torchx"}
    more = json.dumps({"trainium_training": job, "training_job_launcher": "torchx"})
    run = sandbox.playbook(*demo(sandbox, "training", "-e", more))
    assert run.returncode == 0, sandbox.why(run.output)
    found = report(sandbox)
    assert (found["launcher"], found["restarts"], found["final_loss"]) == ("torchx", 0, undisturbed)


def test_a_lost_pod_changes_nothing(sandbox: Sandbox) -> None:
    """Another training of the same definition; the pod of its second node is deleted when it has a checkpoint."""
    undisturbed = report(sandbox)["final_loss"]
    settings = json.loads((sandbox.reports.parent / "eks.json").read_text(encoding="utf-8"))
    job = json.dumps({"trainium_training": {**settings["trainium_training"], "name": "lost"}})
    api = Api.of_kubeconfig(sandbox.reports.parent / "kubernetes" / CLUSTER / "administrator.kubeconfig")
    deleted: list[str] = []

    def lose() -> None:
        pods = "/api/v1/namespaces/trainium/pods"
        shared = sandbox.reports.parent / "filesystems"
        while not deleted:
            time.sleep(0.5)
            if any(shared.glob("*/*/trainium/jobs/lost-*/output/ckpt_40.json")):
                found = [pod["metadata"]["name"] for pod in api.items(pods) if "lost-" in pod["metadata"]["name"]]
                deleted.extend(name for name in found if name.rpartition("-")[0].endswith("-1"))
                for name in deleted:
                    api.delete(f"{pods}/{name}")

    loser = threading.Thread(target=lose, daemon=True)
    loser.start()
    run = sandbox.playbook(*demo(sandbox, "training", "-e", job))
    assert run.returncode == 0, sandbox.why(run.output)
    found = report(sandbox)
    assert len(deleted) == 1
    # The pod stops in time when it is deleted; where the other's processes start before its follower runs, once more.
    assert found["restarts"] in (1, 2)
    assert found["final_loss"] == undisturbed


def test_teardown_leaves_nothing(sandbox: Sandbox) -> None:
    run = sandbox.playbook(*demo(sandbox, "teardown"))
    assert run.returncode == 0, sandbox.why(run.output)
    assert sandbox.instances("pending", "running", "stopping", "stopped", "shutting-down") == []
    assert sandbox.client("eks").list_clusters()["clusters"] == []
    roles = [role["RoleName"] for role in sandbox.client("iam").list_roles()["Roles"]]
    assert [name for name in roles if name.startswith(f"{CLUSTER}-")] == []
    ec2 = sandbox.client("ec2")
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert ec2.describe_vpcs(Filters=[{"Name": "tag-key", "Values": ["trainium:cluster"]}])["Vpcs"] == []
