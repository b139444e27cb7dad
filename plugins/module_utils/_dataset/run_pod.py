# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the pod of a dataset's Job runs: the module dataset without Ansible, with its progress in the pod's log.

It lies in an archive with all that it imports (see _kubernetes/dataset.py), so nothing here may need more than Python.
"""

from __future__ import annotations

import gzip
import json
import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as planner
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.run_host import run

# What state.py of _kubernetes looks for.
MARK = "DATASET"
SECONDS_BETWEEN_LINES = 5


def _say(line: str) -> None:
    """In the pod's log, at once."""
    sys.stdout.write(f"{MARK} {line}\n")
    sys.stdout.flush()


def _end(_number: int, _frame: Any) -> None:
    raise SystemExit(143)


def bring(request: Mapping[str, Any], seconds: int = SECONDS_BETWEEN_LINES) -> int:
    """Fetch and follow; the code to end with. What an earlier pod has left is gone on with."""
    attempt, shown = uuid.uuid4().hex, ""
    while True:
        try:
            result = run({**request, "attempt": attempt, "wait": seconds}, False)
        except (TrainiumError, ValueError) as error:
            _say(f"{error}.")
            return 1
        if result["complete"]:
            size = planner.human(sum(int(file["size"]) for file in result["files"]))
            _say(f"{len(result['files'])} files with {size} are in place")
            return 0
        if result["progress"] != shown:
            shown = result["progress"]
            _say(shown)


def main(argv: Sequence[str]) -> int:
    # The first process of a container is not ended by a signal that it does not take.
    signal.signal(signal.SIGTERM, _end)
    try:
        request = json.loads(gzip.decompress(Path(argv[1]).read_bytes()))
    except (OSError, EOFError, ValueError) as error:
        _say(f"what is to be fetched cannot be read ({error}); run training.yml again.")
        return 1
    return bring(request)
