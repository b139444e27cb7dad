# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the log of a training says. Pure.

The line is that of the Neuron BERT tutorial's script:
``LOG Wed Dec 21 00:51:01 2022 - (0, 14) step_loss : 10.7011 learning_rate : 2.80e-06 throughput : 6449.36``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_NUMBER = r"([-+0-9.eEnaif]+)"
# Bounded, so that no line takes long to look at and no step has more digits than a counter.
_WHERE = r"LOG .{1,80}? - \(([0-9]{1,15}), ([0-9]{1,15})\)"
_LINE = re.compile(rf"{_WHERE}\s+step_loss : {_NUMBER}\s+learning_rate : {_NUMBER}\s+throughput : {_NUMBER}")


class Step(NamedTuple):
    """One logged step; ``throughput`` in examples a second."""

    epoch: int
    step: int
    loss: float
    learning_rate: float
    throughput: float


def parse_line(line: str) -> Step | None:
    """The step that a line logs; None for any other line, a torn one among them."""
    found = _LINE.search(line)
    if not found:
        return None
    epoch, step, *numbers = found.groups()
    try:
        loss, rate, throughput = map(float, numbers)
    except ValueError:
        return None
    return Step(int(epoch), int(step), loss, rate, throughput)


def parse_log(text: str) -> list[Step]:
    """The steps of a log in their order. A step that was done twice, as after a restart, counts once: the later one."""
    steps = {step.step: step for step in map(parse_line, text.splitlines()) if step}
    return [steps[number] for number in sorted(steps)]


def last_step(text: str) -> Step | None:
    """The last step that a log shows."""
    steps = parse_log(text)
    return steps[-1] if steps else None


def report(text: str) -> dict[str, Any]:
    """The summary of a training: ``steps``, ``initial_loss``, ``final_loss``, ``throughput``.

    ``throughput`` is the median of the second half, when start-up and caches no longer count. Without a step in the log
    the losses and the throughput are None.
    """
    steps = parse_log(text)
    if not steps:
        return {"steps": 0, "initial_loss": None, "final_loss": None, "throughput": None}
    rates = sorted(step.throughput for step in steps[len(steps) // 2 :])
    return {
        "steps": steps[-1].step,
        "initial_loss": steps[0].loss,
        "final_loss": steps[-1].loss,
        "throughput": rates[len(rates) // 2],
    }


def step_text(step: Mapping[str, Any], steps: int | None) -> str:
    """A logged step for the screen: ``step 14 of 100, loss 10.70, 6449.4 examples/s``."""
    of = f" of {steps}" if steps else ""
    return f"step {step['step']}{of}, loss {step['loss']:.2f}, {step['throughput']:.1f} examples/s"
