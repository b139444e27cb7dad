# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far a training on Kubernetes is, what it waits for and how it ended, by what the API server says. Pure.

``state`` is told in Slurm's words, so that all that shows a job of Slurm shows this one. Phases of Volcano's jobs are
those of its API (batch.volcano.sh/v1alpha1, JobPhase); a plain Job ends with the condition Complete or Failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.recognise import known_faults
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import last_lines, progress

Object = Mapping[str, Any]
VOLCANO = "batch.volcano.sh/v1alpha1"
# What lists of them are asked for by, as their kind is Job, too.
VOLCANO_JOB = "Job of Volcano"
PHASES = {
    "Pending": "PENDING",
    "Inqueue": "PENDING",
    "Running": "RUNNING",
    "Restarting": "RUNNING",
    "Completing": "RUNNING",
    "Completed": "COMPLETED",
    "Aborting": "CANCELLED",
    "Aborted": "CANCELLED",
    "Terminating": "FAILED",
    "Terminated": "FAILED",
    "Failed": "FAILED",
}
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
# What does not pass by itself; a pull that failed for another reason may.
_NEVER = frozenset({"InvalidImageName", "CreateContainerConfigError"})
_NO_IMAGE = re.compile(r"not found|manifest unknown|does not exist", re.I)
# So it is also said while a login is not there yet: of a new role, of a Secret, of a service that did not answer.
_DENIED = re.compile(r"access denied|403 Forbidden|401 Unauthorized|authorization failed|no basic auth", re.I)
# Two of the kubelet's longest pauses between pulls.
SECONDS_DENIED = 600
# What every pod waits for before it runs.
_MADE, _QUEUED = "its container is made", "it waits for the scheduler"
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})
_STARTS_AGAIN = re.compile(r"^JOB starts again: (.*)\.$", re.MULTILINE)
_PROCESSES = re.compile(r"--nproc_per_node ([0-9]{1,6})(?![0-9])")
# What the pod of a dataset says of itself.
_NOTES = re.compile(r"^DATASET (.+)$", re.MULTILINE)
_CACHESET = re.compile(r"--cache_dir=\S*/neuron_cache/([A-Za-z0-9_-]+)_\d+(?:\s|$)")


def is_volcano(job: Object) -> bool:
    return job.get("apiVersion") == VOLCANO


def condition(found: Object, kind: str) -> Object:
    """A condition that holds; {} otherwise."""
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind and one.get("status") == "True"), {})


def rank_of(pod: Object) -> int:
    """The rank of a pod, by our own label or by TorchX's."""
    labels = pod["metadata"].get("labels") or {}
    text = labels.get(names.RANK) or labels.get("torchx.pytorch.org/replica-id") or "0"
    return int(text) if text.isdigit() else 0


def newest(pods: Iterable[Object]) -> list[Object]:
    """The newest pod of each rank, in their order."""
    found: dict[int, Object] = {}
    for pod in pods:
        old = found.get(rank_of(pod))
        if old is None or old["metadata"]["creationTimestamp"] <= pod["metadata"]["creationTimestamp"]:
            found[rank_of(pod)] = pod
    return [found[rank] for rank in sorted(found)]


def moment(text: str | None) -> int | None:
    """Seconds since 1970 of a time as Kubernetes writes it."""
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()) if text else None


def cacheset_of(job: Object) -> str:
    """The compile cache of a workload: by our label, or by the flags of whatever ``torchx run`` has submitted."""
    label = (job["metadata"].get("labels") or {}).get(names.CACHESET, "")
    if label or not is_volcano(job):
        return str(label)
    for task in job["spec"].get("tasks") or []:
        for container in task["template"]["spec"]["containers"]:
            for variable in container.get("env") or []:
                found = _CACHESET.search(str(variable.get("value") or ""))
                if found:
                    return found[1]
    return ""


def app_of(job: Object) -> str:
    return str((job["metadata"].get("labels") or {}).get(names.APP) or job["metadata"]["name"])


