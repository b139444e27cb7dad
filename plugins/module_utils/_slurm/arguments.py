# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Argument specifications of modules for Slurm which their action plugins read as well."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._slurm.submit import DEPENDENCIES

SLURM_JOB: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "script": {"type": "path"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "record": {"type": "path"},
    "identity": {"type": "str", "default": ""},
    "args": {"type": "list", "elements": "str", "default": []},
    "partition": {"type": "str"},
    "nodes": {"type": "str"},
    "ntasks_per_node": {"type": "int"},
    "exclusive": {"type": "bool", "default": False},
    "time_limit": {"type": "str"},
    "account": {"type": "str"},
    "qos": {"type": "str"},
    "requeue": {"type": "bool"},
    "dependency": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "type": {"type": "str", "choices": DEPENDENCIES, "default": "afterok"},
            "job_ids": {"type": "list", "elements": "int", "default": []},
        },
    },
    "array": {"type": "str"},
    "output": {"type": "str"},
    "open_mode": {"type": "str", "choices": ["append", "truncate"]},
    "chdir": {"type": "path", "default": "/tmp"},  # noqa: S108 - every node has it; a home need not be shared
    "environment": {"type": "dict", "default": {}},
    "resubmit": {"type": "str", "choices": ["failed", "never", "always"], "default": "failed"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 604800},
    "log": {"type": "path"},
    "steps": {"type": "int"},
}
SLURM_JOB_INFO: dict[str, dict[str, Any]] = {
    "job_id": {"type": "int", "required": True},
    "log": {"type": "path"},
    "steps": {"type": "int"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 604800},
}

SLURM_READY: dict[str, dict[str, Any]] = {
    "partition": {"type": "str", "default": ""},
    "require": {"type": "str", "choices": ["all", "any"], "default": "all"},
    "timeout": {"type": "int", "default": 120},
}
