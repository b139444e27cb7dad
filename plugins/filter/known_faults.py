# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filters known_faults and without_secrets; documented in the YAML files beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose import recognise as planner
from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked_lines
from ansible_collections.trainium.cluster.plugins.plugin_utils._filters import filter_module, takes


@takes(Mapping, "a dictionary, source to its text, lines or events")
def known_faults(value: Any) -> list[dict[str, Any]]:
    """The known faults that logs show."""
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
    raise ValueError(f"{source} is neither a text, nor a list of lines, nor a list of events with time and message")


@takes(str, "a text")
def without_secrets(value: Any) -> str:
    """A text whose secrets are masked."""
    return "\n".join(masked_lines(value.split("\n")))


FilterModule = filter_module(known_faults, without_secrets)
