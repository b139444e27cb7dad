#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: owned_folders
version_added: 0.1.0
short_description: Make folders of a user where that user may lay links
description:
  - Makes folders and gives them to a user, without following a link that anybody but root and the user of this module
    has laid, in whatever part of the path. M(ansible.builtin.file) looks at the last part only.
  - Links of root are followed where they lie on the host's own disks, and what they lead to is given to the user. On a
    file system of the network, root may be that of another machine.
  - A folder that is there and is of another user is refused, and one that is open to all with something in it, since
    what lies there would stay that of others.
  - Folders that are missing on the way are made with the mode V(0755) for the user of this module.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  paths:
    description: The folders, by their absolute paths.
    type: list
    elements: path
    required: true
  owner:
    description: The user to whom they belong; empty means the one of this module.
    type: str
    default: ""
  mode:
    description: Their mode, in octal digits.
    type: str
    default: "0755"
  closed:
    description: Whether to refuse a path in which anybody but root could put another folder in the place of one.
    type: bool
    default: false
  variable:
    description: The variable that says where they are; a refusal begins with it.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Make the folder of jobs
  trainium.cluster.internal.owned_folders:
    paths: [/fsx/trainium]
    owner: ubuntu
  become: true
"""

RETURN = r"""# The usual values only."""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.owned import make, user_id, why_not


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "required": True},
            "owner": {"type": "str", "default": ""},
            "mode": {"type": "str", "default": "0755"},
            "closed": {"type": "bool", "default": False},
            "variable": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    given = module.params
    about = given["variable"] or "owned_folders"
    changed = False
    for path in given["paths"]:
        try:
            user, mode = user_id(given["owner"]), int(given["mode"], 8)
            changed = make(path, user, mode, given["closed"], module.check_mode) or changed
        except TrainiumError as error:
            module.fail_json(msg=f"{about}: {error}.")
        except OSError as error:
            module.fail_json(msg=f"{about}: {why_not(path, error)}.")
        except ValueError:
            module.fail_json(msg=f"{about}: the mode '{given['mode']}' is not octal; write it as 0755.")
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
