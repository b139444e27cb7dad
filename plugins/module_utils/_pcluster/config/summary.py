# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a preset with the user's variables says of the nodes that train, for the defaults of roles. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import laid_upon
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.shortcuts import fill_queues
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import is_neuron

# On every cluster the head node shares it.
HOME = "/home"
# Volumes of the head node: not for what all nodes read and write at once.
_SMALL = ("ebs",)
_MARKETS = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}
# Who logs in, by the beginning of an operating system's name (OS_MAPPING of the library's constants.py).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "rocky": "rocky"}


class Summary(NamedTuple):
    """``instance_type`` and greatest ``node_count`` of the queue that trains; where the nodes share large files.

    ``bursting``: whether they share them on a new EFS that has no throughput of its own.
    ``neuron``: whether a queue has nodes with Neuron devices, or may have. ``user``: who logs in. ``reservations``: the
    capacity reservation of each queue that names one, the queue that trains as ``""`` too. ``least``: how many nodes of
    the queue that trains always run, had on ``market``; ``beside``: what other nodes the cluster has, or may have.
    """

    instance_type: str = "trn1.32xlarge"
    node_count: int = 2
    shared_dir: str = HOME
    neuron: bool = True
    user: str = "ubuntu"
    reservations: Mapping[str, str] = {}
    bursting: bool = False
    least: int = 0
    market: str = "on-demand"
    beside: Sequence[str] = ()


def _kinds(resource: Mapping[str, Any]) -> list[str]:
    return [str(one) for one in [resource.get("instance_type"), *(resource.get("instance_types") or [])] if one]


def _reservations(queues: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found = {}
    for number, queue in enumerate(queues):
        targets = [part.get("capacity_reservation") or {} for part in (queue, *queue["compute_resources"])]
        identity = next((str(one["id"]) for one in targets if one.get("id")), "")
        if identity:
            found.update({str(queue.get("name")): identity, **({"": identity} if number == 0 else {})})
    return found


def _bursts(item: Mapping[str, Any]) -> bool:
    # ParallelCluster has no third mode for an EFS that it makes (EfsSettings of its schema).
    return item.get("type") == "efs" and not item.get("file_system_id") and not item.get("provisioned_throughput")


def _beside(merged: Mapping[str, Any], queues: Sequence[Mapping[str, Any]]) -> list[str]:
    resources = queues[0]["compute_resources"] if queues else []
    there = {
        "other queues": len(queues) > 1,
        "other nodes of the queue": len(resources) > 1 or any(len(_kinds(one)) > 1 for one in resources),
        "the login nodes": bool(merged.get("login_nodes")),
    }
    return [what for what, is_there in there.items() if is_there]


def summary(preset: str | None, variables: Mapping[str, Any]) -> Summary:
    """The summary. What cannot be read has the defaults: the module pcluster_config says what is wrong with it."""
    try:
        merged = laid_upon(preset, variables)
        queues = fill_queues(merged)
        resource = queues[0]["compute_resources"][0] if queues else {}
        kind = next(iter(_kinds(resource)), Summary().instance_type)
        count = int(resource.get("max_count") or resource.get("min_count") or Summary().node_count)
        all_kinds = [one for queue in queues for part in queue["compute_resources"] for one in _kinds(part)]
        reservations = _reservations(queues)
        large = [
            item
            for item in merged.get("shared_storage") or []
            if item.get("mount_dir") and item.get("type") not in _SMALL
        ]
        least, beside = int(resource.get("min_count") or 0), _beside(merged, queues)
        market = _MARKETS.get(str(queues[0].get("capacity_type")), Summary().market) if queues else Summary().market
        folder = "/" + str(large[0]["mount_dir"]).lstrip("/") if large else HOME
        bursting = bool(large) and _bursts(large[0])
    except (TrainiumError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return Summary()
    neuron = not all_kinds or any(map(is_neuron, all_kinds))
    system = str(merged.get("os") or "")
    user = next((user for start, user in _USERS.items() if system.startswith(start)), Summary().user)
    return Summary(kind, count, folder, neuron, user, reservations, bursting, least, market, beside)
