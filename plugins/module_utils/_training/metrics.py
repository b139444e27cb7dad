# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All that a training's log says, step by step and start by start. Pure.

Beside the lines of steps (training_log.py) a log has ``JOB nodes=2 processes=64`` at each start of the job,
``JOB versions {json}``, and ``training: resumed from step 50`` where a checkpoint was loaded. A job that Slurm starts
again goes on in the same log.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.step_log import StepReader, time_of

_START = re.compile(r"JOB nodes=([0-9]{1,9}) processes=([0-9]{1,9})\s*$")
_VERSIONS = re.compile(r"JOB versions (\{.*\})\s*$")
# A name or a number of a version as the job script writes them. Jobs write logs, and what comes of them is put into
# variables of Ansible: nothing that Jinja could take for a template.
_WORD = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
_RESUMED = re.compile(r"training: resumed from step ([0-9]{1,15})\s*$")
# Part of the steady throughput that a start has reached when it counts as warm.
_WARM = 0.9


class Sample(NamedTuple):
    """A step that counts; ``time`` in seconds since 1970 with the node's clock taken as UTC, None where no date is."""

    step: int
    epoch: int
    loss: float
    learning_rate: float
    throughput: float
    time: int | None
    segment: int


class Segment(NamedTuple):
    """One start of the job. ``redone``: steps of it that a later start did again; they are not in ``steps``."""

    number: int
    nodes: int
    processes: int
    resumed_from: int | None
    first_step: int | None
    last_step: int | None
    steps: int
    redone: int
    throughput: float | None
    warm_up: int
    started_at: int | None
    ended_at: int | None


class Metrics(NamedTuple):
    """What a log says; the samples by rising step."""

    samples: list[Sample]
    segments: list[Segment]
    versions: dict[str, str]


def _versions(line: str) -> dict[str, str]:
    found = _VERSIONS.search(line)
    if not found:
        return {}
    try:
        values = json.loads(found.group(1))
    except (ValueError, RecursionError):
        return {}
    words = {str(name): str(value) for name, value in values.items() if value is not None}
    return {name: word for name, word in words.items() if _WORD.fullmatch(name) and _WORD.fullmatch(word)}


def versions_of(text: str) -> dict[str, str]:
    """The versions that a log names; what has another form than a version's is left out."""
    return {name: word for line in text.splitlines() for name, word in _versions(line).items()}


class _Reader:
    """Collects what the lines say, in their order."""

    def __init__(self) -> None:
        self.samples: dict[int, Sample] = {}
        self.starts: list[dict[str, Any]] = []
        self.versions: dict[str, str] = {}
        self.fresh = False
        self.steps = StepReader()

    def start(self, nodes: int, processes: int) -> None:
        self.starts.append({"nodes": nodes, "processes": processes, "resumed_from": None, "times": [], "redone": 0})
        self.fresh = True

    def rewind(self, step: int) -> None:
        """Steps after this one were lost with the start that did them."""
        for number in [number for number in self.samples if number > step]:
            self.starts[self.samples.pop(number).segment - 1]["redone"] += 1

    def sample(self, line: str) -> None:
        step = self.steps.step(line)
        if not step:
            return
        if not self.starts:
            self.start(0, 0)
        if self.fresh:
            self.rewind(step.step - 1)
            self.fresh = False
        time = time_of(line)
        before = self.samples.get(step.step)
        # A progress bar, which has no date, shows a step more than once.
        if before and (time is not None or before.segment != len(self.starts)):
            self.starts[before.segment - 1]["redone"] += 1
        if time is not None:
            self.starts[-1]["times"].append(time)
        self.samples[step.step] = Sample(
            step.step, step.epoch, step.loss, step.learning_rate, step.throughput, time, len(self.starts)
        )

    def line(self, line: str) -> None:
        started, resumed = _START.search(line), _RESUMED.search(line)
        if started:
            self.start(int(started.group(1)), int(started.group(2)))
        elif resumed and self.starts:
            self.starts[-1]["resumed_from"] = int(resumed.group(1))
            self.rewind(int(resumed.group(1)))
        elif "JOB versions" in line:
            self.versions.update(_versions(line))
        else:
            self.sample(line)


def parse(texts: Iterable[str], running: bool = False) -> Metrics:
    """The logs of one job, in their order, as one. A step counts once: the later one.

    Where the job is ``running``, a last line without its end may be half a line, and does not count.
    """
    reader = _Reader()
    for text in texts:
        lines = text.splitlines(keepends=True)
        if running and lines and not lines[-1].endswith("\n"):
            lines.pop()
        for line in lines:
            reader.line(line)
    samples = [reader.samples[number] for number in sorted(reader.samples)]
    segments = [
        _segment(number, start, [sample for sample in samples if sample.segment == number])
        for number, start in enumerate(reader.starts, start=1)
    ]
    return Metrics(samples, segments, reader.versions)


def _segment(number: int, start: dict[str, Any], samples: Sequence[Sample]) -> Segment:
    rates = [sample.throughput for sample in samples]
    times = start["times"]
    return Segment(
        number,
        start["nodes"],
        start["processes"],
        start["resumed_from"],
        samples[0].step if samples else None,
        samples[-1].step if samples else None,
        len(samples),
        start["redone"],
        steady(rates),
        warm_up(rates),
        min(times, default=None),
        max(times, default=None),
    )


def steady(rates: Sequence[float]) -> float | None:
    """The median of the second half, when start-up and caches no longer count; None where there is none."""
    second_half = sorted(rate for rate in rates[len(rates) // 2 :] if math.isfinite(rate))
    return second_half[len(second_half) // 2] if second_half else None


def warm_up(rates: Sequence[float]) -> int:
    """How many steps pass before the throughput first reaches nine tenths of the steady one."""
    wanted = steady(rates)
    if wanted is None or wanted <= 0:
        return 0
    return next((steps for steps, rate in enumerate(rates) if rate >= _WARM * wanted), len(rates))


def window_of(count: int) -> int:
    """Over how many steps to average: a twentieth of all, from 1 to 100."""
    return max(1, min(100, count // 20))


def averages(values: Sequence[float], window: int) -> list[float | None]:
    """The mean of each value and those before it in the window. What is no number is left out; None where all are."""
    kept: deque[float] = deque()
    result: list[float | None] = []
    for value in values:
        kept.append(value)
        if len(kept) > window:
            kept.popleft()
        known = [number for number in kept if drawable(number)]
        # Rounding must not carry a mean past its own values.
        result.append(min(max(math.fsum(known) / len(known), min(known)), max(known)) if known else None)
    return result


def drawable(value: float) -> bool:
    """Whether a value has a place on an axis: no nan, no inf, and nothing absurdly far out."""
    return math.isfinite(value) and abs(value) <= 1e30
