# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submit a training to Kubernetes, find it again, look at it, end it, and bring its logs.

What makes it safe to be killed at any moment: every object is named after the digest of the definition, so that a
second run finds what the first has made and makes what is missing.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import looks
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import names, plan
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import nodes as of_cluster
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import state as states
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.calls import Api, KubernetesError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.plan import SUBMISSION
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.pods import (
    NO_IMAGE,
    POD_SECURITY,
    checked_image,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import job_text

# Enough for the pace of a training.
LINES = 400
SECONDS_TO_END = 300.0
SECONDS_TO_CLEAN = 120.0
# Of what was made closer together nobody knows the first: times are whole seconds of several API servers.
SECONDS_APART = 2

Object = dict[str, Any]


def workloads(api: Api, label: str, value: str) -> list[Object]:
    """Jobs of a training, plain ones or Volcano's."""
    return api.listed("Job", f"{label}={value}") or api.visible(states.VOLCANO_JOB, f"{label}={value}")


def _pods(api: Api, name: str, jobs: Sequence[Object]) -> list[Object]:
    volcano = jobs and states.is_volcano(jobs[0])
    return api.listed("Pod", f"volcano.sh/job-name={name}" if volcano else f"{names.APP}={name}")


def look(
    api: Api,
    name: str,
    steps: int | None = None,
    jobs: list[Object] | None = None,
    count: int = 0,
    success: str | None = None,
) -> dict[str, Any]:
    """The state of a training; see `states.state_of`. Each rank has to have said ``success``, a regular expression."""
    jobs = workloads(api, names.APP, name) if jobs is None else jobs
    if not jobs:
        return states.state_of(name, [], [], [])
    pods = _pods(api, name, jobs)
    events = api.listed("Event")
    first = next((pod for pod in states.newest(pods) if states.rank_of(pod) == 0), None)
    started = first is not None and (first.get("status") or {}).get("phase") not in (None, "Pending")
    log = api.log(first["metadata"]["name"], LINES) if first and started else ""
    seen = states.state_of(name, jobs, pods, events, log, steps, count)
    if success and seen["succeeded"]:
        silent = [pod for pod in states.newest(pods) if not re.search(success, api.log(pod["metadata"]["name"]))]
        seen.update(states.without_success(silent, success))
    return seen


def look_at_all(api: Api) -> dict[str, Any]:
    """All ``trainings`` of the namespace, the newest first, and what it ``warned`` of, from one list of each kind.

    Also what of the cluster they depend on, as far as the user may see it: ``cluster_nodes``, and what is ``told`` of
    them, of Volcano's queues and of add-ons that do not run.
    """
    apps: dict[str, list[Object]] = {}
    selector = f"{names.MANAGED_BY}={names.MANAGER}"
    for job in [*api.listed("Job", selector), *api.visible(states.VOLCANO_JOB, selector)]:
        apps.setdefault(states.app_of(job), []).append(job)
    pods, events = api.listed("Pod") if apps else [], api.listed("Event")
    seen = []
    for app, jobs in apps.items():
        part = (jobs[0]["metadata"].get("labels") or {}).get(names.PART)
        if part not in (None, "train") and states.phase_of(jobs, [], states.wanted(jobs)) == "COMPLETED":
            continue
        own = [pod for pod in pods if _app_of_pod(pod) == app]
        first = next((pod for pod in states.newest(own) if states.rank_of(pod) == 0), None)
        runs = first is not None and (first.get("status") or {}).get("phase") == "Running"
        log = api.log(first["metadata"]["name"], LINES) if first and runs else ""
        state = states.state_of(app, jobs, own, events, log)
        made = max(job["metadata"]["creationTimestamp"] for job in jobs)
        seen.append({**state, "made_at": states.moment(made), "line": job_text(state)})
    seen.sort(key=lambda one: -one["made_at"])
    nodes = of_cluster.nodes_of(api.visible("Node"))
    lines = [*of_cluster.node_lines(nodes), *of_cluster.queue_lines(api.visible("Queue"))]
    for namespace in of_cluster.NAMESPACES:
        others = api.visible("Pod", namespace=namespace)
        lines += of_cluster.pod_lines(namespace, others, api.visible("Event", namespace=namespace))
    told = [{"line": line, "remedy": states.remedy_of(line)} for line in lines]
    return {"trainings": seen, "warned": states.warnings(events), "cluster_nodes": nodes, "told": told}


def _app_of_pod(pod: Object) -> str:
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get(names.APP) or labels.get("volcano.sh/job-name") or "")


