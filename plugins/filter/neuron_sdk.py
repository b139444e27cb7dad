# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter neuron_sdk; documented in the YAML file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware import sdk as planner
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import family


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
    if not isinstance(value, (str, float)):
        raise AnsibleFilterError(f"neuron_sdk needs a release such as '2.29.1', not {value!r}.")
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


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"neuron_sdk": neuron_sdk}
