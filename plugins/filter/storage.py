# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters kubernetes_volume and dataset_job; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes import dataset, run_dataset, storage
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.plan import without_values
from ansible_collections.trainium.cluster.plugins.module_utils._kubernetes.state import condition
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain


@takes(Mapping, "what is to be mounted as a dictionary")
def kubernetes_volume(
    value: Any, volume: Mapping[str, Any] | None = None, claim: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Volume and claim of a file system, and what is to be done about those that are there."""
    site, volume, claim = plain(value), plain(volume or {}), plain(claim or {})
    made = storage.static(site)
    refused = storage.refusal(site, volume, claim)
    return {"volume": made[0], "claim": made[1], "refused": refused, "left": storage.is_left(volume, claim)}


@takes(Mapping, "a request as a dictionary")
def dataset_job(value: Any, site: Mapping[str, Any], job: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The objects of a Job that brings a dataset; ``refused`` says why there are none.

    Of a ``job`` that is there: whether the dataset is, and whether it is another's.
    """
    try:
        objects, values = without_values(dataset.objects(plain(value), plain(site), run_dataset.archive()))
    except (TrainiumError, ValueError) as error:
        refused = f"{str(error).rstrip('.')}."
        return {"refused": refused, "name": "", "objects": [], "secret_data": {}, "done": False, "other": False}
    wanted, found = objects[-1], plain(job or {})
    ours = bool(found) and dataset.is_ours(found, wanted)
    return {
        "refused": "",
        "name": wanted["metadata"]["name"],
        "objects": objects,
        "secret_data": values,
        "done": ours and bool(condition(found, "Complete")),
        "other": bool(found) and not ours,
    }


FilterModule = filter_module(kubernetes_volume, dataset_job)
