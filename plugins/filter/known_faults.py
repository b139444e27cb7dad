# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters known_faults and without_secrets; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose import recognise as planner
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked_lines


def known_faults(value: Any) -> list[dict[str, Any]]:
    """The known faults that logs show."""
    if not isinstance(value, Mapping):
        raise AnsibleFilterError("known_faults needs a dictionary, source to its text, lines or events.")
    logs: dict[str, list[str]] = {}
    for source, content in value.items():
        for name, lines in planner.sections(str(source), _text(str(source), content)).items():
            logs.setdefault(name, []).extend(lines)
    return planner.known_faults(logs)


def _text(source: str, content: Any) -> str:
    """A text, a list of lines, or a list of events, as one text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(item, str) for item in content):
        return "\n".join(content)
    if isinstance(content, list) and all(isinstance(item, Mapping) and "message" in item for item in content):
        return "\n".join(f"{item.get('time', '')} {item['message']}" for item in content)
    raise AnsibleFilterError(
        f"known_faults: {source} is neither a text, nor a list of lines, nor a list of events with time and message."
    )


def without_secrets(value: Any) -> str:
    """A text whose secrets are masked."""
    if not isinstance(value, str):
        raise AnsibleFilterError(f"without_secrets needs a text, not {type(value).__name__}.")
    return "\n".join(masked_lines(value.split("\n")))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[[Any], Any]]:
        return {"known_faults": known_faults, "without_secrets": without_secrets}
