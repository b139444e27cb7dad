# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters of instance types, images and the software for them; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._hardware import eks_images, image_names
from ansible_collections.trainium.cluster.plugins.module_utils._hardware import sdk as planner
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES, family, is_neuron
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import package_changes as plan
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes


@takes(str, "an instance type such as 'trn1.32xlarge'")
def instance_hardware(value: Any) -> dict[str, int | bool]:
    """EFA interfaces, Neuron devices and NeuronCores of an instance type; 0 of what it has not or is not known.

    ``neuron``: whether its family has Neuron devices, also where their number is not known.
    """
    known = TYPES.get(value)
    return {
        "neuron": is_neuron(value),
        "efa_interfaces": known.efa if known else 0,
        "neuron_devices": known.devices if known else 0,
        "neuron_cores": known.devices * known.cores[0] if known and known.cores else 0,
    }


@takes(str, "the name of an image")
def image_system(value: Any) -> dict[str, str]:
    """The operating system of an image by its name; empty where the name does not tell."""
    return image_names.system_of(value)


@takes(list, "a list of images")
def image_of_sdk(value: Any, sdk: Any) -> dict[str, str]:
    """The newest of some images that has an SDK, or why there is none."""
    return image_names.image_of_sdk(value, str(sdk))._asdict()


@takes((str, float), "a release such as '2.29.1'")
def neuron_sdk(
    value: Any,
    distribution: str,
    version: str,
    torch: str = "latest",
    python: str = "",
    versions: Mapping[str, str] | None = None,
    mirror: bool = False,
    instance_type: str = "",
) -> dict[str, Any]:
    """The packages of an SDK release for an operating system, or the sentence that refuses the combination."""
    # A version that YAML read as a number must not become 3.1 out of 3.10: what the host says is always text.
    own, kind = dict(versions or {}), family(instance_type) or "trn1"
    request = planner.Request(str(value), distribution, str(version), torch, python, own, bool(mirror), kind)
    try:
        plan = planner.plan(request)
    except planner.NeuronSdkError as error:
        return {"refused": f"{error}.", "sdk": str(value), "packages": {}, "pip": [], "codename": "", "torchvision": ""}
    torch_version = plan.pip[0].split("==")[1] if plan.pip else ""
    vision = planner.torchvision_of(torch_version) if torch_version else ""
    return {"refused": "", **plan._asdict(), "torchvision": vision}


@takes((str, float), "a release such as '2.29.1'")
def eks_image_release(value: Any, kubernetes: Any) -> str:
    """The newest release of EKS's Neuron image whose driver fits a release of the SDK."""
    return eks_images.release_for(str(value), str(kubernetes))


@takes(Mapping, "two dictionaries, wanted versions and installed packages")
def package_changes(value: Any, installed: Mapping[str, Any], held: bool = True) -> dict[str, list[str]]:
    """Which of the wanted packages have to be installed, and which to be held."""
    if not isinstance(installed, Mapping):
        raise ValueError("the installed packages have to be a dictionary")
    return plan(value, installed, bool(held))


FilterModule = filter_module(
    instance_hardware, image_system, image_of_sdk, neuron_sdk, eks_image_release, package_changes
)