def phase_of(jobs: Sequence[Object], pods: Sequence[Object], count: int) -> str:
    """The state of all parts together; ABSENT where there is none."""
    if not jobs:
        return "ABSENT"
    if is_volcano(jobs[0]):
        phase = ((jobs[0].get("status") or {}).get("state") or {}).get("phase", "Pending")
        return PHASES.get(phase, "PENDING")
    if any(condition(job, "Failed") for job in jobs):
        return "FAILED"
    if len(jobs) >= count and all(condition(job, "Complete") for job in jobs):
        return "COMPLETED"
    phases = [(pod.get("status") or {}).get("phase") for pod in pods]
    return "RUNNING" if len(pods) >= count and set(phases) <= {"Running", "Succeeded"} else "PENDING"


_NO_CLAIM = re.compile(r'persistentvolumeclaim "[^"]+" not found')


def _events_of(kind: str, name: str, events: Sequence[Object]) -> list[Object]:
    """Events of one object, the newest first."""
    found = [one for one in events if one["involvedObject"].get("name") == name]
    found = [one for one in found if one["involvedObject"].get("kind", kind) == kind]
    return sorted(found, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""), reverse=True)


def sentence(text: Any) -> str:
    """A text of Kubernetes in one line, without its full stop."""
    return " ".join(str(text or "").split()).rstrip(".")


def _is_silent(pod: Object, own: Sequence[Object]) -> bool:
    """Whether its node has stopped answering: then the controller of nodes calls it not ready, and says so of it.

    It is as not ready while it ends by itself, of which no such event tells; when the node answers again it is ready.
    The event lasts an hour at most. What lasts: that the node calls the containers ready, or that the pod was evicted.
    """
    known = {one.get("type"): one for one in (pod.get("status") or {}).get("conditions") or []}
    if known.get("Ready", {}).get("status") != "False":
        return False
    evicted = known.get("DisruptionTarget", {}).get("reason") == "DeletionByTaintManager"
    by_controller = known.get("ContainersReady", {}).get("status") == "True"
    return evicted or by_controller or any(one.get("reason") == "NodeNotReady" for one in own)


def _waited(pod: Object, own: Sequence[Object]) -> int:
    """For how many seconds a pod has had its node when the last was told of it, by the cluster's clock alone."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    placed = [one.get("lastTransitionTime") for one in conditions if one.get("type") == "PodScheduled"]
    since, told = moment(placed[0]) if placed else None, None
    if own:
        told = moment(own[0].get("lastTimestamp") or own[0].get("eventTime"))
    return told - since if told is not None and since is not None else 0


def has_run(jobs: Sequence[Object], pods: Sequence[Object]) -> bool:
    """Whether a pod of a training runs or ever ran, also one that is gone: its Job has counted it."""
    if any((pod.get("status") or {}).get("phase") not in (None, "Pending") for pod in pods):
        return True
    for status in (job.get("status") or {} for job in jobs):
        if any(status.get(count) for count in ("running", "succeeded", "failed", "terminating", "retryCount")):
            return True
        if any(one.get("status") == "Running" for one in status.get("conditions") or []):
            return True
    return False


def waiting(pod: Object, events: Sequence[Object]) -> tuple[str, bool]:
    """What a pod waits for, '' for nothing, and whether that can never come."""
    status = pod.get("status") or {}
    name = pod["metadata"]["name"]
    own = _events_of("Pod", name, events)
    if status.get("phase") == "Running" and _is_silent(pod, own):
        return f"its node {(pod.get('spec') or {}).get('nodeName') or ''} does not answer", False
    if status.get("phase") not in (None, "Pending"):
        return "", False
    for one in status.get("conditions") or []:
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            text = sentence(one.get("message"))
            # Nobody makes it by the way, and the nodes are billed meanwhile.
            return text or _QUEUED, bool(_NO_CLAIM.search(text))
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        held = (container.get("state") or {}).get("waiting") or {}
        reason = held.get("reason", "")
        if reason in _PULL:
            # The back-off does not say why.
            told = [held.get("message"), *(one.get("message") for one in own if one.get("reason") == "Failed")]
            known = [text for text in told if text and (_NO_IMAGE.search(text) or _DENIED.search(text))]
            gone = next((text for text in known if not _DENIED.search(text)), None)
            why = gone or next(iter(known), held.get("message"))
            late = bool(known) and _waited(pod, own) >= SECONDS_DENIED
            return f"{reason}: {sentence(why)}", bool(gone) or late
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            return f"{reason}: {sentence(held.get('message'))}", reason in _NEVER
    if own and (own[0].get("type") == "Warning" or own[0].get("reason") == "Pulling"):
        return sentence(own[0].get("message")), False
    return _MADE if status.get("containerStatuses") else _QUEUED, False


def waiting_for(pod: Object, events: Sequence[Object]) -> str:
    """What a pod waits for if that is more than its turn; '' otherwise."""
    told = [one for one in events if one.get("type") == "Warning"]
    reason, _never = waiting(pod, told)
    return "" if reason in (_MADE, _QUEUED) else reason


def _without_pods(jobs: Sequence[Object], events: Sequence[Object]) -> str:
    """Why there are no pods: what the controllers and Volcano's scheduler say."""
    for job in jobs:
        status = job.get("status") or {}
        name = job["metadata"]["name"]
        groups = [one for one in events if str(one["involvedObject"].get("name", "")).startswith(f"{name}-")]
        groups = [one for one in groups if one["involvedObject"].get("kind") == "PodGroup"]
        for event in [*_events_of("Job", name, events), *_events_of("PodGroup", name, events), *groups]:
            if event.get("type") == "Warning":
                return sentence(event.get("message"))
        message = sentence((status.get("state") or {}).get("message"))
        if message:
            return message
    return "its pods are not made yet"


