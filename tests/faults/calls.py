"""Campaign calls: three in ten calls of AWS go wrong while a cluster is made and deleted, and descriptions lag behind.

What is made under it is either right, or one sentence says what was in the way; after that a run in good weather makes
it right, or a teardown in good weather leaves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.faults.judge import Undisturbed, again, as_normal, clean, judged, reason, untouched
from tests.faults.world import DELETE, MAKE, World

SHARE, LATE, LAG = 0.3, 30.0, 10.0


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many calls went wrong. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    # In nine tries of ten late answers come within two seconds, so that a try takes minutes and not an hour.
    weather = {"share": SHARE, "seed": seed, "late": LATE if chance.random() < 0.1 else 2.0}
    world.api.control("POST", "weather", weather)
    world.api.control("POST", "lag", {"seconds": chance.choice((0.0, LAG)), "seed": seed})
    made = world.run(MAKE)
    judged(made.output, made.code)
    say(f"made in bad weather: {'well' if made.code == 0 else reason(made.output)}")
    gave_up = made.code and chance.random() < 0.5
    met = good_weather(world)
    if not made.code:
        as_normal(world, normal)
    if not gave_up:
        again(world, MAKE)
        as_normal(world, normal)
        untouched(world)
    world.api.control("POST", "weather", {**weather, "seed": f"{seed} teardown"})
    gone = world.run(DELETE)
    judged(gone.output, gone.code)
    say(f"deleted in bad weather: {'well' if gone.code == 0 else reason(gone.output)}")
    met += good_weather(world)
    if gone.code:
        again(world, DELETE)
    clean(world)
    return met


def good_weather(world: World) -> int:
    """From now on all is well; how many calls were not."""
    met: dict[str, int] = world.api.control("GET", "weather")
    for path in ("weather", "lag"):
        world.api.control("DELETE", path)
    return sum(met.values())
