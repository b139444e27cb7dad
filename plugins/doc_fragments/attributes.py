# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What every module of the collection says: who made it, and about check mode, diff mode and repetition."""

from __future__ import annotations

_ATTRIBUTES = r"""
author:
  - The trainium.cluster founders (@trainium)
options: {}
attributes:
  check_mode:
    description: Can run in check mode and return how it would change things, without changing them.
    support: full
  diff_mode:
    description: Shows what was and what is, or would be, in diff mode.
    support: %s
  idempotent:
    description: When run twice in a row with the same arguments, the second time changes nothing.
    support: full
"""


class ModuleDocFragment:
    """A module names the attributes in which it differs.

    C(trainium.cluster.attributes.info) is for modules that change nothing, C(trainium.cluster.attributes.no_diff) for
    those that show no differences, and C(trainium.cluster.attributes.aws), beside one of the others, for those that
    call AWS.
    """

    # Annotated, as ansible-test's yamllint wants plain assignments to be literals.
    DOCUMENTATION: str = _ATTRIBUTES % "full"
    NO_DIFF: str = _ATTRIBUTES % "none"
    INFO: str = _ATTRIBUTES % "N/A\n    details: Changes nothing."
    AWS = r"""
options: {}
attributes:
  action_group:
    description: Takes its defaults from C(module_defaults) of the group V(trainium.cluster.aws).
    support: full
    membership:
      - trainium.cluster.aws
"""
