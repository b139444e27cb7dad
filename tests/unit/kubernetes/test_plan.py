"""A training as objects of Kubernetes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.trainium.cluster.plugins.filter.manifests import kubernetes_manifests
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan, tensorboard

from tests.unit.kubernetes.definitions import SITE, completed


def objects(definition: dict[str, Any] | None = None, **site: Any) -> list[dict[str, Any]]:
    job = completed(definition, site)
    return plan.objects(job, {**SITE, **site}, {"pod.sh": b"#!/bin/bash\n", "a model.bin": b"\xff\x00"})


def jobs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if one["kind"] == "Job"]


def test_one_job_a_node_with_rank_and_name_known_beforehand() -> None:
    found = objects()
    app = found[0]["metadata"]["name"]
    assert [one["kind"] for one in found] == ["ConfigMap", "Secret", "Service", "Job", "Job"]
    assert [one["metadata"]["name"] for one in jobs(found)] == [f"{app}-0", f"{app}-1"]
    pod = jobs(found)[1]["spec"]["template"]["spec"]
    assert (pod["hostname"], pod["subdomain"]) == (f"{app}-1", app)
    assert {"name": "TRAINIUM_NODE_RANK", "value": "1"} in pod["containers"][0]["env"]
    service = found[2]["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    labels = jobs(found)[1]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()


@pytest.mark.parametrize(
    ("instance_type", "neuron", "efa"),
    [("trn1.32xlarge", "16", "8"), ("trn1n.32xlarge", "16", "16"), ("trn1.2xlarge", "1", None)],
)
def test_a_pod_has_all_devices_of_its_node(instance_type: str, neuron: str, efa: str | None) -> None:
    pod = jobs(objects(instance_type=instance_type))[0]["spec"]["template"]["spec"]
    limits, requests = (pod["containers"][0]["resources"][name] for name in ("limits", "requests"))
    assert (limits["aws.amazon.com/neuron"], limits.get("vpc.amazonaws.com/efa")) == (neuron, efa)
    assert limits.get("hugepages-2Mi") == ("5120Mi" if efa else None)
    # Kubernetes takes devices and huge pages only where both are the same, and pages beside cpu or memory only.
    assert limits.items() <= requests.items()
    assert {"cpu", "memory"} <= set(requests)
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": instance_type}


def test_resources_may_differ() -> None:
    pod = jobs(objects(resources={"vpc.amazonaws.com/efa": None, "hugepages-2Mi": None, "memory": "400Gi"}))[0]
    limits = pod["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"aws.amazon.com/neuron": "16", "memory": "400Gi"}


def test_shared_storage_memory_scripts_and_secret_are_mounted() -> None:
    found = objects({"env": {"HF_TOKEN": "hf_x"}})
    pod = jobs(found)[0]["spec"]["template"]["spec"]
    paths = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert (paths["shared"], paths["shm"]) == ("/fsx", "/dev/shm")  # noqa: S108
    by_name = {volume["name"]: volume for volume in pod["volumes"]}
    assert by_name["shared"]["persistentVolumeClaim"] == {"claimName": "fsx-claim"}
    assert by_name["shm"]["emptyDir"] == {"medium": "Memory"}
    configured = found[0]
    keys = {item["path"]: item["key"] for item in by_name["job"]["configMap"]["items"]}
    assert configured["data"][keys["pod.sh"]] == "#!/bin/bash\n"
    assert base64.b64decode(configured["binaryData"][keys["a model.bin"]]) == b"\xff\x00"
    assert json.loads(base64.b64decode(found[1]["data"]["environment.json"])) == {"HF_TOKEN": "hf_x"}
    assert "hf_x" not in json.dumps([found[0], *found[2:]])


def test_what_is_not_put_back_is_not_tried_again() -> None:
    assert jobs(objects())[0]["spec"]["backoffLimit"] == 3
    assert jobs(objects({"requeue": False}))[0]["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize(
    ("env", "instance_type", "processes"),
    [
        ({}, "trn1.32xlarge", 32),
        ({}, "trn2.48xlarge", 64),
        ({"NEURON_LOGICAL_NC_CONFIG": 1}, "trn2.48xlarge", 128),
    ],
)
def test_a_process_a_core_by_the_table(env: dict[str, Any], instance_type: str, processes: int) -> None:
    assert completed({"env": env}, {"instance_type": instance_type})["processes_per_node"] == processes


def test_each_cacheset_has_its_own_folder() -> None:
    assert completed()["cache"]["directory"] == "/fsx/trainium/neuron_cache/bert"
    assert completed(site={"cacheset": "A_1"})["cache"]["directory"] == "/fsx/trainium/neuron_cache/A_1"
    assert completed({"cache": {"directory": "/fsx/own"}})["cache"]["directory"] == "/fsx/own"


@pytest.mark.parametrize(
    ("definition", "site", "sentence"),
    [
        ({"image": ""}, {}, "name the container image"),
        ({"image": "a b"}, {}, "name the container image"),
        ({}, {"claim": ""}, "training_job_claim"),
        ({}, {"shared": ""}, "trainium_shared_dir"),
        ({}, {"shared": "/data"}, "use a folder in /data"),
        ({}, {"instance_type": "p5.48xlarge"}, "no Neuron devices are known"),
        *(({}, {"cacheset": text}, "training_job_cacheset") for text in ("a/b", "bert_", "-a", 64 * "a")),
        ({"min_nodes": 1}, {}, "min_nodes"),
        *(
            (
                {"fetch": [{"url": url, "checksum": f"sha256:{'0' * 64}", "dest": "a"}]},
                {},
                "fetch.url of the training job has",
            )
            for url in (
                "https://u:s3cret@a.example/a",
                "https://a.example/a?token=s3cret",
                "https://a.example/a?X-Amz-Signature=s3",
            )
        ),
        ({}, {"dataset": {"source": "s3://b/c"}}, "is not fetched on Kubernetes; put the data on the claim"),
    ],
)
def test_what_cannot_run_is_refused(definition: dict[str, Any], site: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        completed(definition, site)


def test_files_that_kubernetes_would_not_take_are_refused() -> None:
    with pytest.raises(ValueError, match="Kubernetes takes 1000000"):
        plan.objects(completed(), SITE, {"a": b"x" * 1_000_001})


@pytest.mark.parametrize("name", ["bert", "B.e_r-t", "9" * 64, "-_."])
def test_names_are_dns_labels_with_room_for_volcano(name: str) -> None:
    app = names.app_name(name, "0123456789ab")
    assert len(f"{app}-role1-0123-0") <= 63
    assert app == names.slug(app, 63)
    assert app[0].isalpha()


def device_plugins() -> list[dict[str, Any]]:
    """As the role eks_addons renders them."""
    role = Path(__file__).parents[3] / "roles/eks_addons"
    defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
    known: dict[str, Any] = {"eks_addons_namespace": "trainium", "__eks_addons_efa": True}
    known["__eks_addons_types"] = ["trn1.2xlarge", "trn1.32xlarge"]
    known["__eks_addons_efa_types"] = ["trn1.32xlarge"]
    known["__eks_addons_tolerations"] = [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]
    known["__eks_addons_pod_security"] = defaults["eks_addons_pod_security"]
    templar = Templar(loader=DataLoader(), variables={**defaults, **known})
    text = templar.template(trust_as_template((role / "templates/plugins.yaml.j2").read_text()))
    return kubernetes_manifests(str(text), {"public.ecr.aws/": "mirror.example/"})


def test_the_device_plugins_come_from_the_mirror_and_run_on_trainium_nodes() -> None:
    neuron, efa = (one["spec"]["template"]["spec"] for one in device_plugins() if one["kind"] == "DaemonSet")
    assert neuron["containers"][0]["image"].startswith("mirror.example/neuron/neuron-device-plugin:")
    # As root, or it ends in CreateContainerConfigError.
    assert efa["containers"][0]["securityContext"]["runAsUser"] == 0
    for pod in (neuron, efa):
        terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        types = ["trn1.2xlarge", "trn1.32xlarge"] if pod is neuron else ["trn1.32xlarge"]
        assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == types
        # Of the groups' taints, beside those of the devices' names.
        assert {"key": "team", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]


def test_the_objects_are_valid_by_current_schemas(validator: Path) -> None:
    """kubernetes-validate knows no client; it is installed in an environment of its own."""
    program = (
        "import json, sys, kubernetes_validate as kv\n"
        "for one in json.load(sys.stdin):\n"
        "    kv.validate(one, kv.latest_version(), strict=True)\n"
        "print(kv.latest_version())"
    )
    board = tensorboard.deployment(completed({"tensorboard": "/fsx/events"}), SITE)
    done = subprocess.run(
        [str(validator), "-c", program],
        input=json.dumps([*objects({"env": {"A": 1}}), *device_plugins(), board]),
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.partition(".")[2]) >= 34
