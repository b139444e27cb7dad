# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter training_report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import report


def training_report(text: Any) -> dict[str, Any]:
    """Steps, first and last loss and throughput of a training's log. Raises AnsibleFilterError for no text."""
    if not isinstance(text, str):
        raise AnsibleFilterError(f"training_report takes the text of a log, not {type(text).__name__}.")
    return report(text)


class FilterModule:
    """The collection's filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"training_report": training_report}
