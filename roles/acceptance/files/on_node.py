# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Slurm runs it as prolog and epilog of a node's jobs: a node that cannot train fails, and is drained with the reason.

Slurm drains a node whose prolog or epilog fails, and puts the job of a prolog back into the queue ("Prolog and Epilog
Guide", Failure Handling), with words that say nothing. So it is drained here first: of a node that is drained already
Slurm keeps the reason (slurmctld/node_mgr.c, _drain_node). The guide's advice to call no commands of Slurm is for what
runs with every job; this does with one that fails.

ParallelCluster gives a drained node a reason of its own and replaces it (aws-parallelcluster-node, clustermgtd), so
what was found is also written where it outlives both.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import judge
from ansible_collections.trainium.cluster.plugins.module_utils._node.observe import observe
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import drain_reason, reasons_of


def keep(path: str, reason: str) -> None:
    """A line of a file that all nodes share; in one call, since others write as well."""
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {os.environ.get('SLURMD_NODENAME', '?')} {reason}\n"
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        os.write(file, line.encode())
        os.close(file)
    except OSError as error:
        print(f"{path} cannot be written: {error.strerror}", file=sys.stderr)


def main(when: str, settings: str, accepted: Path, found: str = "") -> int:
    """The exit code. What a check after a job has found good needs none before the next."""
    if when == "before" and accepted.exists():
        return 0
    wanted = json.loads(Path(settings).read_text(encoding="utf-8"))
    reasons = reasons_of(check._asdict() for check in judge(observe(wanted), wanted, wanted["skip"]))
    if not reasons:
        accepted.touch()
        return 0
    accepted.unlink(missing_ok=True)
    print(drain_reason(reasons), file=sys.stderr)
    if found:
        keep(found, drain_reason(reasons))
    try:
        calls.update_node(os.environ["SLURMD_NODENAME"], "state=drain", f"reason={drain_reason(reasons)}")
    except (TrainiumError, KeyError) as error:
        print(f"The reason cannot be told to Slurm: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:5]))
