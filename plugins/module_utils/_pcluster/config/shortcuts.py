# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables of the top level that stand for keys of the queue that trains: the first resource of the first queue.

They replace what a preset says. What a given queue or compute resource says itself replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Variables = Mapping[str, Any]
Section = dict[str, Any]

SHORTCUTS = ("instance_type", "min_count", "max_count", "capacity_reservation")


def _shortcuts(variables: Variables) -> Section:
    return {key: variables[key] for key in SHORTCUTS if variables.get(key) is not None}


def _without(section: Variables, *keys: str) -> Section:
    return {key: value for key, value in section.items() if key not in keys}


def _that_trains(queues: list[Section], change: Callable[[Section, Section], Section]) -> list[Section]:
    """The queues with ``change(queue, resource)`` in place of the resource that trains."""
    if not queues or not queues[0].get("compute_resources"):
        return queues
    first, *others = queues[0]["compute_resources"]
    return [{**queues[0], "compute_resources": [change(queues[0], first), *others]}, *queues[1:]]


def fill_queues(variables: Variables) -> list[Section]:
    """The queues; what the resource that trains does not say itself is that of the shortcuts."""

    def filled(queue: Section, resource: Section) -> Section:
        said = ["instance_type"] if resource.get("instance_types") else []
        said += ["capacity_reservation"] if queue.get("capacity_reservation") else []
        return {**_without(_shortcuts(variables), *said), **resource}

    return _that_trains(list(variables.get("queues") or []), filled)


def preset_queues(queues: list[Section], given: Variables) -> list[Section]:
    """A preset's queues with the shortcuts of the given variables, ready for the given queues to be laid upon them.

    Nodes that are all static, as in a Capacity Block, stay so in another number. The one type of a resource gives way
    to a given list of types: ParallelCluster refuses both.
    """
    reserved = {queue.get("name") for queue in given.get("queues") or [] if queue.get("capacity_reservation")}

    def filled(queue: Section, resource: Section) -> Section:
        shortcuts = _without(_shortcuts(given), *(["capacity_reservation"] if queue["name"] in reserved else []))
        changed = {**resource, **shortcuts}
        if "min_count" not in shortcuts and 0 < resource["min_count"] == resource["max_count"]:
            changed["min_count"] = changed["max_count"]
        return changed

    listed = {
        (queue.get("name"), resource.get("name"))
        for queue in given.get("queues") or []
        for resource in queue.get("compute_resources") or []
        if resource.get("instance_types")
    }
    return [
        {
            **queue,
            "compute_resources": [
                _without(resource, "instance_type") if (queue["name"], resource["name"]) in listed else resource
                for resource in queue["compute_resources"]
            ],
        }
        for queue in _that_trains(queues, filled)
    ]
