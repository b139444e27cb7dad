# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The variables that describe a cluster of ParallelCluster; documented in the fragment pcluster_variables."""

from __future__ import annotations

from typing import Any

Arguments = dict[str, dict[str, Any]]

CAPACITY_TYPES = ["ONDEMAND", "SPOT", "CAPACITY_BLOCK"]
SYSTEMS = ["ubuntu2404", "ubuntu2204", "alinux2023", "rhel8", "rhel9", "rocky8", "rocky9"]

_STRING: dict[str, Any] = {"type": "str"}
_INTEGER: dict[str, Any] = {"type": "int"}
_SWITCH: dict[str, Any] = {"type": "bool"}
_STRINGS: dict[str, Any] = {"type": "list", "elements": "str"}
_MAPPING: dict[str, Any] = {"type": "dict"}
_MAPPINGS: dict[str, Any] = {"type": "list", "elements": "dict"}

_RESERVATION: dict[str, Any] = {
    "type": "dict",
    "options": {
        "id": _STRING,
        "resource_group_arn": _STRING,
        "owner": {"type": "str", "choices": ["self", "aws"]},
    },
}
_S3_ACCESS: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "options": {
        "bucket": {"type": "str", "required": True},
        "key": {"type": "str", "no_log": False},
        "write": _SWITCH,
    },
}
# What head node and queues have in common.
_NODE: Arguments = {
    "custom_ami": _STRING,
    "security_groups": _STRINGS,
    "additional_security_groups": _STRINGS,
    "custom_actions": _MAPPING,
    "iam_policies": _STRINGS,
    "instance_profile": _STRING,
    "instance_role": _STRING,
}
_DISKS: Arguments = {"root_volume_size": _INTEGER, "s3_access": _S3_ACCESS}

_COMPUTE_RESOURCE: Arguments = {
    "name": {"type": "str", "required": True},
    "instance_type": _STRING,
    "instance_types": _STRINGS,
    "min_count": _INTEGER,
    "max_count": _INTEGER,
    "efa": _SWITCH,
    "gdr_support": _SWITCH,
    "capacity_reservation": _RESERVATION,
    "disable_hyperthreading": _SWITCH,
    "spot_price": {"type": "float"},
    "schedulable_memory": _INTEGER,
}
_QUEUE: Arguments = {
    **_NODE,
    **_DISKS,
    "name": {"type": "str", "required": True},
    "compute_resources": {"type": "list", "elements": "dict", "options": _COMPUTE_RESOURCE},
    "capacity_type": {"type": "str", "choices": CAPACITY_TYPES},
    "allocation_strategy": _STRING,
    "capacity_reservation": _RESERVATION,
    "job_exclusive_allocation": _SWITCH,
    "subnet_ids": _STRINGS,
    "placement_group": _STRING,
    "ephemeral_dir": _STRING,
    "custom_slurm_settings": _MAPPING,
    "tags": _MAPPING,
}
_LOGIN_POOL: Arguments = {
    **_NODE,
    "name": {"type": "str", "default": "login"},
    "instance_type": _STRING,
    "count": _INTEGER,
    "gracetime_period": _INTEGER,
    "subnet_id": _STRING,
    "allowed_ips": _STRING,
}

CLUSTER_ARGUMENTS: Arguments = {
    "region": _STRING,
    "os": {"type": "str", "choices": SYSTEMS},
    "custom_ami": _STRING,
    "key_name": {"type": "str", "no_log": False},
    "allowed_ips": _STRING,
    "ssm_access": _SWITCH,
    "iam_policies": _STRINGS,
    "s3_access": _S3_ACCESS,
    "head_node": {
        "type": "dict",
        "options": {
            **_NODE,
            **_DISKS,
            "instance_type": _STRING,
            "subnet_id": _STRING,
            "elastic_ip": _STRING,
            "shared_storage_type": {"type": "str", "choices": ["Ebs", "Efs"]},
            "dcv": _SWITCH,
        },
    },
    "login_nodes": {"type": "list", "elements": "dict", "options": _LOGIN_POOL},
    "compute_subnet_ids": _STRINGS,
    "queues": {"type": "list", "elements": "dict", "options": _QUEUE},
    "instance_type": _STRING,
    "min_count": _INTEGER,
    "max_count": _INTEGER,
    "capacity_reservation": _RESERVATION,
    "placement_group": _STRING,
    "ephemeral_dir": _STRING,
    "shared_storage": _MAPPINGS,
    "setup_actions": _MAPPING,
    "custom_actions": _MAPPING,
    "head_bootstrap_timeout": _INTEGER,
    "compute_bootstrap_timeout": _INTEGER,
    "scaling_strategy": {"type": "str", "choices": ["all-or-nothing", "best-effort", "greedy-all-or-nothing"]},
    "scaledown_idletime": _INTEGER,
    "queue_update_strategy": {"type": "str", "choices": ["COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE"]},
    "custom_slurm_settings": _MAPPING,
    "accounting": {
        "type": "dict",
        "options": {
            "uri": _STRING,
            "user_name": _STRING,
            "password_secret_arn": {"type": "str", "no_log": False},
            "database_name": _STRING,
        },
    },
    "monitoring": {
        "type": "dict",
        "options": {
            "detailed": _SWITCH,
            "dashboard": _SWITCH,
            "alarms": _SWITCH,
            "log_retention_days": _INTEGER,
            "log_deletion_policy": {"type": "str", "choices": ["Delete", "Retain"]},
        },
    },
    "tags": _MAPPING,
    "overrides": _MAPPING,
}
