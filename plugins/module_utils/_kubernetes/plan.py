# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A training as objects of Kubernetes: one plain Job a node. Pure; no field that Kubernetes 1.20 lacks.

Needs nothing but Kubernetes, the device plugins and a claim that all nodes can mount. Rank and name of each pod are
known beforehand: Job ``<app>-<rank>`` has a pod with the host name ``<app>-<rank>`` in the headless service ``<app>``.
The pods run ``pod.sh``, which stages the job's files, compiles and trains, and starts the training anew on all nodes
when one of them has got another pod (see that script).

A Job makes a new pod for one that has failed, ``retries`` times; one that was deleted with its node counts as well
(Kubernetes' documentation, "Handling retriable and non-retriable pod failures with Pod failure policy").
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, pods
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.pods import Object
from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import shown
from ansible_collections.trainium.cluster.plugins.module_utils._training.definition import DEFAULTS

# Of what etcd takes: an object of Kubernetes has at most 1 MiB, and some of it is our own.
MOST_BYTES = 1_000_000
# What run.py fills in, a new one at each submission: pods know by it which signs of others on the storage count.
SUBMISSION = "submission"
# As TorchX's sample takes it, and a label: that begins and ends with a letter or a digit.
_CACHESET = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
# What lies in the ConfigMap and in scripts on the shared storage, where others read it; in a path it cannot be told.
_PASSWORD = re.compile(
    r"//[^/?#]*@|[?&][a-z_-]*(token|key|password|secret|signature|credential)[a-z_-]*=", re.IGNORECASE
)


def completed(job: Mapping[str, Any], site: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved definition with what is the same in all pods; see `objects` for ``site``. Raises ValueError.

    ``site`` has ``launcher`` as well.
    """
    shared, directory = str(site["shared"] or "").rstrip("/"), str(site["directory"])
    pods.checked_image(job.get("image"), to_come=True)
    pods.hardware_of(site["instance_type"])
    if not shared or not site["claim"]:
        raise ValueError(
            "Launchers kubernetes and torchx need storage that all pods share; set trainium_shared_dir to where they "
            "shall see it, and training_job_claim to the claim."
        )
    if directory != shared and not directory.startswith(f"{shared}/"):
        raise ValueError(f"training_job_directory is '{directory}'; use a folder in {shared}, which all pods share.")
    for one in job["fetch"]:
        if _PASSWORD.search(one["url"]):
            raise ValueError(
                f"fetch.url of the training job has a name, password or token in the address of {shown(one['dest'])}, "
                "which others could read in the cluster; put the file into the image or onto the claim."
            )
    if site.get("dataset"):
        raise ValueError(
            "trainium_dataset (or that of the preset) is not fetched on Kubernetes; put the data on the claim, leave "
            "trainium_dataset away and set the argument of the script that names them, such as data_dir in args."
        )
    if job["min_nodes"] not in (0, "0") and job["least"] != job["count"]:
        raise ValueError(
            "min_nodes of the training job is for Slurm; with Kubernetes a job has all its nodes, so set it to 0."
        )
    if site.get("tensorboard"):
        _refuse_without_events(str(job["tensorboard"]), shared)
    if site.get("launcher") == "torchx":
        _refuse_of_torchx(job)
    cacheset = site.get("cacheset") or names.slug(job["name"], names.LONGEST)
    if not isinstance(cacheset, str) or not _CACHESET.fullmatch(cacheset):
        raise ValueError(
            f"training_job_cacheset is {shown(cacheset)}; use at most 63 letters, digits, hyphens and underscores, "
            "with a letter or a digit at both ends."
        )
    cache = dict(job["cache"])
    if cache["directory"] == DEFAULTS["cache"]["directory"]:
        # A pod's own folders end with it.
        cache["directory"] = f"{directory}/neuron_cache/{cacheset}"
    return {
        **job,
        "cache": cache,
        "cacheset": cacheset,
        "app": names.app_name(job["name"], job["digest"]),
        "processes_per_node": pods.processes_of(job, site["instance_type"]),
        # Neither is possible from within a pod, whose network is its own.
        "driver_reload": False,
        "reserved_port": 0,
    }


def _refuse_without_events(events: str, shared: str) -> None:
    """A training of which TensorBoard would see nothing. Raises ValueError."""
    if not events.startswith(f"{shared}/"):
        raise ValueError(
            f"training_job_tensorboard is true, and tensorboard of the training job is {shown(events)}; name there the "
            f"folder in {shared} below which the script writes its events, or leave training_job_tensorboard out."
        )


def _refuse_of_torchx(job: Mapping[str, Any]) -> None:
    """What the component has no place for. Raises ValueError."""
    command, cache = job["compile"]["command"], job["cache"]
    if job["compile"]["enabled"] and command != DEFAULTS["compile"]["command"]:
        raise ValueError(
            f"compile.command of the training job is {shown(command)}, and launcher torchx compiles by "
            "neuron_parallel_compile only; leave it out, or set training_job_launcher to kubernetes."
        )
    if cache["directory"] != DEFAULTS["cache"]["directory"]:
        raise ValueError(
            f"cache.directory of the training job is {shown(cache['directory'])}, and launcher torchx keeps its cache "
            "in neuron_cache/<cacheset> of trainium_shared_dir; set training_job_cacheset in its place, or "
            "training_job_launcher to kubernetes."
        )
    if cache["keep_days"] != DEFAULTS["cache"]["keep_days"]:
        raise ValueError(
            f"cache.keep_days of the training job is {cache['keep_days']}, and launcher torchx deletes nothing of "
            "its cache; leave it out, or set training_job_launcher to kubernetes."
        )


def config_map(metadata: Object, files: Mapping[str, bytes]) -> tuple[Object, list[Object]]:
    """A ConfigMap with files, and under which key each is; names of files may be none of its keys."""
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise ValueError(
            f"files of the training job have {size} bytes, and Kubernetes takes {MOST_BYTES}; put the large ones into "
            "the image or let them be fetched."
        )
    text: dict[str, str] = {SUBMISSION: ""}
    binary: dict[str, str] = {}
    items = [{"key": SUBMISSION, "path": f".{SUBMISSION}"}]
    for at, (name, content) in enumerate(files.items()):
        key = f"file{at}"
        items.append({"key": key, "path": name})
        try:
            text[key] = content.decode("utf-8")
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(content).decode("ascii")
    data = {"data": text, **({"binaryData": binary} if binary else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **data}, items


def secret(metadata: Object, env: Mapping[str, str], more: Mapping[str, str] | None = None) -> Object:
    """The definition's variables, which job.sh reads from a file; ``more`` files beside it."""
    texts = {"environment.json": json.dumps(env, sort_keys=True), **(more or {})}
    data = {name: base64.b64encode(text.encode()).decode("ascii") for name, text in texts.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def without_values(objects: Sequence[Object]) -> tuple[list[Object], dict[str, str]]:
    """Objects without what is in their Secret, and that: as a parameter of its own it can be kept out of all logs."""
    values: dict[str, str] = next((one["data"] for one in objects if one["kind"] == "Secret"), {})
    return [{**one, "data": {}} if one["kind"] == "Secret" else one for one in objects], values


def service(metadata: Object, selector: Mapping[str, str]) -> Object:
    """Names for the pods, also for those that are not ready: they wait for each other to become so."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def pod_job(metadata: Object, spec: Object, retries: int) -> Object:
    """A plain Job with one pod."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": retries,
            "completions": 1,
            "parallelism": 1,
            "template": {"metadata": {"labels": dict(metadata["labels"])}, "spec": spec},
        },
    }


def cleaning(staging: Object) -> Object:
    """A Job that takes the values of variables off the shared storage, from the one that has put them there."""
    spec = staging["spec"]["template"]["spec"]
    containers = [{**spec["containers"][0], "command": ["bash", f"{pods.JOB}/pod.sh", "clean"]}]
    known = staging["metadata"]
    name = f"{known['name'].removesuffix('-s')}-e"
    labels = {**known["labels"], names.APP: name, names.PART: "clean"}
    metadata = {"name": name, "labels": labels, "annotations": known.get("annotations") or {}}
    return pod_job(metadata, {**spec, "containers": containers}, 2)


def pod_spec(container: Object, volumes: list[Object], site: Mapping[str, Any]) -> Object:
    spec: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # A variable for each service of the namespace would be in the job's environment.
        "enableServiceLinks": False,
        "tolerations": pods.tolerations(list(site.get("tolerations") or [])),
        "containers": [container],
        "volumes": volumes,
    }
    if site.get("service_account"):
        spec["serviceAccountName"] = site["service_account"]
    if site.get("pull_secrets"):
        spec["imagePullSecrets"] = [{"name": name} for name in site["pull_secrets"]]
    if site.get("priority_class"):
        spec["priorityClassName"] = site["priority_class"]
    return spec


