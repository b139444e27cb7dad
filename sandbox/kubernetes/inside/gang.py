"""What Volcano's controller decides of a Job: its Pods, whether they fit at once, and its next phase. Pure.

After volcano-sh/volcano v1.15: pkg/controllers/job (states, plugins env and svc, names and labels of Pods), and
the API in staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

Object = dict[str, Any]
GROUP, VERSION = "batch.volcano.sh", "v1alpha1"
ENDED = frozenset({"Completed", "Failed", "Aborted", "Terminated"})
_FACTORS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def quantity(text: str | int | float) -> float:
    """A quantity of Kubernetes as a number."""
    word = str(text)
    ending = next((ending for ending in sorted(_FACTORS, key=len, reverse=True) if word.endswith(ending)), "")
    return float(word.removesuffix(ending)) * _FACTORS.get(ending, 1)


def requests(spec: Object) -> dict[str, float]:
    """What a Pod takes of a node."""
    total: dict[str, float] = {"pods": 1}
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for name, value in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            total[name] = total.get(name, 0) + quantity(value)
    return total


def free(nodes: list[Object], pods: list[Object]) -> list[tuple[dict[str, float], dict[str, str]]]:
    """What each node that takes Pods has left, with its labels."""
    left: dict[str, tuple[dict[str, float], dict[str, str]]] = {}
    for node in nodes:
        conditions = {one["type"]: one["status"] for one in node["status"].get("conditions") or []}
        if conditions.get("Ready") == "True" and not node["spec"].get("unschedulable"):
            have = {name: quantity(value) for name, value in node["status"]["allocatable"].items()}
            left[node["metadata"]["name"]] = have, node["metadata"].get("labels") or {}
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if name in left and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for resource, value in requests(pod["spec"]).items():
                left[name][0][resource] = left[name][0].get(resource, 0) - value
    return list(left.values())


def fit(specs: list[Object], left: list[tuple[dict[str, float], dict[str, str]]]) -> bool:
    """Whether all the Pods find a place at once, each at the first node that has one."""
    for spec in specs:
        need, selector = requests(spec), (spec.get("nodeSelector") or {}).items()
        for have, labels in left:
            if selector <= labels.items() and all(have.get(name, 0) >= value for name, value in need.items()):
                for name, value in need.items():
                    have[name] -= value
                break
        else:
            return False
    return True


def replicas(job: Object) -> int:
    return sum(task.get("replicas", 1) for task in job["spec"]["tasks"])


def minimum(job: Object) -> int:
    """How many Pods must be there at once; Volcano's webhook fills in all of them."""
    return job["spec"].get("minAvailable") or replicas(job)


def hosts(job: Object) -> dict[str, list[str]]:
    """Task -> the names of its Pods under the Job's service (plugin svc)."""
    name = job["metadata"]["name"]
    return {
        task["name"]: [f"{name}-{task['name']}-{index}.{name}" for index in range(task.get("replicas", 1))]
        for task in job["spec"]["tasks"]
    }


def owner(job: Object) -> list[Object]:
    named = {key: job["metadata"][key] for key in ("name", "uid")}
    more = {"controller": True, "blockOwnerDeletion": True}
    return [{"apiVersion": f"{GROUP}/{VERSION}", "kind": "Job", **named, **more}]


def service(job: Object) -> tuple[Object, Object]:
    """The headless service of a Job and the ConfigMap with its hosts (plugin svc)."""
    name = job["metadata"]["name"]
    labels = {"volcano.sh/job-name": name, "volcano.sh/job-namespace": job["metadata"]["namespace"]}
    arguments = job["spec"]["plugins"].get("svc") or []
    spec = {
        "clusterIP": "None",
        "selector": labels,
        "publishNotReadyAddresses": any(word.startswith("--publish-not-ready-addresses") for word in arguments),
    }
    data = {f"{task}.host": "\n".join(names) for task, names in hosts(job).items()}
    metadata = {"ownerReferences": owner(job)}
    return (
        {"metadata": {**metadata, "name": name}, "spec": spec},
        {"metadata": {**metadata, "name": f"{name}-svc"}, "data": data},
    )


def pods(job: Object) -> list[Object]:
    """All Pods of a Job, in the order of its tasks."""
    return [_pod(job, task, index) for task in job["spec"]["tasks"] for index in range(task.get("replicas", 1))]


