"""Which calls the control API makes fail."""

from __future__ import annotations

from typing import Any

from sandbox.emulator import state


def meeting(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The first fault that meets a call; one that has been used up, or is to let calls pass first, meets none.

    Args:
        entry: service, action and parameters.
    """
    with state.LOCK:
        for fault in state.FAULTS:
            if (
                fault["times"] > 0
                and fault["action"] in (entry["action"], "*")
                and fault.get("service", entry["service"]) == entry["service"]
                and all(str(entry["parameters"].get(k)) == str(v) for k, v in (fault.get("match") or {}).items())
            ):
                if fault["skip"] > 0:
                    fault["skip"] -= 1
                    continue
                fault["times"] -= 1
                return fault
    return None
