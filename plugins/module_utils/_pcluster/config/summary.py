# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a preset with the user's variables says of the nodes that train, for the defaults of roles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import laid_upon
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.shortcuts import fill_queues
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import is_neuron

# On every cluster the head node shares it.
HOME = "/home"
# Volumes of the head node: not for what all nodes read and write at once.
_SMALL = ("ebs",)


class Summary(NamedTuple):
    """``instance_type`` and greatest ``node_count`` of the queue that trains; where the nodes share large files.

    ``neuron``: whether a queue has nodes with Neuron devices, or may have.
    """

    instance_type: str = "trn1.32xlarge"
    node_count: int = 2
    shared_dir: str = HOME
    neuron: bool = True


def _kinds(resource: Mapping[str, Any]) -> list[str]:
    return [str(one) for one in [resource.get("instance_type"), *(resource.get("instance_types") or [])] if one]


def summary(preset: str | None, variables: Mapping[str, Any]) -> Summary:
    """The summary. What cannot be read has the defaults: the module pcluster_config says what is wrong with it."""
    try:
        merged = laid_upon(preset, variables)
        queues = fill_queues(merged)
        resource = queues[0]["compute_resources"][0] if queues else {}
        kind = next(iter(_kinds(resource)), Summary().instance_type)
        count = int(resource.get("max_count") or resource.get("min_count") or Summary().node_count)
        all_kinds = [one for queue in queues for part in queue["compute_resources"] for one in _kinds(part)]
        folders = [
            "/" + str(item["mount_dir"]).lstrip("/")
            for item in merged.get("shared_storage") or []
            if item.get("mount_dir") and item.get("type") not in _SMALL
        ]
    except (TrainiumError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return Summary()
    return Summary(kind, count, next(iter(folders), HOME), not all_kinds or any(map(is_neuron, all_kinds)))
