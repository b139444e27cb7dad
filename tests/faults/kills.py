"""Campaign kills: ansible-playbook is killed at any moment while it makes a cluster or deletes it, and is run again.

One try: an empty account beside what others have, one to three kills while the cluster is made, a run to the end; the
same with the teardown. Of some tries the making is given up, and the teardown comes after the kill.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable, Sequence

from tests.faults.judge import BrokenError, Undisturbed, again, as_normal, clean, internal, untouched
from tests.faults.world import DELETE, MAKE, World


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many kills it had. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    kills = _killed(world, MAKE, normal, chance, say)
    if chance.random() < 0.7:
        again(world, MAKE)
        as_normal(world, normal)
        untouched(world)
    kills += _killed(world, DELETE, normal, chance, say)
    again(world, DELETE)
    clean(world)
    return kills


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