def save_logs(api: Api, name: str, folder: str, whole: bool) -> list[str]:
    """The logs of all ranks as ``<folder>/rank-<n>.log``; of those without a pod what is there stays.

    With ``whole`` false only that of rank 0, which has the steps.
    """
    jobs = workloads(api, names.APP, name)
    saved = []
    for pod in states.newest(_pods(api, name, jobs)) if jobs else []:
        rank = states.rank_of(pod)
        text = api.log(pod["metadata"]["name"]) if whole or rank == 0 else ""
        if not text:
            continue
        path = os.path.join(folder, f"rank-{rank}.log")
        try:
            os.makedirs(folder, exist_ok=True)
            replace(path, text.encode())
        except OSError as error:
            raise TrainiumError(f"log {path} cannot be written ({error.strerror}); see its folder.") from error
        saved.append(path)
    return saved


def _ensure_namespace(api: Api, check: bool) -> bool:
    """Make the namespace where there is none, and tell whether it is there now.

    Whoever may not look has one that was made for them.
    """
    metadata = {"name": api.namespace, "labels": POD_SECURITY}
    wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    try:
        if api.get(wanted) is not None:
            return True
    except KubernetesError as error:
        if error.code != 403:
            raise
        return True
    api.create(wanted, check)
    return not check


def _begun(jobs: Sequence[Object]) -> int:
    """When the first of their objects was made."""
    return min(states.moment(job["metadata"].get("creationTimestamp")) or 0 for job in jobs)


def _refuse_others(api: Api, name: str, cacheset: str, check: bool, begun: int | None = None) -> list[str]:
    """Refuse a second job on one compile cache; one of ours that can never start makes room.

    With ``begun``, when this one was made, those surely made after it are passed over. Returns what was ended.
    """
    ended = []
    apps: dict[str, list[Object]] = {}
    for job in [*api.listed("Job"), *api.visible(states.VOLCANO_JOB)]:
        app = states.app_of(job)
        # The parts of one training follow each other.
        if cacheset and states.cacheset_of(job) == cacheset and not _same(app, name):
            apps.setdefault(app, []).append(job)
    for app, jobs in apps.items():
        if begun is not None and _begun(jobs) >= begun + SECONDS_APART:
            continue
        seen = look(api, app, jobs=jobs)
        if seen["state"] in states.ENDED:
            continue
        labels = [job["metadata"].get("labels") or {} for job in jobs]
        ours = all(one.get(names.MANAGED_BY) == names.MANAGER for one in labels)
        if not seen["cannot_start"] or not ours:
            raise TrainiumError(
                f"job {app} is {seen['state']} with the compile cache '{cacheset}', which two jobs at once would "
                "spoil; wait for its end, end it, or give this one another training_job_cacheset."
            )
        end(api, app, jobs, check)
        ended.append(app)
    return ended


def _same(one: str, other: str) -> bool:
    """Whether two workloads are parts of one training: ``<app>`` and ``<app>-c``."""
    return one.removesuffix("-c").removesuffix("-s") == other.removesuffix("-c").removesuffix("-s")


def present(
    api: Api, name: str, objects: Sequence[Object], resubmit: str, check: bool, success: str | None = None
) -> dict[str, Any]:
    """Submit a training unless it waits, runs or has succeeded. ``objects``: `plan.objects` and the like."""
    jobs = [one for one in objects if one["kind"] == "Job"]
    if not jobs:
        raise ValueError("objects has no Job; give what the filter training_objects makes.")
    if NO_IMAGE in json.dumps(jobs):
        checked_image(NO_IMAGE)
    there = _ensure_namespace(api, check)
    found = workloads(api, names.APP, name) if there else []
    plain = len([one for one in jobs if not states.is_volcano(one)])
    before = look(api, name, jobs=found, count=plain, success=success)
    again = resubmit == "always" or (resubmit == "failed" and before["ended"] and not before["succeeded"])
    if found and before["ended"] and not again:
        return {"submitted": False, "changed": False, "before": before, "made": [], "ended_others": []}
    if found and before["ended"]:
        end(api, name, found, check)
        found = []
    cacheset = states.cacheset_of(jobs[0])
    others = [] if found else _refuse_others(api, name, cacheset, check) if there else []
    known = {job["metadata"]["name"] for job in found}
    made = []
    for one in objects:
        if one["kind"] == "Job" and one["metadata"]["name"] in known:
            continue
        if not there:
            made.append(_shown(one))
        elif one["kind"] == "Job":
            made += [_shown(one)] if api.create(one, check) else []
        else:
            made += _put(api, one, bool(found), check)
    submitted = any(text.startswith("Job") for text in made)
    if submitted and not found and cacheset and not check:
        own = workloads(api, names.APP, name)
        try:
            # Two that are submitted at once have not seen each other before.
            _refuse_others(api, name, cacheset, check, _begun(own))
        except TrainiumError:
            end(api, name, own, check)
            raise
    return {"submitted": submitted, "changed": bool(made), "before": before, "made": made, "ended_others": others}


