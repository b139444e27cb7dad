"""The same training in Pods of a real Kubernetes, from an empty account and back. One story, in order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.kubernetes.inside.api import Api, ApiError
from sandbox.kubernetes.pki import Authority
from sandbox.network.forward import NAME as AWS_NAME
from sandbox.paths import Paths
from sandbox.podman import Podman
from tests.kubernetes.account import wait
from tests.sandbox_driver import DEMO_LOSS, REPOSITORY, Run, Sandbox

CLUSTER = "trainium"
NAMESPACE = "/api/v1/namespaces/trainium"
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/trainium"


def demo(sandbox: Sandbox, name: str = "site", *more: str) -> list[str]:
    """A playbook with what ``make demo`` gives it."""
    return [name, "-e", "trainium_backend=eks", "-e", f"@{sandbox.reports.parent / 'eks.json'}", *more]


def plane(sandbox: Sandbox) -> Path:
    """What the sandbox keeps of the cluster's control plane."""
    return sandbox.reports.parent / "kubernetes" / CLUSTER


def administrator(sandbox: Sandbox) -> Api:
    return Api.of_kubeconfig(plane(sandbox) / "administrator.kubeconfig")


def job(sandbox: Sandbox, name: str, changes: dict[str, Any] | None = None, **variables: Any) -> list[str]:
    """The variables of another training of the demo's definition."""
    settings = json.loads((sandbox.reports.parent / "eks.json").read_text(encoding="utf-8"))
    training = {**settings["trainium_training"], "name": name, **(changes or {})}
    return ["-e", json.dumps({"trainium_training": training, **variables})]


def words(run: Run) -> str:
    """What a run has said, whatever its lines."""
    return " ".join(run.output.replace("\\n", " ").split())


def denied(api: Api, method: str, path: str, body: Any = None) -> bool:
    try:
        api.call(method, path, body)
    except ApiError as error:
        return error.status == HTTPStatus.FORBIDDEN
    return False


def known_user(sandbox: Sandbox, name: str) -> Path:
    """The kubeconfig of a user whom the cluster knows, and who has no rights in it."""
    authority = Authority(plane(sandbox) / "pki")
    authority.sign(name, name)
    kubeconfig = sandbox.reports / f"{name}.kubeconfig"
    authority.write_kubeconfig(kubeconfig, name, administrator(sandbox).server)
    return kubeconfig


def researcher(sandbox: Sandbox, name: str) -> tuple[str, Api]:
    """A user with the Role of the documentation: the path of a kubeconfig, and a client."""
    api, kubeconfig = administrator(sandbox), known_user(sandbox, name)
    rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/trainium"
    role = yaml.safe_load((REPOSITORY / "roles/eks_addons/files/researcher.yml").read_text(encoding="utf-8"))
    api.create(f"{rights}/roles", role)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
    wanted = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]}
    api.create(f"{rights}/rolebindings", {"metadata": {"name": name}, "subjects": [subject], "roleRef": wanted})
    return str(kubeconfig), Api.of_kubeconfig(kubeconfig)


def has_checkpoint(sandbox: Sandbox, name: str, step: int) -> Callable[[], bool]:
    """One of that step or of a later one: older ones are removed."""
    shared = sandbox.reports.parent / "filesystems"
    return lambda: any(
        int(path.stem.removeprefix("ckpt_")) >= step
        for path in shared.glob(f"*/*/trainium/jobs/{name}-*/output/ckpt_*.json")
    )


def report(sandbox: Sandbox) -> dict[str, object]:
    found: dict[str, object] = json.loads((sandbox.reports / "report.json").read_text(encoding="utf-8"))
    return found


