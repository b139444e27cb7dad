# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which numbers of nodes a model can be spread over that is cut into tensors, layers and sequences. Pure.

NeuronX Distributed refuses other numbers when all nodes are there and the script has begun (parallel_state.py,
initialize_model_parallel), and takes fewer cores for a tensor, silently, where there are fewer processes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._training.checks import RefusedError

# As NeuronX Distributed's scripts and Optimum Neuron's trainers call them.
SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")


def check_nodes(whole: Mapping[str, Any], count: int, least: int) -> None:
    """Raise RefusedError where the job's processes, on ``count`` nodes or on ``least`` of them, are no whole copies."""
    given = {name: int(str(whole["args"][name])) for name in SIZES if _is_size(whole["args"].get(name))}
    copy, processes = math.prod(given.values()), whole["processes_per_node"]
    key = "min_nodes" if int(whole["min_nodes"]) else "nodes"
    if copy > 1 and processes != "auto":
        step = copy // math.gcd(copy, int(processes))
        if count % step or (step > 1 and least != count):
            cut = " x ".join(f"{name} {size}" for name, size in given.items())
            raise RefusedError(
                "nodes" if count % step else key,
                count if count % step else least,
                f"{cut} of its args takes {copy} processes or a multiple, and a node has {processes}: use "
                + (f"a multiple of {step} nodes" if count % step else "as many as nodes"),
            )
    if least != count and whole["args"].get("start_resume") == "nxd" and whole["checkpoint"]["resume"]:
        advice = (
            f"its checkpoints have a part of the optimizer's state for each of {count} nodes, and fewer cannot go on "
            "from them: use as many as nodes, or set checkpoint.resume to false"
        )
        raise RefusedError(key, least, advice)


def _is_size(value: Any) -> bool:
    return not isinstance(value, bool) and re.fullmatch(r"[1-9][0-9]{0,8}", str(value)) is not None
