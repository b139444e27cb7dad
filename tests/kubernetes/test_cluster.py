"""A cluster of the sandbox, from its record to nothing left: ``make kubernetes``.

Kubernetes is built where it was not; that takes some ten minutes.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import lifecycle
from sandbox.account import api as emulator
from sandbox.errors import SandboxError
from sandbox.kubernetes import images, nodes, registry
from sandbox.kubernetes.ecr import Client
from sandbox.kubernetes.inside.api import Api, ApiError
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import IMAGE, Podman
from tests.kubernetes.account import POLICY, Account, token, wait

LIMITS = {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "8", "cpu": "100", "memory": "400Gi"}
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
# Each Pod looks the other up and says its name into the file system that they share.
MEETING = """
import os, pathlib, socket, time
mine, other = os.environ["MINE"], os.environ["OTHER"]
server = socket.create_server(("", 29500))
while True:
    try:
        socket.create_connection((f"{other}.meeting", 29500), timeout=2).close()
        break
    except OSError:
        time.sleep(0.2)
pathlib.Path("/data", mine).write_text(os.environ["AWS_NEURON_VISIBLE_DEVICES"])
while not pathlib.Path("/data", other).exists():
    time.sleep(0.2)
print("met", other, socket.gethostbyname(f"{other}.meeting"), flush=True)
time.sleep(600)
"""


def path_of(manifest: dict[str, Any]) -> str:
    """Where an object of the manifests is created."""
    group = manifest["apiVersion"]
    namespace = manifest["metadata"].get("namespace")
    parts = [("/api" if group == "v1" else "/apis") + f"/{group}", *([f"namespaces/{namespace}"] if namespace else [])]
    return "/".join([*parts, f"{manifest['kind'].lower()}s"])


class Cluster:
    """The running cluster, and a client of it with a token."""

    def __init__(self, account: Account, paths: Paths) -> None:
        self.account, self.paths = account, paths
        known = account.shown_cluster()
        authority = base64.b64decode(known["certificateAuthority"]["data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        self.api = Api(known["endpoint"], self.tls, token)

    def as_holder(self, word: str) -> Api:
        return Api(self.api.server, self.tls, lambda: word)

    def pod(self, name: str, script: str, image: str = f"{images.BASES[0]}:bookworm", **spec: Any) -> None:
        container = {"name": "c", "image": image, "command": ["python3", "-c", script], **spec.pop("container", {})}
        body = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [container], **spec}
        self.api.create(PODS, {"metadata": {"name": name, "labels": {"app": "test"}}, "spec": body})

    def phase(self, name: str) -> str:
        return str(self.api.get(f"{PODS}/{name}")["status"].get("phase"))

    def log(self, name: str) -> str:
        call = self.api._open("GET", f"{PODS}/{name}/log", None, "application/json", 30)
        return call.read().decode()

    def waiting_for(self, name: str) -> str:
        """Why the container of a Pod does not start."""
        statuses = self.api.get(f"{PODS}/{name}")["status"].get("containerStatuses") or [{}]
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason"))

    def allocatable(self) -> list[dict[str, str]]:
        """What each Ready node offers."""
        ready = [
            node["status"]["allocatable"]
            for node in self.api.items("/api/v1/nodes")
            if any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])
        ]
        return [
            {name: one.get(name, "0") for name in ("aws.amazon.com/neuron", "vpc.amazonaws.com/efa")} for one in ready
        ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two nodes and what upstream installs on them."""
    if emulator.taken():
        pytest.fail(f"Something answers at {emulator.endpoint()}: stop it ('python -m sandbox down') and try again.")
    folder = os.environ.get("TRAINIUM_TEST_SANDBOX")
    paths = Paths(Path(folder) if folder else tmp_path_factory.mktemp("sandbox"))
    try:
        account = Account(paths)
        account.eks.create_cluster(**account.asked())
        # Kubernetes may have to be built.
        wait("the control plane", lambda: account.shown_cluster()["status"] == "ACTIVE", 7200)
        running = Cluster(account, paths)
        account.eks.create_nodegroup(**account.group_asked(launchTemplate=account.template()))
        for manifest in yaml.safe_load_all((REPOSITORY / "tests/kubernetes/upstream.manifest").read_text()):
            running.api.create(path_of(manifest), manifest)
        yield running
    finally:
        log = paths.logs / "reconciler.log"
        print(log.read_text() if log.exists() else "The reconciler was not started.")
        lifecycle.down(paths)