def _exit_codes(pods: Sequence[Object]) -> list[dict[str, Any]]:
    codes = []
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or []:
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code:
                node = (pod.get("spec") or {}).get("nodeName") or pod["metadata"]["name"]
                codes.append({"node": node, "task": rank_of(pod), "exit_code": code})
    return codes


def _failure(jobs: Sequence[Object]) -> str:
    """Why Kubernetes gave a job up, in its words."""
    for job in jobs:
        failed = condition(job, "Failed")
        if failed:
            return sentence(failed.get("message")) or str(failed.get("reason") or "")
    return sentence(((jobs[0].get("status") or {}).get("state") or {}).get("message")) if jobs else ""


def wanted(jobs: Sequence[Object]) -> int:
    """How many pods there are to be."""
    if jobs and is_volcano(jobs[0]):
        return sum(int(task.get("replicas", 1)) for task in jobs[0]["spec"].get("tasks") or [])
    return len(jobs)


def size_of(jobs: Sequence[Object]) -> dict[str, Any]:
    """By whose launcher a training is, and how many nodes and processes it is to have; 0 where that is not told.

    A job of TorchX has them in torchrun's flags. How many processes a plain Job has, its log says.
    """
    if not jobs or not is_volcano(jobs[0]):
        return {"launcher": "kubernetes" if jobs else "", "node_count": len(jobs), "process_count": 0}
    nodes = wanted(jobs)
    tasks = jobs[0]["spec"].get("tasks") or []
    # Whoever may make jobs in the namespace writes these.
    containers = tasks[0]["template"]["spec"].get("containers") if tasks else None
    told = _PROCESSES.search(json.dumps(containers[0].get("command") or []) if containers else "")
    return {"launcher": "torchx", "node_count": nodes, "process_count": nodes * int(told[1]) if told else 0}


def remedy_of(reason: str) -> str:
    """What to do about a reason that is known; '' for another."""
    found = known_faults({"": [reason]})
    return str(found[0]["remedy"]) if found else ""


