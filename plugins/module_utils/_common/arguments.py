# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the modules that make things in AWS ask of the arguments that all of them take. Pure.

Each function raises TrainiumError with one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

SUBNET = re.compile(r"subnet-[0-9a-f]+")
GROUP = re.compile(r"sg-[0-9a-f]+")
_EXAMPLES = {SUBNET: "subnet-0a1b2c3d4e5f60001", GROUP: "sg-0a1b2c3d4e5f60003"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def given(params: Mapping[str, Any], texts: Iterable[str]) -> dict[str, Any]:
    """The arguments as a run works with them: a cluster has the name where it has none of its own.

    ``texts``: options in which empty text, as roles pass it, means not given.
    """
    blank = {option: params.get(option) or None for option in texts}
    return {**params, "cluster_name": params.get("cluster_name") or params.get("name"), **blank}


def check_names(params: Mapping[str, Any], options: Iterable[str], required: bool = False) -> None:
    """The names that become values of tags; those that are not ``required`` may be empty."""
    for option in options:
        if (required or params.get(option)) and not _NAME.fullmatch(params[option]):
            raise TrainiumError(
                f"{option} is {params[option]!r}; use 1 to 100 letters, digits, dots, underscores and hyphens, "
                "beginning with a letter or digit"
            )


def check_tags(tags: Mapping[str, Any] | None, service: str, reserved: Iterable[str] = ()) -> None:
    """Further tags, beside our own; ``reserved``: keys that the module sets as well."""
    for key, value in (tags or {}).items():
        if key in reserved or key.startswith(("trainium:", "aws:")):
            raise TrainiumError(f"tags holds {key}, which is reserved; remove it")
        if not 1 <= len(key) <= 128 or len(str(value)) > 256:
            raise TrainiumError(f"tag {key!r} is too long for {service}; a key has at most 128 characters, a value 256")


def check_timeout(params: Mapping[str, Any]) -> None:
    if params["wait_timeout"] < 1:
        raise TrainiumError(f"wait_timeout is {params['wait_timeout']}; give a number of seconds, 1 or more")


def check_shared(params: Mapping[str, Any], names: Iterable[str], service: str, reserved: Iterable[str] = ()) -> None:
    """What all of them take: the names that become values of tags, further tags, and how long to wait."""
    check_names(params, names)
    check_tags(params.get("tags"), service, reserved)
    check_timeout(params)


def check_ids(params: Mapping[str, Any], **options: re.Pattern[str]) -> None:
    """Lists of ids, each of which matches the pattern of its option."""
    for option, pattern in options.items():
        for value in params.get(option) or ():
            if not pattern.fullmatch(value):
                raise TrainiumError(f"{option} holds {value!r}, which is no id such as {_EXAMPLES[pattern]}")
