#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: scratch_volume
version_added: 0.1.0
short_description: One file system over the NVMe instance store, made anew whenever it is blank
description:
  - Finds the devices of the NVMe instance store by their model, joins them to a RAID 0 array where there are several,
    makes a file system and mounts it.
  - A device with a file system of others, a partition table or a mount is never written to. It is refused.
  - The work is done by a program that a service of systemd starts at every boot, because the instance store is blank
    after an instance was stopped. The same program is run by this module.
  - Not before systemd took the unit for good is anything changed.
extends_documentation_fragment:
  - trainium.cluster.attributes
options:
  path:
    description: Where the file system is mounted.
    type: path
    required: true
  filesystem:
    description: The file system to make.
    type: str
    choices: [xfs, ext4]
    default: xfs
  mode:
    description: The mode of the root of the file system, in octal digits.
    type: str
    default: "1777"
  programs:
    description: The files of the program that the service starts, as paths and their texts.
    type: dict
    required: true
  unit:
    description: The text of the service.
    type: str
    required: true
  unit_name:
    description: The name of the service.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Join the instance store at /scratch
  trainium.cluster.internal.scratch_volume:
    path: /scratch
    programs:
      /usr/local/sbin/scratch: "{{ lookup('ansible.builtin.file', 'scratch.py') }}"
    unit: "{{ lookup('ansible.builtin.template', 'scratch.service.j2') }}"
    unit_name: scratch.service
"""

RETURN = r"""
step:
  description: The first step that has to be taken.
  returned: success
  type: str
devices:
  description: The devices of that step.
  returned: success
  type: list
  elements: str
differs:
  description: Whether anything has to be changed, also where a task with its own V(changed_when) hides it.
  returned: success
  type: bool
missing_programs:
  description: The programs that the host lacks for it.
  returned: check mode
  type: list
  elements: str
"""

import json
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import difference
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.scratch import (
    ScratchError,
    Step,
    next_step,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.storage.unit_files import (
    DIRECTORY,
    UnitError,
    UnitFiles,
)

COLUMNS = "NAME,TYPE,MODEL,FSTYPE,LABEL,MOUNTPOINT,PTTYPE"


def _plan(module: AnsibleModule) -> Step:
    _code, out, _error = module.run_command(["lsblk", "--json", "--output", COLUMNS], check_rc=True)
    return next_step(json.loads(out), module.params["path"], module.params["filesystem"])


def _missing(module: AnsibleModule, step: Step) -> list[str]:
    """What the host lacks for the step and those after it. An array is one as well after the next stop and start."""
    programs = [f"mkfs.{module.params['filesystem']}"]
    if step.action in ("create_array", "assemble") or any("/md" in device for device in step.devices):
        programs.append("mdadm")
    return [program for program in programs if module.get_bin_path(program) is None]


def _install(module: AnsibleModule, units: UnitFiles, wanted: dict[Path, str], unit: str) -> None:
    before = {path: units.read(path) for path in wanted}
    for path, text in wanted.items():
        if before[path] != text:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            units.write(path, text)
    failed = units.systemctl("daemon-reload") or units.systemctl("enable", unit) or units.systemctl("restart", unit)
    if failed:
        reason = units.reason(unit) or failed
        if before[DIRECTORY / unit] is None:
            units.systemctl("disable", unit)
        units.restore(before)
        units.systemctl("daemon-reload")
        units.systemctl("reset-failed", unit)
        raise UnitError(f"{module.params['path']} cannot be made: {reason}.")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "filesystem": {"type": "str", "choices": ["xfs", "ext4"], "default": "xfs"},
            "mode": {"type": "str", "default": "1777"},
            "programs": {"type": "dict", "required": True},
            "unit": {"type": "str", "required": True},
            "unit_name": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    units, unit = UnitFiles(module), module.params["unit_name"]
    path = Path(module.params["path"])
    wanted = {Path(name): str(text) for name, text in module.params["programs"].items()}
    wanted[DIRECTORY / unit] = module.params["unit"]
    result: dict[str, Any] = {}
    try:
        step = _plan(module)
        state = units.show([unit])[unit]
        files = [name for name, text in wanted.items() if units.read(name) != text]
        lost = step.action == "nothing" and path.stat().st_mode & 0o7777 != int(module.params["mode"], 8)
        running = state.get("ActiveState") == "active" and state.get("UnitFileState") == "enabled"
        changed = bool(step.action != "nothing" or files or lost or not running)
        result.update(step=step.action, devices=list(step.devices), changed=changed, differs=changed)
        if module._diff:
            result["diff"] = [difference(name, units.read(name) or "", wanted[name]) for name in files]
        if DIRECTORY / unit in files:
            units.verify({unit: module.params["unit"]})
        missing = _missing(module, step)
        if module.check_mode:
            result["missing_programs"] = missing
        elif changed:
            if missing:
                raise UnitError(f"The host lacks {', '.join(missing)}; install the packages first.")
            _install(module, units, wanted, unit)
    except (ScratchError, UnitError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename} cannot be used ({os.strerror(error.errno or 0)}); run the task as root."
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
