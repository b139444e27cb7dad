"""A training as TorchX and Volcano run it, held against the real TorchX where that is installed."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import trainium_torchx, volcano
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.state import cacheset_of, size_of

from tests.unit.kubernetes.definitions import SITE, completed

COMPONENT = Path(trainium_torchx.__file__)
# Huge pages are none unless somebody asks for them, as with TorchX.
QUEUED = {**SITE, "huge_pages": "", "queue": "trainium", "service_account": "", "priority_class": ""}


def parts(definition: dict[str, Any] | None = None, **site: Any) -> dict[str, list[dict[str, Any]]]:
    whole = {**QUEUED, **site}
    return volcano.parts(completed(definition, whole, "torchx"), whole, {"pod.sh": b"true\n"})


def container(job: dict[str, Any], replica: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["tasks"][replica]["template"]["spec"]["containers"][0]
    return found


def test_rank_0_is_known_by_its_name_before_there_is_a_pod() -> None:
    (job,) = parts({"args": {"lr": 0.1}})["train"]
    app = job["metadata"]["name"]
    program, flag, command = container(job, 1)["command"]
    words = shlex.split(command.partition(" && ")[2])
    assert (program, flag, words[:3]) == ("bash", "-c", ["python3", "-m", "torch.distributed.run"])
    said = dict(zip(words[3::2], words[4::2]))
    # Volcano's plugin svc: the pod of a task is <job>-<task>-<index>, in a service named after the job.
    assert said["--rdzv_endpoint"] == f"{app}-role1-0-0.{app}:29500"
    assert (said["--rdzv_backend"], said["--rdzv_id"], said["--tee"], said["--role"]) == ("c10d", app, "3", "")
    assert (said["--nnodes"], said["--nproc_per_node"]) == ("2", "32")
    assert words[-2:] == ["--lr", "0.1"]
    assert len(f"{app}-role1-0-0") <= 63


def test_torchx_s_own_programs_find_the_job() -> None:
    """By the labels that its scheduler for Kubernetes gives pods and asks for."""
    (job,) = parts()["train"]
    for replica in (0, 1):
        labels = job["spec"]["tasks"][replica]["template"]["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "torchx.pytorch.org"
        assert labels["app.kubernetes.io/instance"] == job["metadata"]["name"]
        assert labels["torchx.pytorch.org/replica-id"] == str(replica)
        assert (labels["torchx.pytorch.org/role-index"], labels["torchx.pytorch.org/role-name"]) == ("0", "role1")
        assert labels["torchx.pytorch.org/app-name"] == labels["app.kubernetes.io/name"]


def local_addresses(job: dict[str, Any], own: dict[int, str], folder: Path) -> list[str]:
    """What the shell of each pod gives torchrun as its address. ``own``: what hostname says in those pods."""
    program = folder / "hostname"
    program.write_text('#!/bin/sh\necho "$OWN"\n', encoding="utf-8")
    program.chmod(0o755)
    found = []
    for replica in range(len(job["spec"]["tasks"])):
        setting = container(job, replica)["command"][2].partition(" && ")[0]
        command = ["bash", "-c", f'{setting} && printf %s "$PET_LOCAL_ADDR"']
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "OWN": own.get(replica, "10.0.0.1")}
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    return found


@pytest.mark.parametrize("own", ["10.0.9.9", "192.168.7.7", "10.0.9.9 fd00::9", "fd00::9", "ffff::9"])
def test_rank_0_is_in_the_first_pod_whatever_its_address(tmp_path: Path, own: str) -> None:
    options = volcano.options_of(completed(launcher="torchx"), QUEUED, False)
    job = volcano.volcano_job("bert-1", {**options, "nnodes": 12}, QUEUED)
    found = local_addresses(job, {0: own}, tmp_path)
    # Its address, as its whole name has more than the 63 characters that the Neuron runtime takes.
    assert found[0] == own.split()[0]
    # c10d gives ranks in the order of these texts (torch/distributed/elastic/rendezvous/dynamic_rendezvous.py).
    assert found == sorted(found)
    assert len({*found}) == 12


def test_with_etcd_each_pod_may_be_rank_0(tmp_path: Path) -> None:
    options = volcano.options_of(completed(launcher="torchx"), QUEUED, False)
    job = volcano.volcano_job("bert-1", {**options, "rdzv_backend": "etcd"}, QUEUED)
    assert local_addresses(job, {0: "10.0.9.9"}, tmp_path) == ["10.0.9.9", "10.0.0.1"]


def test_each_replica_has_its_own_cache_and_all_devices() -> None:
    (job,) = parts(instance_type="trn1n.32xlarge")["train"]
    made = container(job, 1)
    env = {one["name"]: one["value"] for one in made["env"]}
    assert env["NEURON_CC_FLAGS"] == "--cache_dir=/fsx/neuron_cache/bert_1"
    assert env["TRANSFORMERS_CACHE"] == "/fsx/transformers_cache/bert_1"
    assert (env["CCOM_SOCKET_IFNAME"], env["FI_PROVIDER"], env["NEURON_RT_RESET_CORES"]) == ("eth0", "efa", "1")
    assert made["resources"]["limits"] == {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "16"}
    assert cacheset_of(job) == "bert"
    # Of whatever somebody has submitted without us.
    del job["metadata"]["labels"]
    assert cacheset_of(job) == "bert"


@pytest.mark.parametrize(("instance_type", "efa"), [("trn1.32xlarge", 8), ("trn1n.32xlarge", 16)])
def test_flags_variables_and_devices_are_those_of_neurons_sample(instance_type: str, efa: int) -> None:
    """lib/trn1_dist_ddp.py of aws-neuron-eks-samples, with etcd as there; of ours are --nproc_per_node by the devices,
    and what the shell does before."""
    options = volcano.options_of(completed({"args": {"lr": 0.1}}, launcher="torchx"), QUEUED, False)
    options.update(instance_type=instance_type, nproc_per_node=0, cacheset="bert", data="/data", bf16=True, env="")
    options.update(rdzv_backend="etcd", script="dp_bert.py", nnodes=4)
    made = trainium_torchx.appdef(options)
    command = made["args"][1].partition(" && ")[2]
    assert command == (
        "python3 -m torch.distributed.run --rdzv_backend etcd --rdzv_endpoint etcd-server:2379 --rdzv_id ${app_id} "
        "--nnodes 4 --nproc_per_node 32 --tee 3 --role '' dp_bert.py --lr 0.1"
    )
    ones = ("FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE", "NEURON_RT_RESET_CORES", "XLA_TRANSFER_SEED_ASYNC")
    assert made["env"] == {
        **dict.fromkeys((*ones, "XLA_DOWNCAST_BF16"), "1"),
        "CCOM_SOCKET_IFNAME": "eth0",
        "FI_PROVIDER": "efa",
        "NEURON_CC_FLAGS": "--cache_dir=/data/neuron_cache/bert_${replica_id}",
        "TRANSFORMERS_CACHE": "/data/transformers_cache/bert_${replica_id}",
    }
    assert made["devices"] == {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": efa}
    # The whole command is one argument of neuron_parallel_compile.
    compiling = trainium_torchx.appdef({**options, "precompile": True})
    assert shlex.split(compiling["args"][1].partition(" && ")[2]) == ["neuron_parallel_compile", command]


def test_it_compiles_in_a_job_of_its_own_before() -> None:
    found = parts({"compile": {"enabled": True, "steps": 7}})
    (compiling,), (training,) = found["compile"], found["train"]
    assert compiling["metadata"]["name"] == f"{training['metadata']['name']}-c"
    program, command = shlex.split(container(compiling)["command"][2].partition(" && ")[2])
    assert program == "neuron_parallel_compile"
    assert command.endswith("--steps_this_run 7")
    env = {one["name"]: one["value"] for one in container(compiling)["env"]}
    assert (env["TRAINIUM_CHECKPOINT_STEPS"], env["TRAINIUM_RESUME"]) == ("0", "0")
    assert parts()["compile"] == []


def test_no_pod_has_the_token_of_its_service_account() -> None:
    found = parts({"compile": {"enabled": True}}, service_account="trainer")
    jobs = [found["compile"][0], found["train"][0]]
    specs = [task["template"]["spec"] for job in jobs for task in job["spec"]["tasks"]]
    assert [spec["automountServiceAccountToken"] for spec in specs] == [False] * 4


def test_a_job_is_started_again_by_volcano() -> None:
    (job,) = parts()["train"]
    assert job["spec"]["maxRetry"] == 4
    assert [one["event"] for one in job["spec"]["tasks"][0]["policies"]] == ["PodEvicted", "PodFailed"]
    (once,) = parts({"requeue": False})["train"]
    assert "policies" not in once["spec"]["tasks"][0]


def test_values_are_read_from_a_file_and_are_in_no_job() -> None:
    found = parts({"env": {"HF_TOKEN": "hf $x 'y'"}})
    configured, secret, staging = found["stage"]
    text = base64.b64decode(secret["data"]["environment.sh"]).decode()
    done = subprocess.run(["bash", "-c", f'{text}echo "$HF_TOKEN"'], capture_output=True, text=True, check=True)
    assert done.stdout == "hf $x 'y'\n"
    assert "hf " not in json.dumps([configured, staging, *found["train"]])
    command = container(found["train"][0])["command"][2]
    assert command.partition(" && ")[2].startswith("set -a && . /fsx/trainium/jobs/bert-")


def test_arguments_reach_the_script_as_they_are() -> None:
    (job,) = parts({"args": {"a": "$HOME ${app_id} 'x'"}})["train"]
    assert shlex.split(container(job)["command"][2])[-1] == "$HOME ${app_id} 'x'"


def test_the_component_knows_the_types_as_the_table_of_hardware_does() -> None:
    for name, (neuron, efa, cores) in trainium_torchx.TYPES.items():
        known = TYPES[name]
        assert (known.devices, known.efa, known.devices * min(known.cores)) == (neuron, efa, cores)


@pytest.mark.parametrize(
    ("change", "sentence"), [({"cacheset": "a/b"}, "cacheset may have"), ({"instance_type": "p5"}, "is none of trn1")]
)
def test_the_component_refuses_what_cannot_run(change: dict[str, Any], sentence: str) -> None:
    options = volcano.options_of(completed(launcher="torchx"), QUEUED, False)
    with pytest.raises(ValueError, match=sentence):
        trainium_torchx.appdef({**options, **change})


@pytest.mark.parametrize(
    ("definition", "site"),
    [
        ({"args": {"text": "a b $c", "lr": 0.1}, "env": {"A": "b"}}, {"priority_class": "high"}),
        ({"compile": {"enabled": True}, "requeue": False}, {"instance_type": "trn1n.32xlarge"}),
        ({"processes_per_node": 2, "nodes": 1}, {"instance_type": "trn1.2xlarge", "service_account": "trainer"}),
    ],
)
def test_torchx_would_submit_the_same(torchx: Path, definition: dict[str, Any], site: dict[str, Any]) -> None:
    whole = {**QUEUED, **site}
    job = completed(definition, whole, "torchx")
    compiling = bool(job["compile"]["enabled"])
    options = volcano.options_of(job, whole, compiling)
    cfg = {name: whole[name] for name in ("queue", "service_account", "priority_class") if whole[name]}
    command = [str(torchx.with_name("torchx")), "run", "--dryrun", "--workspace", "", "--scheduler", "kubernetes"]
    command += ["--scheduler_args", ",".join(f"{name}={value}" for name, value in cfg.items()), f"{COMPONENT}:train"]
    for name, value in options.items():
        command += [f"--{name}={value}"]
    environment = {"PATH": f"{torchx.parent}:{os.environ['PATH']}", "HOME": os.environ["HOME"]}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    theirs = yaml.safe_load(done.stdout.partition("=== SCHEDULER REQUEST ===")[2])
    # TorchX ends the name with a random text.
    (ours,) = volcano.parts(job, whole, {})["compile" if compiling else "train"]
    name = ours["metadata"]["name"]
    again = json.loads(json.dumps(theirs).replace(theirs["metadata"]["name"], name))
    ours["metadata"] = {"name": name}
    # What is different: no pod gets a token of the API server.
    for task in ours["spec"]["tasks"]:
        del task["template"]["spec"]["automountServiceAccountToken"]
    assert again == ours


def test_a_report_knows_nodes_and_processes_by_the_job() -> None:
    """In no log of TorchX's is how many there are."""
    seen = size_of(parts({"args": {"x": "--nproc_per_node 7"}})["train"])
    assert seen == {"launcher": "torchx", "node_count": 2, "process_count": 64}
    assert size_of([]) == {"launcher": "", "node_count": 0, "process_count": 0}


