"""Campaign expiry: the credentials' time is over at any moment while a cluster is made or deleted.

Every call from then on is refused as AWS refuses it. The run ends soon and says so; with new credentials the next one
succeeds, and nothing is there twice or left.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from tests.contract.conftest import CREDENTIALS
from tests.faults.judge import BrokenError, Undisturbed, again, as_normal, clean, judged, reason, untouched
from tests.faults.world import DELETE, MAKE, World

KEYS = itertools.count(1)
# Seconds to the end of a run whose every call is refused.
SOON = 90.0


def attempt(world: World, normal: Undisturbed, seed: str, say: Callable[[str], None]) -> int:
    """One try; how many calls were refused. Raises BrokenError."""
    chance = random.Random(seed)  # noqa: S311
    world.empty()
    try:
        made, met = _refused(world, MAKE, chance.uniform(0, 0.9 * normal.seconds[MAKE]), say)
        if made:
            # Before the next run would mend it.
            as_normal(world, normal)
        again(world, MAKE)
        as_normal(world, normal)
        untouched(world)
        deleted, more = _refused(world, DELETE, chance.uniform(0, 0.9 * normal.seconds[DELETE]), say)
        # The lease may have stayed, since whoever gives it back at the end was refused as well.
        if deleted and (left := [one for one in world.left() if not one.startswith("parameters ")]):
            raise BrokenError(f"a teardown that was refused calls says that it succeeded, and left {', '.join(left)}")
        again(world, DELETE)
        clean(world)
    finally:
        world.access_key = CREDENTIALS["AWS_ACCESS_KEY_ID"]
    return met + more


def _refused(world: World, playbooks: Sequence[str], moment: float, say: Callable[[str], None]) -> tuple[bool, int]:
    """Whether a run did all its work although its credentials expired, and how many calls were refused.

    The next run has others; who is left of this one goes on with those that have expired.
    """
    # Its own in each try: who is left of an earlier one has another.
    over, world.access_key = False, f"expires-{next(KEYS)}"

    def expire(seconds: float) -> bool:
        nonlocal over
        if not over and seconds >= moment:
            refuse = {"share": 1.0, "kinds": ["expired"], "access_key": world.access_key}
            world.api.control("POST", "weather", refuse)
            over = True
        return False

    run = world.run(playbooks, expire)
    met = sum(world.api.control("GET", "weather").values()) if over else 0
    world.access_key = f"new-{next(KEYS)}"
    judged(run.output, run.code)
    said = reason(run.output) if run.code else "nothing, since all was done"
    say(f"{' and '.join(playbooks)} after {moment:.1f} s, {met} calls refused: {said}")
    if run.code and "expired" not in said:
        raise BrokenError(f"the credentials had expired, and {' and '.join(playbooks)} said: {said}")
    if run.seconds > moment + SOON:
        late = run.seconds - moment
        raise BrokenError(f"{' and '.join(playbooks)} went on for {late:.0f} s with expired credentials")
    return not run.code, met
