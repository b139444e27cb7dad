# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a preset with the user's variables says of the nodes that train, for the defaults of roles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import laid_upon
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.shortcuts import fill_queues

# On every cluster the head node shares it.
HOME = "/home"
# Volumes of the head node: not for what all nodes read and write at once.
_SMALL = ("ebs",)


class Summary(NamedTuple):
    """``instance_type`` and greatest ``node_count`` of the queue that trains; where the nodes share large files."""

    instance_type: str = "trn1.32xlarge"
    node_count: int = 2
    shared_dir: str = HOME


def summary(preset: str | None, variables: Mapping[str, Any]) -> Summary:
    """The summary. What cannot be read has the defaults: the module pcluster_config says what is wrong with it."""
    try:
        merged = laid_upon(preset, variables)
        queues = fill_queues(merged)
        resource = queues[0]["compute_resources"][0] if queues else {}
        kinds = [resource.get("instance_type"), *(resource.get("instance_types") or [])]
        kind = next((str(one) for one in kinds if one), Summary().instance_type)
        count = int(resource.get("max_count") or resource.get("min_count") or Summary().node_count)
        folders = [
            "/" + str(item["mount_dir"]).lstrip("/")
            for item in merged.get("shared_storage") or []
            if item.get("mount_dir") and item.get("type") not in _SMALL
        ]
    except (TrainiumError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return Summary()
    return Summary(kind, count, next(iter(folders), HOME))
