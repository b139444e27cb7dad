"""A stand-in for Volcano's controller manager, in a Pod: Jobs become Pods when as many as they need fit at once.

Plugins env and svc, policies, maxRetry, PodGroups, Queues that are open or closed. Kubernetes' own scheduler places the
Pods. No ssh plugin, no priorities, no capability of queues.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from sandbox.kubernetes.inside import gang
from sandbox.kubernetes.inside.api import Api, ApiError
from sandbox.kubernetes.inside.gang import Object

JOBS = f"/apis/{gang.GROUP}/{gang.VERSION}"
SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# (group, version, plural, kind, short names, scope, column)
KINDS: tuple[tuple[str, str, str, str, list[str], str, str], ...] = (
    ("batch.volcano.sh", "v1alpha1", "jobs", "Job", ["vcjob", "vj"], "Namespaced", ".status.state.phase"),
    ("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", ["pg"], "Namespaced", ".status.phase"),
    ("scheduling.volcano.sh", "v1beta1", "queues", "Queue", ["q"], "Cluster", ".status.state"),
    ("bus.volcano.sh", "v1alpha1", "commands", "Command", [], "Namespaced", ".action"),
)


def definition(group: str, version: str, plural: str, kind: str, short: list[str], scope: str, column: str) -> Object:
    """A CustomResourceDefinition that takes everything; a chart's own stays where it is there already."""
    fields: Object = {"spec": LOOSE, "status": LOOSE}
    if kind == "Command":
        fields = {name: {"type": "string"} for name in ("action", "reason", "message")} | {"target": LOOSE}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": short},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
                    "additionalPrinterColumns": [{"name": "Status", "type": "string", "jsonPath": column}],
                }
            ],
        },
    }


def queue(name: str) -> Object:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return {**kind, "metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": True}}


