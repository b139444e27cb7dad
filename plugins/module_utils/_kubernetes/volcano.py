# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A training as TorchX and Volcano run it. Pure.

What TorchX 0.7.0 makes of the component beside this file (app_to_resource and role_to_pod of its
kubernetes_scheduler.py): the same object, but for our labels and annotations, pods without a token of the API server,
its name, which TorchX ends with a random text and we with the digest of the definition, and what the site asks for of
which an AppDef knows nothing: huge pages, other limits, tolerations and pull secrets.
tests/unit/kubernetes/test_volcano.py holds it against the real TorchX.

Before it a plain Job puts the job's files on the shared storage, since an AppDef has no ConfigMap.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from string import Template
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan, pods
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.pods import Object
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.trainium_torchx import ROLE, appdef

TORCHX = "0.7.0"
RETRY = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}]
# What job.sh tells scripts; nothing stops a job of TorchX before its end.
_ENVIRONMENT = "environment.sh"


def options_of(job: Mapping[str, Any], site: Mapping[str, Any], compiling: bool) -> Object:
    """Arguments of the component for a resolved definition."""
    folder, checkpoint = job["folder"], job["checkpoint"]
    env = {
        "TRAINIUM_CHECKPOINT_STEPS": "0" if compiling else str(checkpoint["steps"]),
        "TRAINIUM_CHECKPOINT_KEEP": str(checkpoint["keep"]),
        "TRAINIUM_RESUME": "0" if compiling else str(int(checkpoint["resume"])),
    }
    argv = job["compile_argv"] if compiling else job["argv"]
    return {
        "image": job["image"],
        "script": f"{folder}/{job['script']}",
        # TorchX reads $ as the beginning of a macro.
        "script_args": shlex.join(argv).replace("$", "$$"),
        "name": names.slug(job["name"], names.LONGEST),
        "nnodes": job["count"],
        "nproc_per_node": job["processes_per_node"],
        "instance_type": site["instance_type"],
        "precompile": compiling,
        "cacheset": job["cacheset"],
        "bf16": False,
        "env": shlex.join(f"{name}={value}" for name, value in env.items()),
        "environment_file": f"{folder}/{_ENVIRONMENT}" if job["env"] else "",
        "claim": site["claim"],
        "data": site["shared"],
        # Volcano ends the job at the failure of that number (its state/restarting.go).
        "max_retries": int(site["retries"]) + 1 if job["requeue"] and int(site["retries"]) else 0,
        # Rank 0 is in the pod whose log is followed, which etcd would not see to.
        "rdzv_backend": "c10d",
        "rdzv_endpoint": "",
    }


def _pod(name: str, options: Mapping[str, Any], made: Object, site: Mapping[str, Any], labels: Object) -> Object:
    """As role_to_pod makes it."""
    spec: Object = {
        "containers": [
            {
                "command": [made["entrypoint"], *made["args"]],
                "env": [{"name": variable, "value": value} for variable, value in made["env"].items()],
                "image": options["image"],
                "name": name,
                "ports": [],
                "resources": {
                    "limits": {device: str(number) for device, number in made["devices"].items()},
                    "requests": {},
                },
                "securityContext": {},
                "volumeMounts": [
                    {"mountPath": "/dev/shm", "name": "dshm"},  # noqa: S108 - the pod's own
                    {"mountPath": options["data"], "name": "mount-0", "readOnly": False},
                ],
            }
        ],
        "nodeSelector": {pods.INSTANCE_TYPE: options["instance_type"]},
        "restartPolicy": "Never",
        # TorchX leaves it away, and root of the image would have the rights of the service account.
        "automountServiceAccountToken": False,
        "volumes": [
            {"emptyDir": {"medium": "Memory"}, "name": "dshm"},
            {"name": "mount-0", "persistentVolumeClaim": {"claimName": options["claim"]}},
        ],
    }
    if site.get("huge_pages") or site.get("resources"):
        spec["containers"][0]["resources"] = pods.resources(
            options["instance_type"], site.get("huge_pages") or "", site.get("resources") or {}
        )
    if site.get("tolerations"):
        spec["tolerations"] = list(site["tolerations"])
    if site.get("pull_secrets"):
        spec["imagePullSecrets"] = [{"name": name} for name in site["pull_secrets"]]
    if site.get("service_account"):
        spec["serviceAccountName"] = site["service_account"]
    return {"metadata": {"annotations": {"sidecar.istio.io/inject": "false"}, "labels": labels}, "spec": spec}


