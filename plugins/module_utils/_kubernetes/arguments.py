# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Argument specifications of modules for Kubernetes, which their action plugins read as well."""

from __future__ import annotations

from typing import Any

CONNECTION: dict[str, dict[str, Any]] = {
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
    "namespace": {"type": "str", "default": "trainium"},
}
_FOLLOWED: dict[str, dict[str, Any]] = {
    "steps": {"type": "int"},
    "success": {"type": "str"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 604800},
}
KUBERNETES_JOB: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "stopped", "absent"], "default": "present"},
    "owner": {"type": "str", "default": ""},
    "objects": {"type": "list", "elements": "dict", "default": []},
    "secret_data": {"type": "dict", "default": {}, "no_log": True},
    "resubmit": {"type": "str", "choices": ["failed", "never", "always"], "default": "failed"},
    **_FOLLOWED,
    **CONNECTION,
}
KUBERNETES_JOB_INFO: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "logs": {"type": "path"},
    **_FOLLOWED,
    **CONNECTION,
}
