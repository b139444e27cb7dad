#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: text_files
version_added: 0.1.0
short_description: Write several small files in one call
description:
  - Writes files whose contents the task has, such as those of a loop over M(ansible.builtin.copy), which takes three
    calls for each file.
  - Each file is replaced in one step. What was not named is left alone.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - ansible.builtin.files
options:
  contents:
    description: The files, each with its text.
    type: dict
    required: true
  modes:
    description: The modes of those that have another one than O(mode).
    type: dict
    default: {}
  parents:
    description: Whether to make a folder that a file needs and that is not there, with the mode V(0755).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Write the configuration
  trainium.cluster.internal.text_files:
    contents:
      /etc/slurm/slurm.conf: "{{ lookup('ansible.builtin.template', 'slurm.conf.j2') }}"
      /etc/slurm/cgroup.conf: |
        ConstrainCores=yes
    owner: root
    group: root
    mode: "0644"
"""

RETURN = r"""
written:
  description: The files that had another text, or were not there.
  returned: success
  type: list
  elements: str
"""

import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import difference, staged


def before(module: AnsibleModule, path: Path) -> bytes | None:
    """What is in a file; None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        module.fail_json(msg=f"text_files: {path} cannot be read ({error.strerror}); name a file.")
        return None


def write(module: AnsibleModule, path: Path, content: bytes) -> None:
    """Replace a file in one step."""
    try:
        if module.params["parents"]:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not path.parent.is_dir():
            module.fail_json(msg=f"text_files: the folder of {path} is not there; make it, or set parents=true.")
        temporary = staged(module, content)
    except OSError as error:
        module.fail_json(msg=f"text_files: {path} cannot be written ({error.strerror}); it is as it was.")
    module.atomic_move(temporary, str(path), unsafe_writes=module.params["unsafe_writes"])


def check(module: AnsibleModule) -> None:
    """Refuse before anything is written."""
    contents, modes = module.params["contents"], module.params["modes"]
    strange = sorted(modes.keys() - contents.keys())
    relative = sorted(name for name in contents if not os.path.isabs(name))
    if strange:
        module.fail_json(msg=f"text_files: modes names {strange[0]}, which is not in contents; correct one of them.")
    if relative:
        module.fail_json(msg=f"text_files: {relative[0]} is no absolute path; begin it with a slash.")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "contents": {"type": "dict", "required": True},
            "modes": {"type": "dict", "default": {}},
            "parents": {"type": "bool", "default": False},
        },
        add_file_common_args=True,
        supports_check_mode=True,
    )
    check(module)
    changed = False
    written: list[str] = []
    differences: list[dict[str, str]] = []
    for name, content in module.params["contents"].items():
        path, wanted = Path(name), str(content).encode("utf-8", "surrogateescape")
        found = before(module, path)
        if found != wanted:
            changed = True
            written.append(name)
            # What was there may be no text.
            texts = ((found or b"").decode("utf-8", "replace"), wanted.decode("utf-8", "replace"))
            differences.append(difference(name, *texts))
            if not module.check_mode:
                write(module, path, wanted)
        if path.exists():
            attributes = {**module.params, "mode": module.params["modes"].get(name, module.params["mode"])}
            common = module.load_file_common_arguments(attributes, path=name)
            changed = module.set_fs_attributes_if_different(common, changed)
    result = {"diff": differences} if module._diff else {}
    module.exit_json(changed=changed, written=written, **result)


if __name__ == "__main__":
    main()
