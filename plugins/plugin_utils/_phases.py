# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the callback phases knows of a phase, and of a task in it. Private to this collection."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
# What goes on in each of the collection's playbooks.
ABOUT = {
    "validate": "variables, then the account",
    "network": "VPC, subnets, security groups",
    "compute": "nodes are launched",
    "nodes": "software on the nodes, and a check of each",
    "training": "data, compilation, training, report",
    "teardown": "everything of the cluster is deleted",
    "update_nodes": "software of ParallelCluster's nodes",
    "replace": "other instances for nodes that are out of service",
    "replace_failed": "other instances for nodes that did not pass, and the training",
    "image": "an image for the nodes",
    "diagnose": "logs, faults, remedies",
    "prove": "a small cluster is made, trains and is deleted",
    "prove_look": "what AWS and the node show",
}
# In these phases something is started that goes on, and is paid for, without the run.
LASTING = ("compute", "nodes", "training")


def is_due(seconds: int) -> bool:
    """Whether a phase says at this second that it still goes on: often at first, seldom where it takes hours."""
    if seconds < 60:
        return seconds in (15, 30)
    return seconds % (60 if seconds < 600 else 300 if seconds < 7200 else 1800) == 0


def short(task: Any) -> str:
    """What a task is called, without the collection's name in front of its role."""
    return str(task.get_name()).strip().replace("trainium.cluster.", "", 1)


def is_rescued(task: Any) -> bool:
    """Whether something is there to mend a failure of the task."""
    inner, outer = task, task._parent
    while outer is not None:
        behind = [*getattr(outer, "rescue", []), *getattr(outer, "always", [])]
        if getattr(outer, "rescue", []) and not any(one._uuid == inner._uuid for one in behind):
            return True
        inner, outer = outer, getattr(outer, "_parent", None)
    return False


class Phase:
    """One playbook of a run."""

    def __init__(self, name: str, path: str) -> None:
        self.name, self.started = name, time.monotonic()
        self.about = ABOUT.get(name, "") if path and Path(path).resolve().parent == PLAYBOOKS else ""
        self.seconds = 0.0
        self.hosts: set[str] = set()
        self.changed: set[str] = set()
        self.failed: set[str] = set()
        self.task, self.asked, self.done = "", 0, 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def outcome(self) -> str:
        """``4 hosts, 2 changed, failed: ip-10-0-0-4``; '' for a phase without hosts."""
        if not self.hosts:
            return "no hosts"
        many = f"{len(self.hosts)} host{'s' if len(self.hosts) > 1 else ''}"
        failed = f", failed: {', '.join(sorted(self.failed))}" if self.failed else ""
        return f"{many}, {len(self.changed) or 'none'} changed{failed}"


# What moves the cursor, sets colours and titles, or turns the direction of writing: hosts say what is shown.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(line: str) -> str:
    """A line that does nothing to a terminal but to be shown."""
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], line)
