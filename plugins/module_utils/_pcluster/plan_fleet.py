# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to ask of a compute fleet in the state that it is in. Pure."""

from __future__ import annotations

WANTED = {"running": "RUNNING", "stopped": "STOPPED"}
_REQUESTS = {"running": "START_REQUESTED", "stopped": "STOP_REQUESTED"}
_ON_THE_WAY = {
    "running": ("RUNNING", "STARTING", "START_REQUESTED"),
    "stopped": ("STOPPED", "STOPPING", "STOP_REQUESTED"),
}


def fleet_request(wanted: str, status: str) -> str:
    """``START_REQUESTED`` or ``STOP_REQUESTED``, '' where the fleet is there or on its way.

    A PROTECTED fleet, which ParallelCluster sets when nodes fail to boot again and again, is started by a new request.
    """
    return "" if status in _ON_THE_WAY[wanted] else _REQUESTS[wanted]


def fleet_stuck(wanted: str, status: str) -> str:
    """Why the fleet will not become what is wanted; '' while it may."""
    if wanted == "running" and status == "PROTECTED":
        return (
            "the fleet is PROTECTED, because nodes failed to boot again and again; "
            "read clustermgtd's log on the head node (pcluster_logs), cure the cause and start it again"
        )
    if wanted == "running" and status in ("STOPPED", "STOPPING", "STOP_REQUESTED"):
        return f"the fleet is {status}: something else stopped it meanwhile"
    if wanted == "stopped" and status in ("RUNNING", "STARTING", "START_REQUESTED"):
        return f"the fleet is {status}: something else started it meanwhile"
    return ""