def test_a_job_that_somebody_wrote_by_hand_is_no_traceback() -> None:
    (job,) = parts({})["train"]
    for containers in ([], [{"command": [f"--nproc_per_node {'9' * 5000}"]}]):
        job["spec"]["tasks"][0]["template"]["spec"]["containers"] = containers
        assert size_of([job])["process_count"] == 0


def test_pods_have_what_the_site_says_beside_what_torchx_knows() -> None:
    """An AppDef has no word for these, but the job of Volcano has."""
    kept = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}
    own = {"tolerations": [kept], "pull_secrets": ["own"], "huge_pages": "1Gi", "resources": {"memory": "400Gi"}}
    for task in parts({"compile": {"enabled": True}}, **own)["compile"][0]["spec"]["tasks"]:
        pod = task["template"]["spec"]
        assert (pod["tolerations"], pod["imagePullSecrets"]) == ([kept], [{"name": "own"}])
        limits = {"aws.amazon.com/neuron": "16", "vpc.amazonaws.com/efa": "8", "hugepages-2Mi": "1Gi"}
        asked = pod["containers"][0]["resources"]
        assert asked["limits"] == {**limits, "memory": "400Gi"}
        # Kubernetes takes huge pages only beside these.
        assert (asked["requests"]["cpu"], asked["requests"]["memory"]) == ("1", "400Gi")
    (bare,) = parts()["train"]
    pod = bare["spec"]["tasks"][0]["template"]["spec"]
    assert not {"tolerations", "imagePullSecrets"} & {*pod}
    assert pod["containers"][0]["resources"]["requests"] == {}


def test_limits_of_a_process_are_raised_as_far_as_they_go() -> None:
    (job,) = parts()["train"]
    setting = container(job)["command"][2].partition("export ")[0]
    lowered = f"ulimit -S -n 64; {setting}ulimit -S -n; ulimit -S -l; ulimit -H -n; ulimit -H -l"
    done = subprocess.run(["bash", "-c", lowered], capture_output=True, text=True, check=True)
    files, memory, most_files, most_memory = done.stdout.split()
    assert (files, memory) == (most_files, most_memory)


@pytest.mark.parametrize(
    ("definition", "sentence"),
    [
        ({"compile": {"enabled": True, "command": ["make", "graphs"]}}, "compile.command of the training job is"),
        ({"cache": {"directory": "/fsx/mine"}}, "cache.directory of the training job is '/fsx/mine'.*cacheset"),
        ({"cache": {"keep_days": 3}}, "cache.keep_days of the training job is 3"),
    ],
)
def test_what_torchx_has_no_place_for_is_refused(definition: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        completed(definition, QUEUED, "torchx")
    assert completed(definition, QUEUED, "kubernetes")
