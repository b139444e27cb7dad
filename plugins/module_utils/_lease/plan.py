# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who works on a cluster, as it stands in a parameter of SSM, and whether somebody else may. Pure.

The write is a conditional one: PutParameter without Overwrite refuses a name that exists (ParameterAlreadyExists).
Standard parameters cost nothing.
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


def holder_of(text: str) -> Holder:
    """The holder that a parameter tells; one that tells nothing is somebody's all the same."""
    try:
        said = json.loads(text)
        return Holder(**{name: type(default)(said[name]) for name, default in _NOBODY._asdict().items()})
    except (KeyError, TypeError, ValueError):
        return _NOBODY


_NOBODY = Holder("somebody", "a machine that is not told", "", 0, "", "a time that is not told")


def refusal(cluster: str, region: str, holder: Holder) -> str:
    return (
        f"{holder.owner} has been working on the cluster {cluster} in {region} since {holder.since}, on {holder.host} "
        f"(process {holder.pid}); wait until that run has ended, or set trainium_break_lease to true if it is dead"
    )
