# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters image_system and image_of_sdk; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware import image_names


def image_system(value: Any) -> dict[str, str]:
    """The operating system of an image by its name; empty where the name does not tell."""
    if not isinstance(value, str):
        raise AnsibleFilterError(f"image_system needs the name of an image, not {value!r}.")
    return image_names.system_of(value)


def image_of_sdk(value: Any, sdk: Any) -> dict[str, str]:
    """The newest of some images that has an SDK, or why there is none."""
    if not isinstance(value, list):
        raise AnsibleFilterError(f"image_of_sdk needs a list of images, not {value!r}.")
    return image_names.image_of_sdk(value, str(sdk))._asdict()


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"image_system": image_system, "image_of_sdk": image_of_sdk}
