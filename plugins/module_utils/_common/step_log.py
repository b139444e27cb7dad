# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the log of a training says, whoever wrote the script. Pure.

* Neuron's BERT, Llama 3 8B of NeuronX Distributed, and the collection's own (``Logger.log`` of their scripts):
  ``LOG Wed Dec 21 00:51:01 2022 - (0, 14) step_loss : 10.7011 learning_rate : 2.80e-06 throughput : 6449.36``
* Llama 3 70B of NeuronX Distributed (tp_pp_llama_hf_pretrain/logger.py), which counts from 0:
  ``step 13 step_time 3.2s throughput 51.0 seq/s step loss 10.7011 grad norm 1.5``
* NeMo, by the bar of Lightning, as the Neuron documentation shows it; ``global_step`` has but three digits there:
  ``Epoch 0:   0%|   | 189/301501 [59:12<1573:03:24, 18.79s/it, reduced_train_loss=7.560, global_step=188.0]``
* The Hugging Face Trainer and Optimum Neuron's (transformers, ProgressCallback.on_log), where the bar has the step:
  ``  1%|   | 12/1000 [00:45<1:02:03,  3.77s/it]``, then ``{'loss': 10.7, 'learning_rate': 5e-05, 'epoch': 0.01}``
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_NUMBER = r"([-+0-9.eEnaif]+)"
# Bounded, so that no line takes long to look at and no step has more digits than a counter.
_WHERE = r"LOG .{1,80}? - \(([0-9]{1,15}), ([0-9]{1,15})\)"
_LINE = re.compile(rf"{_WHERE}\s+step_loss : {_NUMBER}\s+learning_rate : {_NUMBER}\s+throughput : {_NUMBER}")


# What tqdm draws after its description; a training's bar has none with Hugging Face.
_BAR = r"[0-9]{1,3}%\|.{0,400}?\| ([0-9]{1,15})/([0-9]{1,15}) \[([^\]]{0,2000})\]"
_PIPELINE = re.compile(
    rf"\bstep ([0-9]{{1,15}}) step_time {_NUMBER}s throughput {_NUMBER} seq/s step loss {_NUMBER}(?:\s|$)"
)
_LIGHTNING = re.compile(rf"Epoch ([0-9]{{1,9}}): (?::\s*)?\s*{_BAR}")
_TRAINER_BAR = re.compile(rf"^\s*{_BAR}")
_TRAINER = re.compile(r"\{(?=[^{}]{0,2000}'loss': )[^{}]{1,2000}\}")
_PAIR = re.compile(rf"([a-z_]{{1,40}})(?:'?: '?|=){_NUMBER}")
_PACE = re.compile(r", +([0-9.]{1,20})(s/it|it/s)")


class Step(NamedTuple):
    """One logged step; ``throughput`` in examples a second, ``pace`` in seconds a step. nan is what no line says."""

    epoch: int
    step: int
    loss: float
    learning_rate: float = math.nan
    throughput: float = math.nan
    pace: float = math.nan

    def shown(self) -> dict[str, Any]:
        """As modules return it: None for what no line says."""
        rates = {name: getattr(self, name) for name in ("learning_rate", "throughput")}
        known = {name: None if math.isnan(value) else value for name, value in rates.items()}
        return {"epoch": self.epoch, "step": self.step, "loss": self.loss, **known}