def _pod(job: Object, task: Object, index: int) -> Object:
    metadata, spec = job["metadata"], copy.deepcopy(task["template"]["spec"])
    plugins = job["spec"].get("plugins") or {}
    name = f"{metadata['name']}-{task['name']}-{index}"
    template = task["template"].get("metadata") or {}
    labels = {
        "volcano.sh/job-name": metadata["name"],
        "volcano.sh/job-namespace": metadata["namespace"],
        "volcano.sh/queue-name": job["spec"].get("queue", "default"),
        "volcano.sh/task-spec": task["name"],
        "volcano.sh/task-index": str(index),
    }
    annotations = {"scheduling.k8s.io/group-name": metadata["name"], "volcano.sh/job-version": str(retries(job))}
    spec["schedulerName"] = job["spec"].get("schedulerName", "volcano")
    spec.setdefault("restartPolicy", "OnFailure")
    environment: list[Object] = []
    if "env" in plugins:
        environment += [{"name": variable, "value": str(index)} for variable in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    if "svc" in plugins:
        volume = f"{metadata['name']}-svc"
        spec.update(hostname=name, subdomain=metadata["name"])
        spec["volumes"] = [*(spec.get("volumes") or []), {"name": volume, "configMap": {"name": volume}}]
        for other, names in hosts(job).items():
            word = other.upper().replace("-", "_")
            environment.append({"name": f"VC_{word}_HOSTS", "value": ",".join(names)})
            environment.append({"name": f"VC_{word}_NUM", "value": str(len(names))})
    for container in (*spec["containers"], *(spec.get("initContainers") or [])):
        container["env"] = [*(container.get("env") or []), *environment]
        if "svc" in plugins:
            mount = {"name": f"{metadata['name']}-svc", "mountPath": "/etc/volcano"}
            container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
    return {
        "metadata": {
            **template,
            "name": name,
            "ownerReferences": owner(job),
            "labels": {**(template.get("labels") or {}), **labels},
            "annotations": {**(template.get("annotations") or {}), **annotations},
        },
        "spec": spec,
    }


def retries(job: Object) -> int:
    return int((job.get("status") or {}).get("retryCount", 0))


def phase(job: Object) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "Pending")


def action(job: Object, event: str, task: str) -> str | None:
    """What a policy of the task, else of the Job, does at an event."""
    own: Object = next((one for one in job["spec"]["tasks"] if one["name"] == task), {})
    for policy in (*(own.get("policies") or []), *(job["spec"].get("policies") or [])):
        if {event, "*"} & {policy.get("event"), *(policy.get("events") or [])}:
            return str(policy["action"])
    return None


def count(found: list[Object]) -> dict[str, int]:
    """Pods by their phase."""
    return {
        name: sum(pod["status"].get("phase") == name for pod in found)
        for name in ("Pending", "Running", "Succeeded", "Failed")
    }


class Step(NamedTuple):
    """The next phase of a Job whose Pods are there, and whether those that are not over are deleted."""

    phase: str
    message: str = ""
    retries: int = 0
    delete: bool = False


def step(job: Object, live: list[Object]) -> Step:
    """What follows from the Pods of a Job; ``live`` are those that nobody has deleted."""
    now, tries, total = phase(job), retries(job), replicas(job)
    done = count(live)
    found = _event(job, live, now)
    if found and done["Succeeded"] < total:
        what, message = found
        if what == "RestartJob" and tries + 1 < job["spec"].get("maxRetry", 3):
            return Step("Restarting", message, tries + 1, delete=True)
        if what == "RestartJob":
            # The failure counts before it is looked at (pkg/controllers/job/state, running.go and restarting.go).
            return Step("Failed", f"{message}, and maxRetry is reached", tries + 1, delete=True)
        ends = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}
        if what in ends:
            return Step(ends[what], message, tries, delete=True)
    if done["Succeeded"] + done["Failed"] == total:
        enough = done["Succeeded"] >= job["spec"].get("minSuccess", minimum(job))
        return Step("Completed" if enough else "Failed", "", tries)
    if done["Running"] + done["Succeeded"] >= minimum(job):
        return Step("Running", "", tries)
    return Step(now if now != "Restarting" else "Pending", "", tries)


def _event(job: Object, live: list[Object], now: str) -> tuple[str, str] | None:
    """The first thing that happened for which there is a policy: what to do, and a sentence."""
    events = {"Failed": "PodFailed", "Succeeded": "TaskCompleted"}
    for pod in live:
        event = events.get(pod["status"].get("phase", ""))
        what = action(job, event, pod["metadata"]["labels"]["volcano.sh/task-spec"]) if event else None
        if event and what:
            return what, f"{event} {pod['metadata']['name']}"
    for task in job["spec"]["tasks"] if now == "Running" else ():
        there = sum(pod["metadata"]["labels"]["volcano.sh/task-spec"] == task["name"] for pod in live)
        what = action(job, "PodEvicted", task["name"]) if there < task.get("replicas", 1) else None
        if what:
            return what, "PodEvicted"
    return None
