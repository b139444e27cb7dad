"""Campaign pairs: a second run begins at any moment of the first, of the same user or of another, to make or to delete.

At most one of them works on the cluster. The other one says who does, or whose it is, and has touched nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.faults.judge import BrokenError, Undisturbed, again, as_normal, clean, judged, reason, untouched
from tests.faults.world import DELETE, MAKE, OWNER, World

REFUSED = re.compile(
    r"has been working on the cluster|takes the lease of the cluster \S+ at the same time|belongs to \S+, and you are"
)


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many runs were refused. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    # Often both begin at once, where they are most in each other's way.
    moment = chance.uniform(0, chance.choice((1.0, normal.seconds[MAKE])))
    owner, playbooks = chance.choice((OWNER, "another")), chance.choice((MAKE, DELETE))
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(world.run, MAKE)
        second = world.run(playbooks, after=moment, trainium_owner=owner)
        first = working.result()
    refused = 0
    for who, run in (("the first", first), (f"{' and '.join(playbooks)} of {owner} after {moment:.1f} s", second)):
        judged(run.output, run.code)
        said = reason(run.output) if run.code else "it worked"
        say(f"{who}: {said}")
        if run.code and not REFUSED.search(said):
            raise BrokenError(f"{who} met the other one and said: {said}")
        refused += bool(run.code)
    # Of two owners the cluster is that of the one who came first.
    theirs = first.code and not second.code and playbooks == MAKE
    world.variables["trainium_owner"] = owner if theirs else OWNER
    try:
        # Before the next run would mend it. Of two that worked, the same owner's teardown may have come first or last.
        if theirs or (not first.code and (second.code or owner != OWNER or playbooks == MAKE)):
            as_normal(world, normal)
        elif first.code and not second.code:
            clean(world)
        again(world, MAKE)
        as_normal(world, normal)
        untouched(world)
        again(world, DELETE)
        clean(world)
    finally:
        world.variables["trainium_owner"] = OWNER
    return refused