class Controller:
    """One look after the other."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def install(self) -> None:
        """The definitions and the queue that every Volcano has."""
        for kind in KINDS:
            self.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(*kind))
        while True:
            try:
                self.api.create(f"{SCHEDULING}/queues", queue("default"))
                return
            except ApiError:
                # The definition is not served yet.
                time.sleep(0.2)

    def sync(self) -> None:
        """Look at every Job and queue once."""
        queues = {one["metadata"]["name"]: one for one in self.api.items(f"{SCHEDULING}/queues")}
        for name, found in queues.items():
            if not (found.get("status") or {}).get("state"):
                self.api.patch(f"{SCHEDULING}/queues/{name}/status", {"status": {"state": "Open"}})
        jobs = self.api.items(f"{JOBS}/jobs")
        every = self.api.items("/api/v1/pods") if jobs else []
        for job in jobs:
            self.sync_job(job, every, queues)

    def sync_job(self, job: Object, every: list[Object], queues: dict[str, Object]) -> None:
        metadata = job["metadata"]
        if gang.phase(job) in gang.ENDED or metadata.get("deletionTimestamp"):
            return
        mine = [pod for pod in every if _is_of(pod, metadata)]
        live = [pod for pod in mine if not pod["metadata"].get("deletionTimestamp")]
        if live:
            step = gang.step(job, live)
            for pod in live if step.delete else []:
                if step.phase == "Restarting" or pod["status"].get("phase") in ("Pending", "Running"):
                    self.api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{pod['metadata']['name']}")
            self.put_group(job, "Running" if step.phase == "Running" else "Inqueue")
        elif mine:
            return  # the old ones are still going
        else:
            step = self.begin(job, every, queues)
        self.put_status(job, step, live)

    def begin(self, job: Object, every: list[Object], queues: dict[str, Object]) -> gang.Step:
        """Make the Pods, if there is room for them."""
        namespace, wanted = job["metadata"]["namespace"], gang.pods(job)
        name = job["spec"].get("queue", "default")
        tries = gang.retries(job)
        if name not in queues or (queues[name].get("status") or {}).get("state") not in ("Open", None):
            return gang.Step("Pending", f"the queue {name} is not open", tries)
        specs = [pod["spec"] for pod in wanted[: gang.minimum(job)]]
        if not gang.fit(specs, gang.free(self.api.items("/api/v1/nodes"), every)):
            self.put_group(job, "Pending")
            self.tell(job)
            # The status of the job says nothing of it.
            return gang.Step("Pending", "", tries)
        self.put_group(job, "Inqueue")
        core = f"/api/v1/namespaces/{namespace}"
        if "svc" in (job["spec"].get("plugins") or {}):
            service, names = gang.service(job)
            self.api.create(f"{core}/services", service)
            self.api.create(f"{core}/configmaps", names)
        for pod in wanted:
            self.api.create(f"{core}/pods", pod)
        return gang.Step("Pending", "", tries)

    def tell(self, job: Object) -> None:
        """The event by which Volcano tells why a Job has no Pods (job_controller_actions.go, recordPodGroupEvent)."""
        metadata, moment = job["metadata"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = f"{gang.minimum(job)}/0 tasks in gang unschedulable: pod group is not ready"
        reason = f"{ready}, {gang.minimum(job)} minAvailable"
        about = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "uid": metadata["uid"]}
        about.update(namespace=metadata["namespace"], name=metadata["name"])
        event = {
            "metadata": {"name": f"{metadata['name']}.{metadata['uid'][:13]}"},
            "involvedObject": about,
            "type": "Warning",
            "reason": "PodGroupPending",
            "message": f"PodGroup {metadata['namespace']}:{metadata['name']} unschedulable, reason: {reason}",
            "firstTimestamp": moment,
            "lastTimestamp": moment,
        }
        self.api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)

    def put_group(self, job: Object, phase: str) -> None:
        """The PodGroup of a Job, in a phase."""
        metadata = job["metadata"]
        path = f"{SCHEDULING}/namespaces/{metadata['namespace']}/podgroups"
        spec = {"minMember": gang.minimum(job), "queue": job["spec"].get("queue", "default")}
        body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": spec}
        named = {"name": f"{metadata['name']}-{metadata['uid']}", "ownerReferences": gang.owner(job)}
        self.api.create(path, {**body, "metadata": named})
        found = self.api.get(f"{path}/{named['name']}")
        if (found.get("status") or {}).get("phase") != phase:
            self.api.patch(f"{path}/{named['name']}/status", {"status": {"phase": phase}})

    def put_status(self, job: Object, step: gang.Step, live: list[Object]) -> None:
        """Write the status as Volcano writes it, if it is another than before."""
        old = job.get("status") or {}
        tasks: dict[str, Any] = {}
        for pod in live:
            kept = tasks.setdefault(pod["metadata"]["labels"]["volcano.sh/task-spec"], {"phase": {}})["phase"]
            kept[pod["status"].get("phase", "Pending")] = kept.get(pod["status"].get("phase", "Pending"), 0) + 1
        status = {
            "minAvailable": gang.minimum(job),
            "retryCount": step.retries,
            "version": step.retries + 1,
            "taskStatusCount": tasks,
            **{name.lower(): number for name, number in gang.count(live).items()},
        }
        state = {"phase": step.phase, "message": step.message}
        before = old.get("state") or {}
        unchanged = all(old.get(name) == value for name, value in status.items())
        if unchanged and all(before.get(name) == value for name, value in state.items()):
            return
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state["lastTransitionTime"] = moment if before.get("phase") != step.phase else before["lastTransitionTime"]
        metadata = job["metadata"]
        path = f"{JOBS}/namespaces/{metadata['namespace']}/jobs/{metadata['name']}/status"
        # The whole object: a change of somebody else's in between is a conflict, and met again at the next look.
        self.api.call("PUT", path, {**job, "status": {**status, "state": state}})
        if before.get("phase") != step.phase:
            print(f"{metadata['namespace']}/{metadata['name']}: {step.phase} {step.message}", flush=True)


def _is_of(pod: Object, metadata: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == metadata["uid"] for owner in owners)


def main() -> int:
    controller = Controller(Api.of_pod())
    controller.install()
    while True:
        try:
            controller.sync()
        except (ApiError, OSError) as error:
            print(error, flush=True)
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
