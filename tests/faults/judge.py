"""What was promised of a cluster, and what is seen of a run: by these the campaigns judge."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence

from tests.faults.world import DELETE, MAKE, Run, World

# What only a mistake of ours, or one of a module that we call, would say.
CODE = re.compile(
    r"Traceback|MODULE FAILURE|[Uu]nhandled exception|Unexpected (failure|templating)|Finalization of task|<class '|"
    r"NoneType|object is not|object of type|argument of type|has no (attribute|element)|is undefined|unhashable|"
    r"unsupported operand|not supported between|(Key|Index|Type|Attribute)Error|Error\('|index out of|\(<unknown>|"
    r"conditional check|while evaluating|[Ss]yntax error|cannot be checked"
)
# A campaign's try: the world, what is normal, the seed, and where to tell what happens; how many faults it had.
Attempt = Callable[["World", "Undisturbed", str, Callable[[str], None]], int]
# Another run takes the lease at the same time, as one that has not ended yet.
LEASE = re.compile(r"another run takes the lease of the cluster \S+ at the same time; try again")
# The run before has not ended for some seconds yet, as a worker that is in the midst of a call.
PATIENCE = 60


class BrokenError(Exception):
    """What was promised did not hold; the text says what."""


class Undisturbed:
    """How long each takes, and what is there then."""

    def __init__(self, world: World) -> None:
        world.empty()
        made = world.run(MAKE)
        if made.code:
            raise BrokenError(f"an undisturbed run failed: {made.sentence}")
        world.settled()
        self.ours = world.ours()
        gone = world.run(DELETE)
        if gone.code:
            raise BrokenError(f"an undisturbed teardown failed: {gone.sentence}")
        clean(world)
        self.seconds: dict[tuple[str, ...], float] = {MAKE: made.seconds, DELETE: gone.seconds}

    def named(self) -> dict[str, float]:
        return {" and ".join(playbooks): seconds for playbooks, seconds in self.seconds.items()}


def clean(world: World, seconds: float = 20) -> None:
    """There is nothing but what others have, and all of that."""
    until = time.monotonic() + seconds
    # The lease is given back by a process that looks once a second.
    while (left := world.left()) and time.monotonic() < until:
        time.sleep(0.5)
    if left:
        raise BrokenError(f"left behind: {', '.join(sorted(left))}")
    untouched(world)


def untouched(world: World) -> None:
    if touched := world.touched():
        raise BrokenError(f"changed or gone, though it belongs to others: {', '.join(touched)}")


def as_normal(world: World, normal: Undisturbed) -> None:
    """There are as many of each kind as after a run that nothing disturbed."""
    world.settled()
    if (ours := world.ours()) != normal.ours:
        raise BrokenError(f"there is {difference(ours, normal.ours)}")


def again(world: World, playbooks: Sequence[str]) -> Run:
    """The next run, which ends well; while the one before is still in a call it is told so, and tries again."""
    until = time.monotonic() + PATIENCE
    while True:
        run = world.run(playbooks)
        if internal(run.output):
            raise BrokenError(f"{' and '.join(playbooks)} showed {internal(run.output)}")
        if not run.code:
            return run
        if not LEASE.search(run.sentence) or time.monotonic() > until:
            raise BrokenError(f"{' and '.join(playbooks)} failed, though nothing stands in its way: {run.sentence}")


def difference(found: dict[str, int], wanted: dict[str, int]) -> str:
    kinds = sorted({kind for kind in {**found, **wanted} if found.get(kind) != wanted.get(kind)})
    return ", ".join(f"{found.get(kind, 0)} {kind} in place of {wanted.get(kind, 0)}" for kind in kinds)


def internal(output: str) -> str:
    """What a user should never see of an output, with what stands around it; '' where there is nothing."""
    seen = CODE.search(output)
    return output[max(0, seen.start() - 200) : seen.start() + 600] if seen else ""


def reason(output: str) -> str:
    """What the task said at which a run ended; '' where it said nothing."""
    lines = [line for line in output.splitlines() if re.match(r"(fatal|failed): \[", line)]
    for line in reversed(lines):
        found = re.search(r'"msg": ("(?:[^"\\]|\\.)*")', line)
        if found:
            return str(json.loads(found[1]))
    return ""


def judged(output: str, code: int) -> None:
    """A run that failed says why, and shows nothing of the code."""
    if seen := internal(output):
        raise BrokenError(f"a run showed {seen}")
    if code and not reason(output):
        raise BrokenError(f"a run that failed did not say why: {output[-600:]}")
