"""Campaign kills: ansible-playbook is killed at any moment while it makes a cluster or deletes it, and is run again.

One try: an empty account beside what others have, kills while the cluster is made, now and then while what there is of
it is deleted, then a run to the end; the same with the teardown. Of some tries the making is given up, and the teardown
comes after the kills.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable, Sequence

from tests.faults.judge import LEASE, BrokenError, Undisturbed, again, as_normal, clean, internal, untouched
from tests.faults.world import DELETE, MAKE, World

# How often at most before a run comes to its end.
WHILE_MADE, WHILE_DELETED = 10, 6


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many kills it had. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    kills = 0
    for _turn in range(chance.randint(1, WHILE_MADE)):
        kills += _killed(world, MAKE if chance.random() < 0.8 else DELETE, normal, chance, say)
    if chance.random() < 0.7:
        again(world, MAKE)
        as_normal(world, normal)
        untouched(world)
    for _turn in range(chance.randint(1, WHILE_DELETED)):
        kills += _killed(world, DELETE, normal, chance, say)
    again(world, DELETE)
    clean(world)
    return kills


def _killed(
    world: World, playbooks: Sequence[str], normal: Undisturbed, chance: random.Random, say: Callable[[str], None]
) -> bool:
    """Kill it, if it has not come to its end before; whether it was killed."""
    moment, whole = chance.uniform(0, normal.seconds[tuple(playbooks)]), chance.random() < 0.5
    name = " and ".join(playbooks)
    run = world.run(playbooks, functools.partial(operator.lt, moment), whole)
    if internal(run.output):
        raise BrokenError(f"{name} showed {internal(run.output)}")
    # What the one before had started may be in the midst of a call.
    if not run.killed and run.code and not LEASE.search(run.sentence):
        raise BrokenError(f"{name} failed, though nothing stands in its way: {run.sentence}")
    if run.killed:
        say(f"killed {name} after {moment:.1f} s{' with all it started' if whole else ''}")
    return run.killed