def state_of(
    name: str,
    jobs: Sequence[Object],
    pods: Sequence[Object],
    events: Sequence[Object],
    log: str = "",
    steps: int | None = None,
    count: int = 0,
) -> dict[str, Any]:
    """One state of a training by its Jobs or Volcano job, its pods, the events and the end of rank 0's log.

    ``count``: how many pods there are to be where it is known, since a submission may have been killed in the middle.
    """
    current = newest(pods)
    state = phase_of(jobs, current, max(count, wanted(jobs)))
    held = [(pod, *waiting(pod, events)) for pod in current] if state not in (*ENDED, "ABSENT") else []
    held = [one for one in held if one[1]]
    never = any(one[2] for one in held)
    # What some of its pods have done is not thrown away for what another waits for.
    stuck = never and has_run(jobs, pods)
    reason = ""
    if held:
        first = next((one for one in held if one[2]), held[0])
        more = f", and {len(held) - 1} more" if len(held) > 1 else ""
        reason = f"{first[0]['metadata']['name']}: {first[1]}{more}"
    elif state == "PENDING" and not current:
        reason = _without_pods(jobs, events)
    elif state == "PENDING":
        failed = [pod["metadata"]["name"] for pod in current if (pod.get("status") or {}).get("phase") == "Failed"]
        reason = f"{', '.join(failed)} failed, and is to be made anew" if failed else "not all of its pods are made yet"
    elif state in ("FAILED", "CANCELLED"):
        reason = _failure(jobs)
    if state == "RUNNING" and held:
        # Part of a job that Volcano calls running.
        state = "PENDING"
    again = _STARTS_AGAIN.findall(log)
    retried = int((jobs[0].get("status") or {}).get("retryCount") or 0) if jobs and is_volcano(jobs[0]) else 0
    times = [(pod.get("status") or {}).get("startTime") for pod in pods]
    ends = [(job.get("status") or {}).get("completionTime") for job in jobs]
    ends += [condition(job, "Failed").get("lastTransitionTime") for job in jobs]
    ends += [
        ((job.get("status") or {}).get("state") or {}).get("lastTransitionTime") for job in jobs if is_volcano(job)
    ]
    ended = state in ENDED or (never and not stuck)
    hosts = list(dict.fromkeys(pod["spec"]["nodeName"] for pod in current if (pod.get("spec") or {}).get("nodeName")))
    return {
        "job_id": name,
        "name": "",
        **size_of(jobs),
        "state": state,
        "ended": ended,
        "succeeded": state == "COMPLETED",
        "cannot_start": never and not stuck,
        "stuck": stuck,
        "reason": reason,
        "remedy": remedy_of(reason) if reason else "",
        "nodes": "" if state == "PENDING" else ",".join(hosts),
        "pods": [_shown(pod) for pod in current],
        "batch_host": hosts[0] if hosts else "",
        "restarts": len(again) or retried,
        "requeue_reason": again[-1] if again else "",
        "exit_code": "",
        "node_exit_codes": _exit_codes(current) if ended else [],
        "progress": progress(log, steps),
        "note": (_NOTES.findall(log) or [""])[-1],
        "last_lines": last_lines(log),
        "started_at": min(filter(None, map(moment, times)), default=None),
        "ended_at": max(filter(None, map(moment, ends)), default=None) if ended else None,
    }


def warnings(events: Sequence[Object]) -> list[dict[str, str]]:
    """What controllers, scheduler and nodes warn of, each once, the newest last."""
    found: dict[str, str] = {}
    for one in sorted(events, key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or "")):
        if one.get("type") == "Warning":
            subject = one["involvedObject"]
            text = f"{subject.get('kind', '')} {subject.get('name', '')}: {one.get('reason')}: {one.get('message')}"
            found[sentence(text)] = str(one.get("lastTimestamp") or one.get("eventTime") or "")
    return [{"time": time, "message": text} for text, time in found.items()]


def without_success(silent: Sequence[Object], success: str) -> dict[str, Any]:
    """What to update the state of a job with that has ended well, but of which these pods have not said so."""
    if not silent:
        return {}
    ranks = ", ".join(str(rank_of(pod)) for pod in silent)
    reason = f"its code was 0, but the log of rank {ranks} has nothing like '{success}'"
    return {"state": "FAILED", "succeeded": False, "reason": reason}


def _shown(pod: Object) -> dict[str, Any]:
    return {
        "name": pod["metadata"]["name"],
        "rank": rank_of(pod),
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "phase": (pod.get("status") or {}).get("phase") or "Pending",
    }
