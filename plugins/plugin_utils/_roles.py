# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Templates of several roles in one task of a play that knows the roles' variables. Private to this collection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROLES = Path(__file__).resolve().parents[2] / "roles"


def templar_of(templar: Any, role: str, variables: Mapping[str, Any]) -> Any:
    """A templar with these variables, whose lookups find what lies in the role, as in one of the role's own tasks."""
    folder = str(ROLES / role)
    search = [folder, f"{folder}/tasks", *variables.get("ansible_search_path", [])]
    return templar.copy_with_new_env(
        available_variables={**variables, "role_path": folder, "role_name": role, "ansible_search_path": search}
    )
