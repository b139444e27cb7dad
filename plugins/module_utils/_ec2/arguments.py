# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Argument specifications that modules share; documented in doc_fragments/launch.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given

VOLUME = {
    "device_name": {"type": "str"},
    "size": {"type": "int"},
    "type": {
        "type": "str",
        "choices": ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"],
        "default": "gp3",
    },
    "iops": {"type": "int"},
    "throughput": {"type": "int"},
    "encrypted": {"type": "bool", "default": True},
    "kms_key_id": {"type": "str"},
    "snapshot_id": {"type": "str"},
    "delete_on_termination": {"type": "bool", "default": True},
}
RESERVATION = {
    "id": {"type": "str"},
    "resource_group_arn": {"type": "str"},
    "preference": {"type": "str", "choices": ["open", "none", "capacity-reservations-only"]},
}
METADATA = {
    "http_tokens": {"type": "str", "choices": ["required", "optional"], "default": "required"},
    "http_put_response_hop_limit": {"type": "int", "default": 2},
}
# What instances and templates have.
TEMPLATE_ARGUMENTS: dict[str, dict[str, Any]] = {
    "key_name": {"type": "str", "no_log": False},
    "interface_layout": {"type": "str", "choices": ["efa", "efa-only", "parallelcluster", "none"]},
    "placement_group": {"type": "str"},
    "user_data": {"type": "str", "no_log": True},
    "capacity_reservation": {"type": "dict", "options": RESERVATION},
    "volumes": {"type": "list", "elements": "dict", "options": VOLUME},
    "metadata_options": {"type": "dict", "options": METADATA},
}
LAUNCH_ARGUMENTS: dict[str, dict[str, Any]] = {
    **TEMPLATE_ARGUMENTS,
    "instance_profile": {"type": "str"},
    "public_ip": {"type": "str", "choices": ["none", "primary"], "default": "none"},
    "market": {"type": "str", "choices": ["on-demand", "spot", "capacity-block"], "default": "on-demand"},
}

_OPTIONAL = ("image_id", "key_name", "placement_group", "instance_profile", "user_data")


def with_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what follows from others."""
    lists = {option: list(params.get(option) or ()) for option in ("subnets", "security_groups")}
    return {**given(params, _OPTIONAL), **lists}
