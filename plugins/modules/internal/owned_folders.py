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
  - trainium.cluster.attributes
attributes:
  diff_mode:
    support: none
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

import errno
import os
import pwd
import stat

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import open_path, refuse_shared


def user_id(owner: str) -> int:
    """Raises TrainiumError."""
    if not owner:
        return os.geteuid()
    try:
        return int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise TrainiumError(f"there is no user {owner} on this host; name one that it has") from None


def called(user: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the id {user}"


def why_not(path: str, error: OSError) -> str:
    said = f"{path} cannot be made a folder ({error.strerror})"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{said}; where an NFS lets root write nothing (root_squash), make it there for its user, who may"
    return f"{said}; remove or mend what is in its way"


def refuse_another(path: str, folder: int, found: os.stat_result, user: int) -> None:
    """What somebody else has put into a folder stays theirs when the folder is given away. Raises TrainiumError."""
    if found.st_uid not in (0, os.geteuid(), user):
        raise TrainiumError(
            f"{path} belongs to {called(found.st_uid)}, who may have put anything into it; look at it, then give it to "
            f"{called(user)} (chown), or give a path of theirs"
        )
    if found.st_uid != user and found.st_mode & stat.S_IWOTH and os.listdir(folder):
        raise TrainiumError(
            f"{path} is open to all, and there is something in it; look at it, and close it (chmod o-w)"
        )


def make(path: str, user: int, mode: int, closed: bool, check: bool) -> bool:
    """Whether something was to be changed. Raises TrainiumError, OSError."""
    look = refuse_shared if closed else None
    changed = False
    try:
        folder = open_path(path, look=look, local=True)
    except FileNotFoundError:
        if check:
            return True
        changed = True
        folder = open_path(path, (user, -1), look, local=True)
    try:
        found = os.fstat(folder)
        refuse_another(path, folder, found, user)
        differs = found.st_uid != user or stat.S_IMODE(found.st_mode) != mode
        if differs and not check:
            os.fchown(folder, user, -1)
            os.fchmod(folder, mode)
    finally:
        os.close(folder)
    return changed or differs


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
