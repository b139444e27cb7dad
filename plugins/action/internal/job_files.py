# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sends a job's files along with the one call that looks whether they are there."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.trainium.cluster.plugins.plugin_utils._plain import plain

# More than scripts have is copied only where it is missing.
MOST = 1 << 20


class ActionModule(ActionBase):
    """The module of the same name, once."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = plain(self._task.args)
        contents, checksums = dict(arguments.get("contents") or {}), dict(arguments.get("checksums") or {})
        room = MOST
        for source in arguments.pop("sources", None) or []:
            try:
                size = Path(source["src"]).stat().st_size
                if size > room:
                    checksums[source["name"]] = source["checksum"]
                else:
                    room -= size
                    contents[source["name"]] = base64.b64encode(Path(source["src"]).read_bytes()).decode()
            except OSError as error:
                result.update(failed=True, msg=f"job_files: {source['src']} cannot be read ({error.strerror}).")
                return result
        arguments.update(contents=contents, checksums=checksums)
        result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result
