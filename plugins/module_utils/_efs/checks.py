# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the arguments of efs_file_system, before anything is made. Pure.

The rules are those of the API reference of CreateFileSystem, UpdateFileSystem and CreateMountTarget. Each function
raises TrainiumError with one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import (
    GROUP,
    SUBNET,
    check_ids,
    check_shared,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# MiB/s that may be provisioned; the upper end is a quota, which some regions have lower.
LEAST, MOST = 1, 3414
# Security groups of one mount target ("Amazon EFS quotas").
GROUPS = 5

Params = Mapping[str, Any]


def check_arguments(params: Params) -> None:
    """Everything that can be seen without AWS and whatever there is already."""
    check_shared(params, ("name", "cluster_name"), "EFS", reserved=("Name",))
    if params["state"] != "present":
        _check_removal(params)
        return
    if not params.get("name"):
        raise TrainiumError("name is missing; state=present needs it")
    check_ids(params, subnets=SUBNET, security_groups=GROUP)
    number = len(params.get("security_groups") or ())
    if number > GROUPS:
        raise TrainiumError(f"security_groups has {number}; a mount target takes at most {GROUPS}")
    amount = params.get("provisioned_throughput")
    if amount is not None and not LEAST <= amount <= MOST:
        raise TrainiumError(f"provisioned_throughput is {amount}; give {LEAST} to {MOST} MiB/s")


def _check_removal(params: Params) -> None:
    """What state=detached and state=absent want."""
    if params.get("keep") is not None:
        raise TrainiumError(
            f"keep is for state=present; leave it out, as state={params['state']} says what becomes of the data"
        )
    if not params.get("name") and not params.get("cluster_name"):
        raise TrainiumError("name and cluster_name are missing; give one of them to say which file systems")


def check_throughput(mode: str, amount: int | None, asked: bool) -> None:
    """The mode and the MiB/s fit together; ``asked`` says that the latter are the arguments' and not EFS's."""
    if mode == "provisioned" and not amount:
        raise TrainiumError(
            f"provisioned_throughput is missing; throughput_mode=provisioned takes {LEAST} to {MOST} MiB/s"
        )
    if mode != "provisioned" and asked:
        raise TrainiumError(
            f"provisioned_throughput is for throughput_mode=provisioned, and the mode is {mode}; leave it out, or set "
            "the mode"
        )
