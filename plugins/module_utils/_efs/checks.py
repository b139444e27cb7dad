# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with the arguments of efs_file_system, before anything is made. Pure.

The rules are those of the API reference of CreateFileSystem, UpdateFileSystem and CreateMountTarget. Each function
raises TrainiumError with one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# MiB/s that may be provisioned; the upper end is a quota, which some regions have lower.
LEAST, MOST = 1, 3414
# Security groups of one mount target ("Amazon EFS quotas").
GROUPS = 5

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SUBNET = re.compile(r"subnet-[0-9a-f]+")
_GROUP = re.compile(r"sg-[0-9a-f]+")

Params = Mapping[str, Any]


def check_arguments(params: Params) -> None:
    """Everything that can be seen without AWS and whatever there is already."""
    for option in ("name", "cluster_name"):
        if params.get(option) and not _NAME.fullmatch(params[option]):
            raise TrainiumError(
                f"{option} is {params[option]!r}; use 1 to 100 letters, digits, dots, underscores and hyphens, "
                "beginning with a letter or digit"
            )
    for key, value in (params.get("tags") or {}).items():
        if key == "Name" or key.startswith(("trainium:", "aws:")):
            raise TrainiumError(f"tags holds {key}, which is reserved; remove it")
        if not 1 <= len(key) <= 128 or len(str(value)) > 256:
            raise TrainiumError(f"tag {key!r} is too long for EFS; a key has at most 128 characters, a value 256")
    if params["wait_timeout"] < 1:
        raise TrainiumError(f"wait_timeout is {params['wait_timeout']}; give a number of seconds, 1 or more")
    if params["state"] != "present":
        _check_removal(params)
        return
    if not params.get("name"):
        raise TrainiumError("name is missing; state=present needs it")
    for option, pattern, example in (
        ("subnets", _SUBNET, "subnet-0a1b2c3d4e5f60001"),
        ("security_groups", _GROUP, "sg-0a1b2c3d4e5f60003"),
    ):
        for value in params.get(option) or ():
            if not pattern.fullmatch(value):
                raise TrainiumError(f"{option} holds {value!r}, which is no id such as {example}")
    groups = params.get("security_groups") or ()
    if len(groups) > GROUPS:
        raise TrainiumError(f"security_groups has {len(groups)}; a mount target takes at most {GROUPS}")
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