class StepReader:
    """Reads a log line by line, in its order: what a line means may be said by the one before."""

    def __init__(self) -> None:
        self._bar = (0, math.nan)

    def step(self, line: str) -> Step | None:
        """The step that a line logs; None for any other line, a torn one among them."""
        try:
            return self._tutorial(line) or self._pipeline(line) or self._lightning(line) or self._trainer(line)
        except (ValueError, OverflowError):
            return None

    @staticmethod
    def _tutorial(line: str) -> Step | None:
        found = _LINE.search(line)
        return Step(int(found[1]), int(found[2]), *map(float, found.groups()[2:])) if found else None

    @staticmethod
    def _pipeline(line: str) -> Step | None:
        found = _PIPELINE.search(line)
        if not found:
            return None
        pace, throughput, loss = map(float, found.groups()[1:])
        return Step(0, int(found[1]) + 1, loss, throughput=throughput, pace=pace)

    @staticmethod
    def _lightning(line: str) -> Step | None:
        found = _LIGHTNING.search(line)
        if not found:
            return None
        epoch, done, total = map(int, found.groups()[:3])
        said = dict(_PAIR.findall(found[4]))
        loss = said.get("reduced_train_loss", said.get("train_loss", said.get("loss")))
        if not loss or not done:
            return None
        rate, throughput = (float(said[name]) if name in said else math.nan for name in ("lr", "throughput"))
        return Step(epoch, epoch * total + done, float(loss), rate, throughput, _pace(found[4]))

    def _trainer(self, line: str) -> Step | None:
        drawn = _TRAINER_BAR.search(line)
        if drawn:
            self._bar = (int(drawn[1]), _pace(drawn[3]))
        found = _TRAINER.search(line)
        if not found:
            return None
        said = dict(_PAIR.findall(found[0]))
        number, pace = self._bar
        number = int(said.get("step", number))
        rate = float(said["learning_rate"]) if "learning_rate" in said else math.nan
        epoch = int(float(said.get("epoch", "0")))
        return Step(epoch, number, float(said["loss"]), rate, pace=pace) if number and "loss" in said else None


def _pace(text: str) -> float:
    found = _PACE.search(text)
    if not found or not float(found[1]):
        return math.nan
    return float(found[1]) if found[2] == "s/it" else 1 / float(found[1])


def parse_log(text: str) -> list[Step]:
    """The steps of a log in their order. A step that was done twice, as after a restart, counts once: the later one."""
    steps = {step.step: step for step in map(StepReader().step, text.splitlines()) if step}
    return [steps[number] for number in sorted(steps)]


def last_step(text: str) -> Step | None:
    """The last step that a log shows."""
    steps = parse_log(text)
    return steps[-1] if steps else None


def report(text: str) -> dict[str, Any]:
    """The summary of a training: ``steps``, ``initial_loss``, ``final_loss``, ``throughput``.

    ``throughput`` is the median of the second half, when start-up and caches no longer count. Without a step in the log
    the losses and the throughput are None, and the throughput where no line says it.
    """
    steps = parse_log(text)
    if not steps:
        return {"steps": 0, "initial_loss": None, "final_loss": None, "throughput": None}
    rates = sorted(step.throughput for step in steps[len(steps) // 2 :] if not math.isnan(step.throughput))
    return {
        "steps": steps[-1].step,
        "initial_loss": steps[0].loss,
        "final_loss": steps[-1].loss,
        "throughput": rates[len(rates) // 2] if rates else None,
    }


def step_text(step: Mapping[str, Any], steps: int | None) -> str:
    """A logged step for the screen: ``step 14 of 100, loss 10.70, 6449.4 examples/s``."""
    of = f" of {steps}" if steps else ""
    rate = "" if step["throughput"] is None else f", {step['throughput']:.1f} examples/s"
    return f"step {step['step']}{of}, loss {step['loss']:.2f}{rate}"


# As C's asctime writes it, whatever the locale: Wed Dec 21 00:51:01 2022
_DATE = re.compile(
    r"LOG (?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4}) - "
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def time_of(line: str) -> int | None:
    """Seconds since 1970 of a line's date, taken as UTC; None where it has none or one that no calendar has."""
    found = _DATE.search(line)
    if not found or found.group(1) not in _MONTHS:
        return None
    month = _MONTHS.index(found.group(1)) + 1
    day, hour, minute, second, year = map(int, found.groups()[1:])
    if year < 1970 or not 1 <= day <= calendar.monthrange(year, month)[1] or hour > 23 or minute > 59 or second > 60:
        return None
    return calendar.timegm((year, month, day, hour, minute, second))