def beside_spec(container: Object, volumes: list[Object], site: Mapping[str, Any]) -> Object:
    """Of a pod that is beside trainings, and mounts their claim: on nodes of their type, as others have no client of
    Lustre, and without their service account, which may have rights in AWS."""
    spec = pod_spec(container, volumes, {**site, "service_account": "", "priority_class": ""})
    return {**spec, "nodeSelector": {pods.INSTANCE_TYPE: site["instance_type"]}}


def objects(job: Mapping[str, Any], site: Mapping[str, Any], files: Mapping[str, bytes]) -> list[Object]:
    """ConfigMap, Secret, Service and a Job a node, in the order in which they are made.

    ``job`` is what `completed` gives; ``files`` the content of its scripts and files by name. ``site``: ``directory``,
    ``shared`` (where pods see the shared storage), ``claim``, ``instance_type``, ``huge_pages`` ('' for none),
    ``resources``, ``tolerations``, ``retries``, and where wanted ``service_account``, ``pull_secrets``,
    ``priority_class`` and ``owner``; and ``dataset``, which is to be empty.
    """
    app = job["app"]
    labels = names.labels(job["name"], app, "train", job["cacheset"])
    name, owner = job["name"], site.get("owner") or ""
    metadata = names.metadata(app, labels, name, owner)
    configured, items = config_map(metadata, files)
    found = [configured, secret(metadata, job["env"]), service(metadata, {names.APP: app, names.PART: "train"})]
    for rank in range(job["count"]):
        volumes, mounts = pods.volumes(app, items, site["claim"], site["shared"])
        command = ["bash", f"{pods.JOB}/pod.sh", "node"]
        container = pods.container(job["image"], command, {"TRAINIUM_NODE_RANK": str(rank)}, mounts)
        container["resources"] = pods.resources(
            site["instance_type"], site.get("huge_pages") or "", site.get("resources") or {}
        )
        spec = pod_spec(container, volumes, site)
        spec.update(
            hostname=f"{app}-{rank}",
            subdomain=app,
            nodeSelector={pods.INSTANCE_TYPE: site["instance_type"]},
        )
        retries = int(site["retries"]) if job["requeue"] else 0
        own = names.metadata(f"{app}-{rank}", {**labels, names.RANK: str(rank)}, name, owner)
        found.append(pod_job(own, spec, retries))
    return found
