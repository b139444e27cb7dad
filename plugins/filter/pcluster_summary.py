# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter pcluster_summary; documented in the YAML file beside this one."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.summary import summary
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes


@takes(str, "the name of a preset such as 'trn1'")
def pcluster_summary(preset: Any, variables: Any = None) -> dict[str, Any]:
    """What is to be known of the nodes of a preset with variables laid upon it, before there are any."""
    if not isinstance(variables or {}, dict):
        raise ValueError(f"it takes variables of pcluster_config, not {variables!r}")
    return summary(preset, variables or {})._asdict()


FilterModule = filter_module(pcluster_summary)
