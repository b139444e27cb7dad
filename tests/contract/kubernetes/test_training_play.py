"""Role training_job with the launcher kubernetes, as a user runs it; a thread does what Kubernetes would."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.contract.kubernetes.api import Cluster
from tests.contract.kubernetes.test_kubernetes_job import LOG, RUNNING, pending
from tests.contract.warm_python import warm_ansible, warm_python

REPOSITORY = Path(__file__).resolve().parents[3]
PLAY = [
    {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.include_role": {"name": "trainium.cluster.{{ role }}", "tasks_from": "{{ file }}"}}
        ],
    }
]
TRAINING = {
    "preset": "none",
    "name": "Own",
    "script": "a.py",
    "files": ["a.py"],
    "image": "registry.example/own:1",
    "steps": 14,
    "env": {"HF_TOKEN": "hf_secret_value"},
}


class Controllers(threading.Thread):
    """Every Job gets a pod that runs, and ends when its log was asked for some times; so do Volcano's."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self.cluster = cluster
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(0.05):
            for name in self.cluster.named("jobs"):
                job = self.cluster.job(name)
                pod = f"{name}-role1-0-0" if "tasks" in job["spec"] else f"{name}-a"
                asked = sum(path.endswith(f"{pod}/log") for _verb, path in list(self.cluster.calls))
                if pod not in self.cluster.named("pods"):
                    if "tasks" in job["spec"]:
                        # TorchX says nothing of nodes and processes.
                        self.cluster.logs[pod] = LOG
                        self.cluster.logs[pod.replace("role1-0", "role1-1")] = "of rank 1\n"
                        self.cluster.volcano(name, "Running", RUNNING)
                    else:
                        self.cluster.logs[pod] = f"JOB nodes=2 processes=64\n{LOG}"
                        self.cluster.pod(name, RUNNING, f"node-{name[-1]}")
                elif "tasks" in job["spec"] and asked > 2:
                    self.cluster.volcano(name, "Completed", {"phase": "Succeeded"})
                elif "tasks" not in job["spec"] and (asked > 2 or not name.endswith("-0")):
                    self.cluster.finish(name)


def play(cluster: Cluster, folder: Path, file: str = "main", *arguments: str, **variables: Any) -> str:
    (folder / "play.json").write_text(json.dumps(PLAY))
    (folder / "a.py").write_text("")
    known = {
        "ansible_python_interpreter": warm_python("kubernetes.config"),
        "ansible_playbook_python": warm_python("kubernetes.config"),
        "file": file,
        "role": "training_job",
        "trainium_region": "us-west-2",
        "trainium_kubeconfig": str(cluster.kubeconfig),
        "trainium_training": TRAINING,
        "trainium_node_count": 2,
        "trainium_instance_type": "trn1.32xlarge",
        "trainium_shared_dir": "/fsx",
        "trainium_ssh_user": "ubuntu",
        "trainium_report_dir": str(folder / "reports"),
        "training_job_launcher": "kubernetes",
        **variables,
    }
    command = [str(warm_ansible() / "ansible-playbook"), "-i", "localhost,", "--diff"]
    command += [str(known.pop("playbook", folder / "play.json")), "-e", json.dumps(known), *arguments]
    nobody = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none") | {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9"
    }
    environment = {**os.environ, **nobody, "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False, timeout=600
    )
    return done.stdout + done.stderr


def test_a_training_is_submitted_followed_reported_and_not_run_twice(cluster: Cluster, tmp_path: Path) -> None:
    controllers = Controllers(cluster)
    controllers.start()
    said = play(cluster, tmp_path)
    controllers.stopped.set()
    controllers.join()
    assert "failed=0" in said, said
    assert "step 14 of 14, loss 7.60" in said
    report = json.loads((tmp_path / "reports/report.json").read_text())
    assert (report["name"], report["nodes"], report["processes"], report["final_loss"]) == ("own", 2, 64, 7.6)
    assert (tmp_path / "reports/own.log").read_text().endswith(LOG)
    assert len(list((tmp_path / "reports/logs").glob("own-*/rank-1.log"))) == 1
    cluster.calls.clear()
    again = play(cluster, tmp_path)
    assert ("changed=0" in again, cluster.writes()) == (True, []), again
    assert "hf_secret_value" not in said + again
    ended = play(cluster, tmp_path, training_job_state="absent")
    assert ("failed=0" in ended, cluster.named("jobs")) == (True, []), ended


