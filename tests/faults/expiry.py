"""Campaign expiry: the credentials' time is over at any moment while a cluster is made or deleted.

Every call from then on is refused as AWS refuses it. The run ends soon and says so; with new credentials the next one
succeeds, and nothing is there twice or left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.faults.judge import BrokenError, Undisturbed, again, as_normal, clean, judged, reason, untouched
from tests.faults.world import DELETE, MAKE, World

# Seconds to the end of a run whose every call is refused.
SOON = 90.0


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many calls were refused. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    met = _refused(world, MAKE, chance.uniform(0, normal.seconds[MAKE]), say)
    again(world, MAKE)
    as_normal(world, normal)
    untouched(world)
    met += _refused(world, DELETE, chance.uniform(0, normal.seconds[DELETE]), say)
    again(world, DELETE)
    clean(world)
    return met


def _refused(world: World, playbooks: Sequence[str], moment: float, say: Callable[[str], None]) -> int:
    over = False

    def expire(seconds: float) -> bool:
        nonlocal over
        if not over and seconds >= moment:
            world.api.control("POST", "weather", {"share": 1.0, "kinds": ["expired"]})
            over = True
        return False

    run = world.run(playbooks, expire)
    counted: dict[str, int] = world.api.control("GET", "weather")
    world.api.control("DELETE", "weather")
    met = sum(counted.values())
    judged(run.output, run.code)
    said = reason(run.output) if run.code else "nothing, since it was done"
    say(f"{' and '.join(playbooks)} after {moment:.1f} s, {met} calls refused: {said}")
    if run.code and "expired" not in said:
        raise BrokenError(f"the credentials had expired, and {' and '.join(playbooks)} said: {said}")
    if run.seconds > moment + SOON:
        raise BrokenError(
            f"{' and '.join(playbooks)} went on for {run.seconds - moment:.0f} s with expired credentials"
        )
    return met
