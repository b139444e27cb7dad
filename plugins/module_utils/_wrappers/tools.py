# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read-only commands on a node, by AnsibleModule.run_command; a tool that is not there is no error."""

from __future__ import annotations

from collections.abc import Sequence

from ansible.module_utils.basic import AnsibleModule

# Where Neuron's and EFA's tools are installed, before the places that the system knows.
TOOL_FOLDERS = ["/opt/aws/neuron/bin", "/opt/amazon/efa/bin"]


def find_tool(module: AnsibleModule, name: str) -> str | None:
    """The path of a tool, or None."""
    found: str | None = module.get_bin_path(name, opt_dirs=TOOL_FOLDERS)
    return found


def ask(module: AnsibleModule, name: str, *arguments: str, codes: Sequence[int] = (0,)) -> str | None:
    """What a tool prints; None where it is not there or ends with a code that is not one of ``codes``."""
    tool = find_tool(module, name)
    if tool is None:
        return None
    code, output, _errors = module.run_command([tool, *arguments], environ_update={"LC_ALL": "C"})
    return str(output) if code in codes else None
