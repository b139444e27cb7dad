# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to ask of a compute fleet in the state that it is in. Pure."""

from __future__ import annotations

# What is wanted: its status, the status on the way to it, and what is asked for.
_STATES = {
    "running": ("RUNNING", "STARTING", "START_REQUESTED"),
    "stopped": ("STOPPED", "STOPPING", "STOP_REQUESTED"),
}
WANTED = {wanted: states[0] for wanted, states in _STATES.items()}


def fleet_request(wanted: str, status: str) -> str:
    """``START_REQUESTED`` or ``STOP_REQUESTED``, '' where the fleet is there or on its way.

    A PROTECTED fleet, which ParallelCluster sets when nodes fail to boot again and again, is started by a new request.
    """
    return "" if status in _STATES[wanted] else _STATES[wanted][-1]


def fleet_stuck(wanted: str, status: str) -> str:
    """Why the fleet will not become what is wanted; '' while it may."""
    if wanted == "running" and status == "PROTECTED":
        return (
            "the fleet is PROTECTED, because nodes failed to boot again and again; "
            "read clustermgtd's log on the head node (pcluster_logs), cure the cause and start it again"
        )
    other = "stopped" if wanted == "running" else "running"
    if status in _STATES[other]:
        return f"the fleet is {status}: something else {'stopped' if other == 'stopped' else 'started'} it meanwhile"
    return ""
