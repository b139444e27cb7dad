# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This is documentation only: the action plugin of the same name does the work.

from __future__ import annotations

DOCUMENTATION = r"""
module: long_command
version_added: 0.1.0
short_description: Run a command that takes minutes, and say that it goes on
description:
  - Runs a command as M(ansible.builtin.command) does, with a limit of time that the host itself keeps, and shows after
    10, 20, 40 and so on seconds that it goes on.
  - Costs the host nothing while it waits, unlike C(async) with C(poll), which starts a program there at each look.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
attributes:
  check_mode:
    support: partial
    details: The command is skipped.
  idempotent:
    support: none
options:
  argv:
    description: The command and its arguments, as for M(ansible.builtin.command).
    type: list
    elements: str
    required: true
  chdir:
    description: The folder in which the command runs.
    type: path
  creates:
    description: A file; where it is there, the command is not run.
    type: path
  timeout:
    description: Seconds after which the command is ended.
    type: int
    default: 3600
requirements:
  - timeout of the coreutils, on the host
"""

EXAMPLES = r"""
- name: Install the packages
  trainium.cluster.internal.long_command:
    argv: [/opt/venv/bin/pip, install, torch]
    timeout: 1800
"""

RETURN = r"""
rc:
  description: The exit code of the command, or 124 where it took too long.
  returned: always
  type: int
stdout:
  description: What the command printed.
  returned: always
  type: str
stderr:
  description: What it printed to the standard error.
  returned: always
  type: str
"""
