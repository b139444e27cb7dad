# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lookup trainium.cluster.internal.unchecked."""

from __future__ import annotations

DOCUMENTATION = r"""
name: unchecked
version_added: 0.3.0
short_description: Whether the variables of a role are still to be checked in this run
author:
  - The trainium.cluster founders (@trainium)
description:
  - M(trainium.cluster.internal.validate), as a task of a role, remembers until the run ends which values of the role's
    variables it has found right; the same values on another host are right as well.
  - This tells whether a value has changed since, or was never checked, and templates none.
options:
  _terms:
    description: The folder of the role.
    type: list
    elements: path
    required: true
"""

EXAMPLES = r"""
- name: Refuse values that cannot work
  trainium.cluster.internal.validate:
    rules:
      - {variable: slurm_memory_percent, kind: whole, minimum: 1, maximum: 100}
  when: lookup('trainium.cluster.internal.unchecked', role_path) == 'yes'
"""

RETURN = r"""
_raw:
  description: V(yes), or V(no) where all are as they were when they were found right.
  type: list
  elements: str
  sample: ["yes"]
"""

from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible_collections.trainium.cluster.plugins.plugin_utils._checked import is_checked


class LookupModule(LookupBase):
    """Nothing but the variables as they are written is looked at."""

    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        return ["no" if is_checked(Path(str(term)), variables or {}) else "yes" for term in terms]
