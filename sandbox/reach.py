"""Whether hosts that were started answer over ssh, as EC2's status checks look at instances that were launched."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

SSH = 22
# Some boot beside others on two processors; one that takes longer does not come.
SECONDS_TO_BOOT = 150.0
SECONDS_BETWEEN_LOOKS = 5.0
# The machine and its hosts are on one bridge.
SECONDS_TO_ANSWER = 1.0


def answers(address: str) -> bool:
    """Whether the host at an address accepts connections for ssh."""
    try:
        with socket.create_connection((address, SSH), timeout=SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False


class Reach:
    """The hosts that have not answered since they were started, by their instances."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, answers: Callable[[str], bool] = answers) -> None:
        self._clock, self._answers = clock, answers
        self._since: dict[str, float] = {}
        self._looked: dict[str, float] = {}

    def started(self, instance_id: str) -> None:
        self._since[instance_id] = self._looked[instance_id] = self._clock()

    def forget(self, instance_id: str) -> None:
        """It was stopped, or is gone."""
        self._since.pop(instance_id, None)
        self._looked.pop(instance_id, None)

    def is_late(self, instance_id: str, address: str) -> bool:
        """Whether a host should have answered by now and does not; that is said once for each start."""
        now = self._clock()
        if instance_id not in self._since or now - self._looked[instance_id] < SECONDS_BETWEEN_LOOKS:
            return False
        self._looked[instance_id] = now
        reached = self._answers(address)
        late = now - self._since[instance_id] > SECONDS_TO_BOOT
        if reached or late:
            self.forget(instance_id)
        return late and not reached