def _put(api: Api, wanted: Object, runs: bool, check: bool) -> list[str]:
    """Make an object that pods read, or bring it up to date; of a training that runs only its secrets."""
    here = api.get(wanted)
    if SUBMISSION in (wanted.get("data") or {}) and not runs:
        wanted = {**wanted, "data": {**wanted["data"], SUBMISSION: secrets.token_hex(8)}}
    if here is None:
        api.create(wanted, check)
        return [_shown(wanted)]
    if wanted["kind"] == "Service" or (runs and wanted["kind"] == "ConfigMap"):
        return []
    parts: Object = {key: wanted[key] for key in ("data", "binaryData", "immutable") if key in wanted}
    if all(here.get(key) == value for key, value in parts.items()):
        return []
    api.change(wanted, parts, check)
    return [_shown(wanted)]


def _shown(found: Mapping[str, Any]) -> str:
    return f"{found['kind']} {found['metadata']['name']}"


def end(api: Api, name: str, jobs: Sequence[Object], check: bool) -> None:
    """Delete a training's Jobs, and wait until their pods are gone."""
    for job in jobs:
        api.delete(job, check)
    if check:
        return
    for _passed in looks(SECONDS_TO_END):
        if not workloads(api, names.APP, name) and not _pods(api, name, jobs):
            return
    raise TrainiumError(
        f"job {name} is not gone after {SECONDS_TO_END:.0f} s; see kubectl get pods, a node that does not answer keeps "
        "its pods until it is deleted."
    )


def stop(api: Api, name: str, check: bool) -> dict[str, Any]:
    """End what of a training that failed, or can never start, holds nodes.

    Jobs of the first that have ended stay, and with them its state and logs; the other has neither.
    """
    found = workloads(api, names.APP, name)
    jobs = [job for job in found if not states.is_volcano(job)]
    held = [job for job in jobs if not states.condition(job, "Failed") and not states.condition(job, "Complete")]
    held = held if len(held) < len(jobs) and any(states.condition(job, "Failed") for job in jobs) else []
    if found and not held and look(api, name, jobs=found)["cannot_start"]:
        held = found
    for job in held:
        api.delete(job, check)
    return {"cancelled": [name] if held else [], "changed": bool(held), "made": [], "gone": [*map(_shown, held)]}


def _is_of(found: Object, training: str, owner: str) -> bool:
    """Whether an object is the training's: of ``a.b`` and ``a_b`` the label is one. Raises where it is another's."""
    notes = found["metadata"].get("annotations") or {}
    if notes.get(names.NAME, training) != training:
        return False
    whose = notes.get(names.OWNER, owner)
    if owner and whose != owner:
        raise TrainiumError(f"{_shown(found)} belongs to {whose}; ask them, or set trainium_owner to end it for them.")
    return True


def _cleaned(api: Api, staging: Object) -> bool:
    """Whether the values of variables are off the shared storage, which a pod has to see to."""
    job = plan.cleaning(staging)
    name = job["metadata"]["name"]
    api.create(job, False)
    seen = next((seen for _passed in looks(SECONDS_TO_CLEAN) for seen in [look(api, name)] if seen["ended"]), None)
    end(api, name, [job], False)
    return seen is not None and bool(seen["succeeded"])


def absent(api: Api, training: str, owner: str, check: bool) -> dict[str, Any]:
    """End all of a training, whatever its definition was, and delete its objects; but none of another owner."""
    selector = f"{names.TRAINING}={names.slug(training, names.LONGEST)},{names.MANAGED_BY}={names.MANAGER}"

    def of(found: list[Object]) -> list[Object]:
        return [one for one in found if _is_of(one, training, owner)]

    jobs = of([*api.listed("Job", selector), *api.visible(states.VOLCANO_JOB, selector)])
    cancelled = sorted({states.app_of(job) for job in jobs})
    rest = of([one for kind in ("ConfigMap", "Secret", "Service") for one in api.listed(kind, selector)])
    rest += of(api.visible("Deployment", selector))
    left = []
    # Files of the stage are needed to clean up, when nothing reads those values any more.
    values = {one["metadata"]["name"] for one in rest if (one.get("data") or {}).get("environment.sh")}
    for app in sorted(cancelled, key=lambda app: (app.endswith(("-s", "-e")), app.endswith("-e"))):
        own = [job for job in jobs if states.app_of(job) == app]
        if app in values and not check and not _cleaned(api, own[0]):
            left.append(app)
        end(api, app, own, check)
    for one in rest:
        api.delete(one, check)
    warnings = [
        f"{app}: its environment.sh with values of variables may be left on the shared storage." for app in left
    ]
    gone = [*map(_shown, [*jobs, *rest])]
    return {"cancelled": cancelled, "changed": bool(jobs or rest), "made": [], "gone": gone, "warnings": warnings}