def volcano_job(app: str, options: Mapping[str, Any], site: Mapping[str, Any]) -> Object:
    """As app_to_resource makes it, for ``--scheduler_args queue=...,service_account=...,priority_class=...``."""
    whole, tasks = appdef(dict(options)), []
    for replica in range(options["nnodes"]):
        values = {"app_id": app, "replica_id": str(replica)}
        made = {
            **whole,
            "args": [Template(one).safe_substitute(values) for one in whole["args"]],
            "env": {name: Template(one).safe_substitute(values) for name, one in whole["env"].items()},
        }
        # Of its command line's session.
        made["env"]["TORCHX_JOB_ID"] = f"kubernetes://torchx/{app}"
        if not replica:
            made["env"]["TORCHX_RANK0_HOST"] = "localhost"
        labels = {
            "torchx.pytorch.org/version": TORCHX,
            "torchx.pytorch.org/app-name": options["name"],
            "torchx.pytorch.org/role-index": "0",
            "torchx.pytorch.org/role-name": ROLE,
            "torchx.pytorch.org/replica-id": str(replica),
            "app.kubernetes.io/name": options["name"],
            "app.kubernetes.io/managed-by": "torchx.pytorch.org",
            "app.kubernetes.io/instance": app,
        }
        name = f"{ROLE}-{replica}"
        retried = {"maxRetry": options["max_retries"], "policies": RETRY} if options["max_retries"] else {}
        tasks.append({"replicas": 1, "name": name, "template": _pod(name, options, made, site, labels), **retried})
    spec: Object = {
        "schedulerName": "volcano",
        "queue": site["queue"],
        "tasks": tasks,
        "maxRetry": options["max_retries"],
        "plugins": {"svc": ["--publish-not-ready-addresses"], "env": []},
    }
    if site.get("priority_class"):
        spec["priorityClassName"] = site["priority_class"]
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": app}, "spec": spec}


def parts(job: Mapping[str, Any], site: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, list[Object]]:
    """What is submitted at once: ``stage``, ``compile``, ``train`` and ``clean``, some of them empty.

    Nothing is compiled where the definition does not, and nothing to be cleaned up where it has no variables.

    ``job``, ``site`` and ``files`` as `plan.objects` takes them; ``site`` has ``queue`` as well.
    """
    app = job["app"]
    stage, compiling = f"{app}-s", f"{app}-c"
    owner = site.get("owner") or ""
    metadata = names.metadata(stage, names.labels(job["name"], stage, "stage"), job["name"], owner)
    text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in job["env"].items())
    configured, items = plan.config_map(metadata, files)
    secret = plan.secret(metadata, job["env"], {_ENVIRONMENT: text})
    volumes, mounts = pods.volumes(stage, items, site["claim"], site["shared"])
    container = pods.container(job["image"], ["bash", f"{pods.JOB}/pod.sh", "stage"], {}, mounts)
    staging = plan.pod_job(metadata, plan.pod_spec(container, volumes, site), 2)
    found: dict[str, list[Object]] = {"stage": [configured, secret, staging], "compile": []}
    for name, part in ((compiling, "compile"), (app, "train")):
        if part == "train" or job["compile"]["enabled"]:
            made = volcano_job(name, options_of(job, site, part == "compile"), site)
            labels = names.labels(job["name"], name, part, job["cacheset"])
            made["metadata"] = names.metadata(name, labels, job["name"], owner)
            found[part] = [made]
    found["clean"] = [plan.cleaning(staging)] if job["env"] else []
    return found
