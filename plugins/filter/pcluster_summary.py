# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter pcluster_summary; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.summary import summary


def pcluster_summary(preset: Any, variables: Any = None) -> dict[str, Any]:
    """Type, greatest number, shared folder and kind of devices of the nodes of a preset with variables laid upon it."""
    if not isinstance(preset, str):
        raise AnsibleFilterError(f"pcluster_summary needs the name of a preset such as 'trn1', not {preset!r}.")
    if not isinstance(variables or {}, dict):
        raise AnsibleFilterError(f"pcluster_summary takes variables of pcluster_config, not {variables!r}.")
    return summary(preset, variables or {})._asdict()


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"pcluster_summary": pcluster_summary}
