# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who works on a cluster, as it stands in a parameter of SSM, and whether somebody else may. Pure.

The first write is a conditional one: PutParameter without Overwrite refuses a name that exists
(ParameterAlreadyExists). Each later one counts the version up by one, so that of two that write at the same time at
most one gets the next number.
The parameter stays while the cluster does, since SSM wants 30 seconds between the deletion of a name and its next
creation (DeleteParameter in its API reference). Standard parameters cost nothing.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Holder(NamedTuple):
    """A run: who started it, on which machine (``machine`` is the same only for the same boot), as which process."""

    owner: str
    host: str
    machine: str
    pid: int
    started: str
    since: str

    def is_run(self, other: Holder) -> bool:
        """Whether both are the same run."""
        return (self.machine, self.pid, self.started) == (other.machine, other.pid, other.started)


def parameter_name(cluster: str) -> str:
    return f"/trainium/{cluster}/lease"


def text_of(holder: Holder) -> str:
    return json.dumps(holder._asdict(), sort_keys=True)


def holder_of(text: str) -> Holder | None:
    """The holder that a parameter tells, None where it is free; one that tells nothing is somebody's all the same."""
    if text == FREE:
        return None
    try:
        said = json.loads(text)
        texts = {name: _plain(str(said[name])) for name in Holder._fields if name != "pid"}
        return Holder(pid=int(said["pid"]), **texts)
    except (KeyError, TypeError, ValueError):
        return _SOMEBODY


def _plain(text: str) -> str:
    """Fit for a terminal: whoever may write the parameter has written it."""
    return "".join(one if one.isprintable() else "?" for one in text)[:256]


FREE = "free"
_SOMEBODY = Holder("somebody", "a machine that is not told", "", 0, "", "a time that is not told")


def refusal(cluster: str, region: str, holder: Holder) -> str:
    return (
        f"{holder.owner} has been working on the cluster {cluster} in {region} since {holder.since}, on {holder.host} "
        f"(process {holder.pid}); wait until that run has ended, or, if that machine or process is gone, run again "
        "with trainium_break_lease=true"
    )
