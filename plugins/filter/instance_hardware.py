# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter instance_hardware; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES


def instance_hardware(value: Any) -> dict[str, int]:
    """EFA interfaces, Neuron devices and NeuronCores of an instance type; 0 of what it has not or is not known."""
    if not isinstance(value, str):
        raise AnsibleFilterError(f"instance_hardware needs an instance type such as 'trn1.32xlarge', not {value!r}.")
    known = TYPES.get(value)
    return {
        "efa_interfaces": known.efa if known else 0,
        "neuron_devices": known.devices if known else 0,
        "neuron_cores": known.devices * known.cores[0] if known and known.cores else 0,
    }


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[[Any], Any]]:
        return {"instance_hardware": instance_hardware}
