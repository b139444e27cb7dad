# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read-only questions to a node, by AnsibleModule.run_command; a tool that is not there is no error."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.neuron_ls import ARGUMENTS, devices_of
from ansible_collections.trainium.cluster.plugins.module_utils._node.state import (
    DPKG_FORMAT,
    RPM_FORMAT,
    parse_packages,
    services_of,
)

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


def ask_neuron_ls(module: AnsibleModule) -> list[int]:
    """NeuronCores of each device that neuron-ls shows; empty where it is not there or shows none."""
    for arguments in ARGUMENTS:
        found = devices_of(ask(module, "neuron-ls", *arguments) or "")
        if found is not None:
            return found
    return []


def users_of(prefix: str) -> list[str]:
    """``NAME (PID)`` of the processes that have a file open whose path begins so; others' processes only root sees."""
    found = set()
    there = any(Path(prefix).parent.glob(f"{Path(prefix).name}*"))
    for link in Path("/proc").glob("[0-9]*/fd/*") if there else ():
        try:
            if os.readlink(link).startswith(prefix):
                process = link.parents[1]
                found.add(f"{(process / 'comm').read_text(encoding='utf-8').strip()} ({process.name})")
        except OSError:
            # The process has ended, or closed the file.
            continue
    return sorted(found)


def packages(module: AnsibleModule, names: Sequence[str], locked: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """The installed ones of ``names``, by dpkg or where there is none by rpm; see ``node_state.parse_packages``."""
    if not names:
        return {}
    # The exit code is 1 where one of them is unknown; what is known is printed all the same.
    text = ask(module, "dpkg-query", "--show", f"--showformat={DPKG_FORMAT}", *names, codes=(0, 1))
    if text is None:
        text = ask(module, "rpm", "--query", f"--queryformat={RPM_FORMAT}", *names, codes=range(100))
    return parse_packages(text or "", locked)


def services(module: AnsibleModule, wanted: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Any]] | None:
    """Service -> enabled, active and stale, see ``node_state.services_of``; None where systemctl does not answer.

    ``wanted``: service -> the files that it reads at its start.
    """
    if not wanted:
        return {}
    changed = {
        name: max((os.stat(file).st_mtime for file in files if os.path.exists(file)), default=0.0)
        for name, files in wanted.items()
    }
    properties = "--property=Id,UnitFileState,ActiveState,SubState,ExecMainStartTimestamp"
    units = [f"{name}.service" for name in wanted]
    shown = ask(module, "systemctl", "show", "--timestamp=unix", properties, *units)
    return None if shown is None else services_of(shown, changed, time.time())


def name_of(table: Any, number: int) -> str:
    """The name of a user or group; the number where it has none."""
    try:
        return str(table(number)[0])
    except KeyError:
        return str(number)


def owner_of(status: os.stat_result) -> str:
    """Owner, group and mode as in ``root:root 0644``; numbers for an id without a name."""
    owner = f"{name_of(pwd.getpwuid, status.st_uid)}:{name_of(grp.getgrgid, status.st_gid)}"
    return f"{owner} {stat.S_IMODE(status.st_mode):04o}"


def file_line(path: Path) -> str:
    """A file as ``root:root 0644 <SHA-256> <path>``."""
    return f"{owner_of(path.stat())} {sha256(path.read_bytes()).hexdigest()} {path}"