class ImageIsGone(Controllers):
    """The pod of rank 1 is a new one, and its node finds no image."""

    def run(self) -> None:
        while not self.stopped.wait(0.05) and len(self.cluster.named("jobs")) < 2:
            pass
        first, second = self.cluster.named("jobs")
        self.cluster.pod(first, RUNNING, "node-0")
        self.cluster.pod(second, pending("ErrImagePull", "own:1: not found"), "node-1", age=1)


def test_a_training_that_runs_is_left_where_one_node_finds_no_image(cluster: Cluster, tmp_path: Path) -> None:
    controllers = ImageIsGone(cluster)
    controllers.start()
    said = " ".join(play(cluster, tmp_path).split())
    controllers.stopped.set()
    controllers.join()
    assert "cannot go on (" in said and "own:1: not found" in said, said
    assert "Nothing of it was ended" in said and "training_job_state=absent" in said, said
    assert len(cluster.named("jobs")) == 2


def test_what_a_preset_needs_of_nodes_is_the_business_of_the_image(cluster: Cluster, tmp_path: Path) -> None:
    amazon = {"distribution": "Amazon", "distribution_version": "2023"}
    said = play(cluster, tmp_path, "validate", trainium_training={"image": "a:1"}, trainium_image_system=amazon)
    assert "failed=0" in said, said
    foreseen = play(cluster, tmp_path, "main", "--check", trainium_kubeconfig=str(tmp_path / "none"))
    assert ("failed=0" in foreseen, cluster.calls) == (True, []), foreseen
    said = play(cluster, tmp_path, "validate", trainium_training={}, trainium_image_system=amazon)
    assert "name the container image to train in" in " ".join(said.split()), said


def test_torchx_stages_compiles_and_trains(cluster: Cluster, tmp_path: Path) -> None:
    controllers = Controllers(cluster)
    controllers.start()
    training = {
        **TRAINING,
        "compile": {"enabled": True, "success": "", "steps_argument": ""},
        "tensorboard": "/fsx/out",
    }
    shown: dict[str, Any] = {"training_job_launcher": "torchx", "training_job_tensorboard": True}
    said = play(cluster, tmp_path, trainium_training=training, **shown)
    controllers.stopped.set()
    controllers.join()
    assert "failed=0" in said, said
    assert cluster.named("deployments") == ["own-tensorboard"]
    assert "--namespace trainium port-forward deployment/own-tensorboard 6006" in " ".join(said.split())
    made = [path for verb, path in cluster.writes() if path.endswith("/jobs")]
    assert [path.split("/")[2] for path in made] == ["batch", "batch.volcano.sh", "batch.volcano.sh", "batch"]
    assert (
        made
        and cluster.job(cluster.named("jobs")[2])["spec"]["template"]["spec"]["containers"][0]["command"][-1] == "clean"
    )
    assert json.loads((tmp_path / "reports/report.json").read_text())["processes"] == 64
    assert "hf_secret_value" not in said
    (tmp_path / "reports/report.json").unlink()
    asked = play(cluster, tmp_path, playbook="playbooks/report.yml", trainium_backend="eks", trainium_cluster_name="a")
    report = json.loads((tmp_path / "reports/report.json").read_text())
    assert (report["launcher"], report["nodes"], report["processes"]) == ("torchx", 2, 64), asked
    assert report["final_loss"] == 7.6
    # Without a call of AWS, for which there are no credentials.
    status = play(cluster, tmp_path, playbook="playbooks/status.yml", trainium_backend="eks", trainium_lease=False)
    cluster.event("Pod", "own-0", "Failed", 'Failed to pull image "registry.example/own:1": not found')
    found = play(cluster, tmp_path, "main", role="diagnose", trainium_backend="eks", trainium_cluster_name="a")
    assert "image cannot be pulled (events of Kubernetes)" in found, found
    # One line, of the training: the others have ended.
    assert (status.count("COMPLETED"), "failed=0" in status) == (1, True), status