def test_nodes_join_with_their_devices(cluster: Cluster) -> None:
    offered = {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "8"}
    wait("two nodes with their devices", lambda: cluster.allocatable() == [offered, offered], 1800)
    instances = {one["PrivateDnsName"]: one["InstanceId"] for one in cluster.account.shown("running")}
    nodes_of = {node["metadata"]["name"]: node for node in cluster.api.items("/api/v1/nodes")}
    assert sorted(nodes_of) == sorted(instances)
    for name, node in nodes_of.items():
        assert node["spec"]["providerID"] == f"aws:///{cluster.account.zones[0]}/{instances[name]}"
        assert node["status"]["capacity"]["cpu"] == "128"
        expected = {"node.kubernetes.io/instance-type": "trn1.32xlarge", "eks.amazonaws.com/nodegroup": "trn"}
        assert expected.items() <= node["metadata"]["labels"].items()
    assert cluster.account.nodegroup()["status"] == "ACTIVE"


def test_a_third_pod_waits_and_two_meet(cluster: Cluster) -> None:
    """Network between nodes, DNS, devices, the shared volume and the real scheduler."""
    service = {"clusterIP": "None", "selector": {"app": "test"}, "publishNotReadyAddresses": True}
    cluster.api.create("/api/v1/namespaces/default/services", {"metadata": {"name": "meeting"}, "spec": service})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "fsx-claim"}}]
    for mine, other in (("a", "b"), ("b", "a"), ("c", "a")):
        variables = [{"name": "MINE", "value": mine}, {"name": "OTHER", "value": other}]
        mounts = [{"name": "data", "mountPath": "/data"}]
        container = {"env": variables, "volumeMounts": mounts, "resources": {"limits": LIMITS}}
        cluster.pod(mine, MEETING, container=container, volumes=volumes, hostname=mine, subdomain="meeting")
    for mine, other in (("a", "b"), ("b", "a")):
        said = wait(f"the Pod {mine}", partial(cluster.log, mine), 300)
        assert said.startswith(f"met {other} 100.64.")
    assert len({cluster.api.get(f"{PODS}/{name}")["spec"]["nodeName"] for name in "ab"}) == 2
    [condition] = cluster.api.get(f"{PODS}/c")["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith("0/2 nodes are available: ")
    assert "2 Insufficient aws.amazon.com/neuron" in condition["message"]
    shared = cluster.paths.filesystems / cluster.account.vpc / "fs-0123456789abcdef0"
    assert (shared / "a").read_text() == ",".join(map(str, range(16)))
    cluster.api.delete(f"{PODS}/a")
    wait("the third Pod, when there is room", lambda: cluster.phase("c") == "Running", 120)
    # It goes when its volume has been taken away.
    wait("the first Pod's end", lambda: "a" not in [pod["metadata"]["name"] for pod in cluster.api.items(PODS)], 60)
    for name in "bc":
        cluster.api.delete(f"{PODS}/{name}")


def test_tokens_and_policies(cluster: Cluster) -> None:
    for word in (token("other"), token(secret="wrong"), "k8s-aws-v1.nonsense"):
        assert _status(cluster.as_holder(word)) == 401
    arn, key, secret = cluster.account.make_user("viewer")
    viewer = cluster.as_holder(token(key=key, secret=secret))
    assert _status(viewer) == 401
    entry = {"clusterName": "c1", "principalArn": arn}
    cluster.account.eks.create_access_entry(**entry)
    wait("the entry", lambda: _status(viewer) == 403, 60)
    scope = {"type": "namespace", "namespaces": ["default"]}
    policy = POLICY.format("View")
    cluster.account.eks.associate_access_policy(**entry, policyArn=policy, accessScope=scope)
    wait("the policy", lambda: _status(viewer) == 200, 60)
    assert not _may(viewer, "create", "pods")
    assert _status(viewer, "/api/v1/nodes") == 403
    cluster.account.eks.delete_access_entry(**entry)
    wait("no entry", lambda: _status(viewer) == 401, 60)


def _may(client: Api, verb: str, resource: str) -> bool:
    spec = {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default"}}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    answer = client.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", kind)
    return bool(answer["status"]["allowed"])


def _status(client: Api, path: str = PODS) -> int:
    try:
        client.get(path)
    except ApiError as error:
        return error.status
    return 200


def test_images_are_pushed_to_ecr_and_pulled(cluster: Cluster) -> None:
    podman = Podman(cluster.paths)
    cluster.paths.registries.write_text(registry.redirections("us-west-2"))
    os.environ["CONTAINERS_REGISTRIES_CONF"] = str(cluster.paths.registries)
    ecr = Client().ecr

    def push(repository: str, *credentials: str) -> str:
        target = f"docker://{repository}:v1"
        return podman.run("push", "-q", *credentials, f"{IMAGE}:{images.pod_tag()}", target)

    login = base64.b64decode(ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]).decode()
    with pytest.raises(SandboxError, match="does not exist in the registry"):
        push(f"{registry.OWN}/train", "--creds", login)
    host = ecr.create_repository(repositoryName="train")["repository"]["repositoryUri"].rpartition("/")[0]
    with pytest.raises(SandboxError, match=r"Not Authorized|unauthorized"):
        push(f"{host}/train")
    push(f"{host}/train", "--creds", login)
    [image] = ecr.describe_images(repositoryName="train")["imageDetails"]
    assert image["imageTags"] == ["v1"]
    cluster.pod("pulled", "print('ran')", image=f"{host}/train:v1")
    cluster.pod("missing", "", image=f"{host}/train:v2")
    wait("the Pod of the pushed image", lambda: cluster.phase("pulled") == "Succeeded", 120)
    reasons = ("ErrImagePull", "ImagePullBackOff")
    wait("the Pod of no image", lambda: cluster.waiting_for("missing") in reasons, 120)
    for name in ("pulled", "missing"):
        cluster.api.delete(f"{PODS}/{name}")


