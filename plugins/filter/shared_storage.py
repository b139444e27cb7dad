# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters shared_mounts and lustre_client; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._fsx import client as lustre
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage import mounts
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, is_listed, takes


@takes(is_listed, "a list of mounts")
def shared_mounts(value: Any, region: str = "") -> dict[str, Any]:
    """The mounts, checked and completed, or the sentence that says why not."""
    try:
        return {"error": "", "mounts": [asdict(mount) for mount in mounts.plan_mounts(list(value), str(region))]}
    except TrainiumError as error:
        return {"error": str(error), "mounts": []}


def lustre_client(
    value: str,
    system: str,
    version: str,
    kernel: str,
    deployment_types: Iterable[str],
    host: str,
    file_system_versions: Iterable[str] = (),
) -> dict[str, Any]:
    """How a host gets its client, from the version that it has, or the sentence that says why it cannot."""
    try:
        client = lustre.plan_client(
            str(system),
            str(version),
            str(kernel),
            str(value),
            list(deployment_types),
            str(host),
            list(file_system_versions),
        )
    except TrainiumError as error:
        return {"error": str(error), "method": "", "packages": [], "release": ""}
    return {"error": "", **asdict(client)}


FilterModule = filter_module(shared_mounts, lustre_client)
