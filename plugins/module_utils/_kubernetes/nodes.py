# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What of a cluster trainings depend on: its Trainium nodes and their devices, Volcano's queues, add-ons. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import state as states
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.pods import EFA, INSTANCE_TYPE, NEURON

Object = Mapping[str, Any]
# Where the pods of add-ons are; of most users nobody may look there.
NAMESPACES = ("kube-system", "volcano-system")
_OWNERS = ("DaemonSet", "ReplicaSet", "Job")
# Of those that are told by name.
SHOWN = 8
_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,9})?)(?:([mkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?")
_FACTORS = {
    "m": Decimal("0.001"),
    **{sign: Decimal(1000**power) for power, sign in enumerate("kMGTPE", 1)},
    **{f"{sign}i": Decimal(1024**power) for power, sign in enumerate("KMGTPE", 1)},
}


def count_of(quantity: Any) -> int:
    """A whole number that Kubernetes writes as a quantity, such as ``16`` or ``1k``; 0 for what is none."""
    found = _QUANTITY.fullmatch(str(quantity))
    if not found:
        return 0
    factor = _FACTORS[found[2]] if found[2] else Decimal(10) ** int(found[3] or 0)
    return int(Decimal(found[1]) * factor)


def nodes_of(items: Sequence[Object]) -> list[dict[str, Any]]:
    """What matters of the items of a list of Nodes, without those that have no Neuron devices."""
    found = []
    for item in items:
        kind = (item["metadata"].get("labels") or {}).get(INSTANCE_TYPE, "")
        known, status = TYPES.get(kind), item.get("status") or {}
        if known is None or not known.devices:
            continue
        has = status.get("allocatable") or {}
        ready = {one.get("type"): one.get("status") for one in status.get("conditions") or []}.get("Ready") == "True"
        counts = {"neuron_devices": count_of(has.get(NEURON)), "efa_interfaces": count_of(has.get(EFA))}
        complete = counts["neuron_devices"] >= known.devices and counts["efa_interfaces"] >= known.efa
        closed = bool((item.get("spec") or {}).get("unschedulable"))
        found.append(
            {
                "name": item["metadata"]["name"],
                "instance_type": kind,
                "ready": ready,
                "unschedulable": closed,
                **counts,
                "complete": complete,
            }
        )
    return sorted(found, key=lambda one: str(one["name"]))


def _named(nodes: Sequence[Object]) -> str:
    more = f" and {len(nodes) - SHOWN} more" if len(nodes) > SHOWN else ""
    return ", ".join(str(one["name"]) for one in nodes[:SHOWN]) + more


def node_lines(nodes: Sequence[Object]) -> list[str]:
    """Few lines, however many nodes there are: how many of each type there are, and which are not as they should be."""
    lines = []
    for kind in sorted({one["instance_type"] for one in nodes}):
        own = [one for one in nodes if one["instance_type"] == kind]
        good = [one for one in own if one["ready"] and one["complete"] and not one["unschedulable"]]
        known = TYPES[kind]
        lines.append(
            f"{len(own)} {kind}, of which {len(good)} can take pods, with {known.devices} Neuron devices and "
            f"{known.efa} EFA interfaces each"
        )
        odd = {
            "Nodes of Kubernetes do not answer:": [one for one in own if not one["ready"]],
            "Device plugins do not offer all devices of": [one for one in own if one["ready"] and not one["complete"]],
            "Closed to new pods (kubectl uncordon):": [one for one in own if one["unschedulable"]],
        }
        lines += [f"{text} {_named(some)}" for text, some in odd.items() if some]
    return lines


def missing(items: Sequence[Object], groups: Sequence[Object], neuron: bool, efa: bool) -> list[str]:
    """A sentence for each type of which there are too few nodes, or nodes that do not offer what ``neuron`` and ``efa``
    ask for. ``groups``: ``instance_type`` and ``count`` each."""
    wanted: dict[str, int] = {}
    for group in groups:
        kind = str(group["instance_type"])
        wanted[kind] = wanted.get(kind, 0) + int(group["count"])
    said = []
    for kind, count in wanted.items():
        own = [one for one in items if (one["metadata"].get("labels") or {}).get(INSTANCE_TYPE) == kind]
        known, short = TYPES.get(kind), []
        devices, interfaces = (known.devices, known.efa) if known else (0, 0)
        for item in own:
            has = (item.get("status") or {}).get("allocatable") or {}
            offered, cards = count_of(has.get(NEURON)), count_of(has.get(EFA))
            if (neuron and offered < devices) or (efa and cards < interfaces):
                short.append({"name": f"{item['metadata']['name']} (neuron {offered}, efa {cards})"})
        text = f"{len(own)} of {count} nodes of type {kind} are in the cluster"
        if short:
            text += f", and these do not offer all of their {devices} Neuron devices and {interfaces} EFA interfaces: "
            text += _named(short)
        if len(own) < count or short:
            said.append(text)
    return said


def tolerations_of(taints: Sequence[Object]) -> list[dict[str, str]]:
    """Tolerations of taints as EKS's API has them, whose effect is such as ``NO_SCHEDULE``; each once."""
    found = []
    for one in taints:
        effect = "".join(word.capitalize() for word in str(one.get("effect") or "").split("_"))
        has_value = {"operator": "Equal", "value": str(one["value"])} if one.get("value") else {"operator": "Exists"}
        tolerated = {"key": str(one["key"]), **has_value, "effect": effect}
        if tolerated not in found:
            found.append(tolerated)
    return found


def queue_lines(items: Sequence[Object]) -> list[str]:
    """Of Volcano's queues those that take no jobs, in the words of its admission."""
    states = {one["metadata"]["name"]: (one.get("status") or {}).get("state") or "Unknown" for one in items}
    return [f"Volcano's queue `{name}` status is `{states[name]}`" for name in sorted(states) if states[name] != "Open"]


def _owner(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name") or pod["metadata"]["name"])


def _trouble(pod: Object, events: Sequence[Object]) -> str:
    """Why a pod does not run; '' where it does, or has just begun to start."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    found = [one.get("state") or {} for one in containers]
    if status.get("phase") == "Failed":
        codes = [str(one["terminated"].get("exitCode")) for one in found if one.get("terminated")]
        return f"failed with code {', '.join(codes)}" if codes else "failed with code unknown"
    if status.get("phase") == "Running":
        waits = [one["waiting"] for one in found if (one.get("waiting") or {}).get("reason") == "CrashLoopBackOff"]
        return f"CrashLoopBackOff: {states.sentence(waits[0].get('message'))}" if waits else ""
    return states.waiting_for(pod, events)


def pod_lines(namespace: str, pods: Sequence[Object], events: Sequence[Object]) -> list[str]:
    """One line for each owner whose pods do not run, however many these are."""
    owners: dict[str, list[Object]] = {}
    for pod in pods:
        owners.setdefault(_owner(pod), []).append(pod)
    lines = []
    for own in owners.values():
        ended = any((pod.get("status") or {}).get("phase") == "Succeeded" for pod in own)
        troubles = [(pod, _trouble(pod, events)) for pod in own]
        troubles = [] if ended else [one for one in troubles if one[1]]
        if troubles:
            more = f" and {len(troubles) - 1} more" if len(troubles) > 1 else ""
            lines.append(f"{namespace}: {troubles[0][0]['metadata']['name']}{more}: {troubles[0][1]}")
    for event in events:
        subject = event["involvedObject"]
        if event.get("reason") == "FailedCreate" and subject.get("kind") in _OWNERS and subject["name"] not in owners:
            why = states.sentence(event.get("message"))
            lines.append(f"{namespace}: {subject['kind']} {subject['name']} cannot make its pods: {why}")
    return [*dict.fromkeys(lines)]
