"""Tries mutants: each in a process of its own world, by the tests that run it, until one notices."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.mutants import confine, session
from tests.mutants.baseline import Baseline
from tests.mutants.mutant import Mutant

NOTICED, HUNG, SURVIVED, UNREACHED = "noticed", "hung", "survived", "no test runs it"
# How much longer than without a mutant the tests may take, on a machine that is busy.
FACTOR, MORE = 8.0, 60.0
# pytest's own codes: tests failed, or could not even be collected with the mutant.
NOTICING = (1, 2, 3)


@dataclass
class Verdict:
    """How a mutant fared, in so many seconds and by so many tests; ``slow``: how long slow ones were allowed."""

    mutant: Mutant
    what: str
    seconds: float = 0.0
    tests: int = 0
    slow: float = 0.0

    @property
    def noticed(self) -> bool:
        return self.what in (NOTICED, HUNG)


class Choice:
    """Which tests a mutant is tried by: those that take seconds first, then others up to some time."""

    def __init__(self, fast: Baseline, slow: Baseline | None, most: float) -> None:
        self._fast, self._slow, self._most = fast, slow, most

    def stages(self, mutant: Mutant) -> Iterator[tuple[list[str], float]]:
        """Lists of tests, with the seconds that they took without a mutant."""
        tests = self._fast.by_line(mutant) or self._fast.by_file(mutant, exact=False)
        if tests:
            yield tests, sum(self._fast.seconds[test] for test in tests)
        if self._slow:
            tests, taken = [], 0.0
            ways = (self._slow.by_line(mutant), self._slow.by_file(mutant, exact=True))
            for test in dict.fromkeys([*ways[0], *ways[1]]):
                if tests and taken + self._slow.seconds[test] > self._most:
                    break
                tests.append(test)
                taken += self._slow.seconds[test]
            if tests:
                yield tests, taken


class _Trial:
    """A mutant that is being tried."""

    def __init__(self, root: Path, mutant: Mutant, text: str, stages: Iterator[tuple[list[str], float]]) -> None:
        self._root, self._mutant, self._text, self._stages = root, mutant, text, stages
        self._started = time.monotonic()
        self._pid, self._until, self._tests = 0, 0.0, 0
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is as long as the process
        self.verdict = None if self._next() else self._ended(UNREACHED)

    def _next(self) -> bool:
        stage = next(self._stages, None)
        if stage is None:
            return False
        tests, seconds = stage
        self._tests += len(tests)
        self._until = time.monotonic() + MORE + FACTOR * seconds
        changed = {self._root / self._mutant.path: self._text}
        self._pid = confine.start(self._root, lambda: session.mutated(changed, tests, self._log.fileno()))
        return True

    def _ended(self, what: str) -> Verdict:
        self._log.close()
        return Verdict(self._mutant, what, round(time.monotonic() - self._started, 1), self._tests)

    def look(self) -> Verdict | None:
        """The verdict, once there is one."""
        if self.verdict:
            return self.verdict
        code = confine.finished(self._pid)
        if code is None:
            if time.monotonic() < self._until:
                return None
            self.stop()
            return self._ended(HUNG)
        if code in NOTICING:
            return self._ended(NOTICED)
        if code not in (0, 5):
            # 137 and the like: the mutant took pytest itself with it.
            if code < 120 or code == 125:
                raise confine.ConfinementError(f"pytest ended with code {code}: {self._said()}")
            return self._ended(NOTICED)
        return None if self._next() else self._ended(SURVIVED)

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]

    def stop(self) -> None:
        confine.kill(self._pid)


def tried(
    root: Path, mutants: Iterable[Mutant], choice: Choice, jobs: int, until: float, show: Callable[[Verdict], None]
) -> bool:
    """Tries mutants until all are tried or the time has come; whether all were."""
    waiting = iter(mutants)
    running: list[_Trial] = []
    try:
        while True:
            late = time.monotonic() > until
            while len(running) < jobs and not late:
                mutant = next(waiting, None)
                if mutant is None:
                    break
                text = mutant.apply((root / mutant.path).read_text(encoding="utf-8"))
                running.append(_Trial(root, mutant, text, choice.stages(mutant)))
            if not running:
                return not late or next(waiting, None) is None
            for trial in list(running):
                verdict = trial.look()
                if verdict:
                    running.remove(trial)
                    show(verdict)
            if late:
                break
            time.sleep(0.02)
        return False
    finally:
        for trial in running:
            if not trial.verdict:
                trial.stop()


def warm() -> None:
    """Imports what tests import, before the first fork; nothing of the collection, of which each run has its own."""
    for name in ("ansible.template", "ansible.parsing.dataloader", "ansible.module_utils.basic", "boto3", "hypothesis"):
        __import__(name)
    # Their messages would be on the screen.
    os.environ.setdefault("ANSIBLE_DEPRECATION_WARNINGS", "False")
