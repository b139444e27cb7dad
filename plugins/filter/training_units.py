# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter training_units; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._training.unit import decide


def training_units(value: Any, digest: str) -> dict[str, Any]:
    """What to do with a training by the states of its nodes. Raises AnsibleFilterError where a node has none."""
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"training_units needs a dictionary of states, not {type(value).__name__}.")
    silent = [name for name, state in value.items() if not isinstance(state, Mapping) or "active" not in state]
    if silent:
        raise AnsibleFilterError(f"training_units has no state of {', '.join(map(str, silent))}; is it reachable?")
    return decide(value, str(digest))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"training_units": training_units}
