# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter image_system; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.image_names import system_of


def image_system(value: Any) -> dict[str, str]:
    """The operating system of an image by its name; empty where the name does not tell."""
    if not isinstance(value, str):
        raise AnsibleFilterError(f"image_system needs the name of an image, not {value!r}.")
    return system_of(value)


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[[Any], Any]]:
        return {"image_system": image_system}