def test_volcano_starts_all_pods_of_a_job_or_none(cluster: Cluster) -> None:
    def job(name: str, count: int) -> dict[str, Any]:
        container = {"name": "c", "image": f"{images.BASES[0]}:bookworm", "resources": {"limits": LIMITS}}
        container["command"] = ["sh", "-c", "cat /etc/volcano/*.host && sleep 2"]
        template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}}
        tasks = [{"name": f"role-{index}", "replicas": 1, "template": template} for index in range(count)]
        spec = {"queue": "default", "plugins": {"svc": [], "env": []}, "tasks": tasks, "schedulerName": "volcano"}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}

    def state(name: str) -> dict[str, Any]:
        return dict((cluster.api.get(f"{JOBS}/{name}").get("status") or {}).get("state") or {})

    wait("the definitions", lambda: cluster.api.get(JOBS), 120)
    cluster.api.create(JOBS, job("three", 3))
    cluster.api.create(JOBS, job("two", 2))
    wait("the Job that fits", lambda: state("two").get("phase") == "Completed", 180)
    assert state("three")["phase"] == "Pending"
    assert "minAvailable" in state("three")["message"]
    names = {pod["metadata"]["name"] for pod in cluster.api.items(PODS)}
    assert not [name for name in names if name.startswith("three-")]


def test_nothing_is_left(cluster: Cluster) -> None:
    """The account loses nodes and cluster, then the sandbox ends."""
    podman = Podman(cluster.paths)
    account = cluster.account
    account.eks.delete_nodegroup(clusterName="c1", nodegroupName="trn")
    wait("no node group", lambda: not account.eks.list_nodegroups(clusterName="c1")["nodegroups"], 120)
    account.eks.delete_cluster(name="c1")
    wait("no cluster", lambda: not account.eks.list_clusters()["clusters"], 60)
    registries = [f"{cluster.paths.name}-registry"]
    wait("only the registry", lambda: list(podman.containers()) == registries, 120)
    wait("no network", lambda: not podman.networks(), 60)
    assert not any(cluster.paths.kubernetes.iterdir())
    assert not any(cluster.paths.hosts.iterdir())
    assert not nodes.STRAY_CGROUPS.exists() or not any(nodes.STRAY_CGROUPS.rglob("cgroup.procs"))