def test_check_mode_writes_nothing_into_an_empty_account(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook(*demo(sandbox, "site", "--check", "--diff"))
    assert run.returncode == 0, sandbox.why(run.output)
    assert sandbox.writes() == []


def test_the_demo_trains_in_pods(sandbox: Sandbox) -> None:
    assert sandbox.instances("pending", "running") == []
    command = ["make", "demo", "BACKEND=eks"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    found = report(sandbox)
    assert (found["nodes"], found["processes"], found["launcher"]) == (2, 4, "torchx")
    assert found["final_loss"] == pytest.approx(DEMO_LOSS, abs=0.01)


def test_a_second_run_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.forget()
    run = sandbox.playbook(*demo(sandbox))
    assert run.returncode == 0, sandbox.why(run.output)
    assert set(run.changed.values()) == {0}
    # The lease of the cluster, taken and given back.
    assert sandbox.writes() == ["PutParameter", "PutParameter"]


def test_the_image_was_built_and_pushed_once(sandbox: Sandbox) -> None:
    (repository,) = sandbox.client("ecr").describe_repositories()["repositories"]
    assert repository["repositoryName"] == f"trainium/{CLUSTER}/training"
    (image,) = sandbox.client("ecr").describe_images(repositoryName=repository["repositoryName"])["imageDetails"]
    pods = administrator(sandbox).items(f"{NAMESPACE}/pods")
    told = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert told == {f"{repository['repositoryUri']}:{image['imageTags'][0]}@{image['imageDigest']}"}


def test_a_dataset_is_fetched_by_a_job_in_the_cluster(sandbox: Sandbox) -> None:
    """Its training has been run, so that it is all that this run does."""
    s3, bucket = sandbox.client("s3"), "trainium-datasets"
    contents = {f"part-{number}.bin": os.urandom(300_000) for number in range(3)}
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": sandbox.environment["AWS_REGION"]})
    for name, content in contents.items():
        s3.put_object(Bucket=bucket, Key=f"set/{name}", Body=content)
    port = sandbox.environment["AWS_ENDPOINT_URL"].rpartition(":")[2]
    variables = {
        "trainium_dataset": {"source": f"s3://{bucket}/set/", "s3_endpoint": f"http://{AWS_NAME}:{port}"},
    }
    arguments = demo(sandbox, "training", "-e", json.dumps(variables))
    run = sandbox.playbook(*arguments)
    assert run.returncode == 0, sandbox.why(run.output)
    shared = sandbox.reports.parent / "filesystems"
    found = {path.name: path.read_bytes() for path in shared.glob("*/*/trainium/data/**/part-*.bin")}
    assert found == contents
    api = administrator(sandbox)
    for kind in ("secrets", "configmaps"):
        names = [one["metadata"]["name"] for one in api.items(f"{NAMESPACE}/{kind}")]
        assert [name for name in names if name.startswith("dataset-")] == []
    again = sandbox.playbook(*arguments)
    assert (again.returncode, set(again.changed.values())) == (0, {0}), sandbox.why(again.output)


def test_jobs_of_kubernetes_alone_train_to_the_same_loss(sandbox: Sandbox) -> None:
    """The launcher of clusters whose owner installs nothing: a Job a node."""
    undisturbed = report(sandbox)["final_loss"]
    run = sandbox.playbook(*demo(sandbox, "training", *job(sandbox, "plain", training_job_launcher="kubernetes")))
    assert run.returncode == 0, sandbox.why(run.output)
    found = report(sandbox)
    assert (found["launcher"], found["restarts"], found["final_loss"]) == ("kubernetes", 0, undisturbed)


def test_a_third_job_waits_for_room_and_a_researcher_may_run_it(sandbox: Sandbox) -> None:
    """One without an end holds the devices; with our Role and nothing else a user submits another, and follows it."""
    undisturbed, api = report(sandbox)["final_loss"], administrator(sandbox)
    endless = {"args": {"steps_this_run": 1_000_000, "max_steps": 0}, "steps": 0, "compile": {"enabled": False}}
    held = job(sandbox, "holder", endless, training_job_wait_timeout=5)
    assert sandbox.playbook(*demo(sandbox, "training", *held)).returncode != 0
    wait("a step of the training that holds the devices", has_checkpoint(sandbox, "holder", 20), 300)

    user, mine = researcher(sandbox, "rita")
    waiting = job(sandbox, "third", trainium_kubeconfig=user, training_job_wait_timeout=5)
    assert sandbox.playbook(*demo(sandbox, "training", *waiting)).returncode != 0
    status = words(sandbox.playbook(*demo(sandbox, "status")))
    assert "2/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable" in status
    for path in ("/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/default/pods"):
        assert denied(mine, "GET", path), path
    pod = {"metadata": {"name": "own"}, "spec": {"containers": [{"name": "own", "image": "own"}]}}
    assert denied(mine, "POST", f"{NAMESPACE}/pods", pod)
    assert denied(mine, "DELETE", f"{NAMESPACE}/persistentvolumeclaims/fsx-claim")

    gone = job(sandbox, "holder", endless, trainium_kubeconfig=user, training_job_state="absent")
    assert sandbox.playbook(*demo(sandbox, "training", *gone)).returncode == 0
    run = sandbox.playbook(*demo(sandbox, "training", *job(sandbox, "third", trainium_kubeconfig=user)))
    assert run.returncode == 0, sandbox.why(run.output)
    found = report(sandbox)
    assert (found["launcher"], found["final_loss"]) == ("torchx", undisturbed)
    names = [one["metadata"]["name"] for one in api.items("/apis/batch.volcano.sh/v1alpha1/namespaces/trainium/jobs")]
    assert [name for name in names if name.startswith("holder-")] == []


def test_a_lost_pod_and_a_killed_playbook_change_nothing(sandbox: Sandbox) -> None:
    """Another training of the same definition, by Volcano; the pod of its second node is deleted when it has a
    checkpoint, and so is the playbook that follows it."""
    undisturbed = report(sandbox)["final_loss"]
    api, arguments = administrator(sandbox), demo(sandbox, "training", *job(sandbox, "lost"))
    sandbox.kill_playbook_when(arguments[0], has_checkpoint(sandbox, "lost", 40), *arguments[1:])
    found = [pod["metadata"]["name"] for pod in api.items(f"{NAMESPACE}/pods")]
    # Its training and not what compiled for it.
    (second,) = [name for name in found if re.fullmatch("lost-[0-9a-f]+-role1-1-0", name)]
    api.delete(f"{NAMESPACE}/pods/{second}")
    run = sandbox.playbook(*arguments)
    assert run.returncode == 0, sandbox.why(run.output)
    told = report(sandbox)
    # The pod stops in time when it is deleted; where the other's processes start before its follower runs, once more.
    assert told["restarts"] in (1, 2)
    assert (told["launcher"], told["final_loss"]) == ("torchx", undisturbed)


def test_a_paused_node_and_a_killed_playbook_change_nothing(sandbox: Sandbox) -> None:
    """The node of rank 1 stops answering: its pod is evicted, and made anew where there is room, here on the same."""
    undisturbed = report(sandbox)["final_loss"]
    api, podman = administrator(sandbox), Podman(Paths(sandbox.reports.parent))
    alone: dict[str, Any] = {"training_job_launcher": "kubernetes"}
    arguments = demo(sandbox, "training", *job(sandbox, "paused", **alone))
    sandbox.kill_playbook_when(arguments[0], has_checkpoint(sandbox, "paused", 40), *arguments[1:])

    def pods() -> list[dict[str, Any]]:
        found = [pod for pod in api.items(f"{NAMESPACE}/pods") if pod["metadata"]["name"].startswith("paused-")]
        return [pod for pod in found if pod["metadata"]["name"].rpartition("-")[0].endswith("-1")]

    (pod,) = pods()
    node = api.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    host = f"{podman.paths.name}-{node['spec']['providerID'].rpartition('/')[2]}"
    podman.run("pause", host)
    try:
        # Meanwhile somebody else wants the same compile cache.
        second = sandbox.playbook(
            *demo(sandbox, "training", *job(sandbox, "second", training_job_cacheset="paused", **alone))
        )
        said = (
            f"job {pod['metadata']['labels']['trainium.cluster/app']} is [A-Z]+ with the compile cache 'paused', which"
        )
        assert second.returncode != 0
        assert re.search(said, words(second)), words(second)

        def is_told() -> bool:
            events = api.items(f"{NAMESPACE}/events")
            return any(
                event["reason"] == "NodeNotReady" and event["involvedObject"]["name"] == pod["metadata"]["name"]
                for event in events
            )

        wait("the node not ready", is_told, 180)
        status = words(sandbox.playbook(*demo(sandbox, "status")))
        assert f"{pod['metadata']['name']}: its node {pod['spec']['nodeName']} does not answer" in status
        assert f"Nodes of Kubernetes do not answer: {pod['spec']['nodeName']}" in status
        wait("another pod", lambda: len(pods()) == 2, 180)
        status = words(sandbox.playbook(*demo(sandbox, "status")))
        assert "Insufficient aws.amazon.com/neuron" in status
    finally:
        podman.run("unpause", host)
    run = sandbox.playbook(*arguments)
    assert run.returncode == 0, sandbox.why(run.output)
    found = report(sandbox)
    assert found["restarts"] in (1, 2)
    assert found["final_loss"] == undisturbed


def is_pending(pod: dict[str, Any]) -> bool:
    return bool(pod["status"]["phase"] == "Pending")


def test_what_cannot_run_is_told_in_a_sentence(sandbox: Sandbox) -> None:
    api = administrator(sandbox)

    def refused(name: str, changes: dict[str, Any], *sentences: str, **variables: Any) -> None:
        variables = {"training_job_launcher": "kubernetes", **variables}
        run = sandbox.playbook(*demo(sandbox, "training", *job(sandbox, name, changes, **variables)))
        assert run.returncode != 0
        assert all(sentence in words(run) for sentence in sentences), words(run)

    image = {"image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/none:1"}
    refused("noimage", image, "can never start", "not found", "Correct image in trainium_training")
    refused("noclaim", {}, "can never start", 'persistentvolumeclaim "none" not found', training_job_claim="none")

    # A claim that nobody binds may be bound one day.
    wanted = {"requests": {"storage": "1Gi"}}
    claim = {"accessModes": ["ReadWriteMany"], "storageClassName": "none", "resources": wanted}
    api.create(f"{NAMESPACE}/persistentvolumeclaims", {"metadata": {"name": "pending"}, "spec": claim})
    pending = {"training_job_claim": "pending", "training_job_wait_timeout": 5}
    refused("pending", {}, "unbound immediate PersistentVolumeClaims", **pending)
    status = words(sandbox.playbook(*demo(sandbox, "status")))
    assert "unbound immediate PersistentVolumeClaims" in status and "kubectl describe pvc" in status
    gone = job(sandbox, "pending", training_job_state="absent", training_job_launcher="kubernetes")
    assert sandbox.playbook(*demo(sandbox, "training", *gone)).returncode == 0
    # What can never start has given its nodes back by itself.
    wait("no pod that waits", lambda: not [pod for pod in api.items(f"{NAMESPACE}/pods") if is_pending(pod)], 120)

    user = {"trainium_kubeconfig": str(known_user(sandbox, "ann"))}
    refused("noright", {}, 'is forbidden: User "ann" cannot', "Have the role of docs/eks.md", **user)

    torchx = {"training_job_launcher": "torchx", "training_job_retries": 0}
    api.patch(f"{QUEUE}/status", {"status": {"state": "Closed"}})
    try:
        said = "can only submit job to queue with state `Open`, queue `trainium` status is `Closed`"
        refused("noqueue", {}, said, "vcctl queue operate --action open", **torchx)
        status = words(sandbox.playbook(*demo(sandbox, "status")))
        assert "Volcano's queue `trainium` status is `Closed`" in status and "vcctl queue operate" in status
    finally:
        api.patch(f"{QUEUE}/status", {"status": {"state": "Open"}})

    failing = {"compile": {"enabled": True, "args": {"no_such_argument": 1}}}
    refused("nocompile", failing, "so that its training is not started", **torchx)
    jobs = api.items("/apis/batch.volcano.sh/v1alpha1/namespaces/trainium/jobs")
    made = [one["metadata"]["name"] for one in jobs if one["metadata"]["name"].startswith("nocompile-")]
    assert [name.rpartition("-")[2] for name in made] == ["c"]
    told = words(sandbox.playbook(*demo(sandbox, "diagnose")))
    assert "image cannot be pulled (events of Kubernetes)" in told and "claim pending" in told


def test_a_hundred_nodes_are_told_at_once(sandbox: Sandbox) -> None:
    api = administrator(sandbox)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": moment, "lastTransitionTime": moment}
    devices = {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "8", "pods": "58"}
    names = [f"fake-{number:03}" for number in range(100)]
    labels = {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
    status = {"conditions": [ready], "allocatable": devices, "capacity": devices}
    try:
        for name in names:
            metadata = {"name": name, "labels": labels}
            api.create("/api/v1/nodes", {"metadata": metadata, "spec": {"unschedulable": True}, "status": status})
        run = sandbox.playbook(*demo(sandbox, "status"))
        assert "102 trn1.32xlarge" in words(run), run.output
    finally:
        for name in names:
            api.delete(f"/api/v1/nodes/{name}")


def test_teardown_leaves_nothing(sandbox: Sandbox) -> None:
    run = sandbox.playbook(*demo(sandbox, "teardown"))
    assert run.returncode == 0, sandbox.why(run.output)
    assert sandbox.instances("pending", "running", "stopping", "stopped", "shutting-down") == []
    assert sandbox.client("eks").list_clusters()["clusters"] == []
    roles = [role["RoleName"] for role in sandbox.client("iam").list_roles()["Roles"]]
    assert [name for name in roles if name.startswith(f"{CLUSTER}-")] == []
    assert sandbox.client("ecr").describe_repositories()["repositories"] == []
    assert sandbox.client("fsx").describe_file_systems()["FileSystems"] == []
    ec2 = sandbox.client("ec2")
    assert ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert ec2.describe_vpcs(Filters=[{"Name": "tag-key", "Values": ["trainium:cluster"]}])["Vpcs"] == []
