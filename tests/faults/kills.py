"""Campaign kills: ansible-playbook is killed at any moment while it makes a cluster or deletes it, and is run again.

One try: an empty account beside what others have, one to three kills while the cluster is made, a run to the end; the
same with the teardown. Of some tries the making is given up, and the teardown comes after the kill.
"""

from __future__ import annotations

import functools
import operator
import random
import re
import time
from collections.abc import Callable, Sequence

from tests.faults.world import DELETE, MAKE, Run, World, internal

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
    if missing := world.missing():
        raise BrokenError(f"what belongs to others is gone: {missing}")


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
            raise BrokenError(f"{' and '.join(playbooks)} after a kill: {run.sentence}")


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many kills it had. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    kills = _killed(world, MAKE, normal, chance, say)
    if chance.random() < 0.7:
        again(world, MAKE)
        world.settled()
        if world.ours() != normal.ours:
            raise BrokenError(f"after {kills} kills there is {difference(world.ours(), normal.ours)}")
        untouched(world)
    kills += _killed(world, DELETE, normal, chance, say)
    again(world, DELETE)
    clean(world)
    return kills


def difference(found: dict[str, int], wanted: dict[str, int]) -> str:
    kinds = sorted({kind for kind in {**found, **wanted} if found.get(kind) != wanted.get(kind)})
    return ", ".join(f"{found.get(kind, 0)} {kind} in place of {wanted.get(kind, 0)}" for kind in kinds)


def _killed(
    world: World, playbooks: Sequence[str], normal: Undisturbed, chance: random.Random, say: Callable[[str], None]
) -> int:
    """Kill it once to three times, until it comes to its end before the kill; how often it was killed."""
    number = 0
    for _turn in range(chance.randint(1, 3)):
        moment, whole = chance.uniform(0, normal.seconds[tuple(playbooks)]), chance.random() < 0.5
        run = world.run(playbooks, functools.partial(operator.lt, moment), whole)
        if internal(run.output):
            raise BrokenError(f"{' and '.join(playbooks)} showed {internal(run.output)}")
        if not run.killed:
            if run.code:
                raise BrokenError(f"{' and '.join(playbooks)} after {number} kills: {run.sentence}")
            break
        number += 1
        say(f"killed {' and '.join(playbooks)} after {moment:.1f} s{' with all it started' if whole else ''}")
    return number
