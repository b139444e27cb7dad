"""Instances are pending for a while, and terminating twice is allowed; both differ in stock moto."""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from typing import Any

import moto.ec2.models.instances as models

from sandbox.emulator.state import CAPACITY, LOCK

_init = models.Instance.__init__
_terminate = models.Instance.terminate

TICK = 0.05  # seconds

# (when it becomes running, instance), oldest first.
_pending: deque[tuple[float, Any]] = deque()


def _terminate_once(self: Any) -> Any:
    """Give capacity and addresses back, once."""
    if self._state.name == "terminated":
        return copy.copy(self._state)
    with LOCK:
        key = (self.instance_type, self.availability_zone)
        if key in CAPACITY:
            CAPACITY[key] += 1
        interfaces = {eni.id for eni in self.nics.values()}
        for address in self.ec2_backend.addresses:
            if address.eni is not None and address.eni.id in interfaces:
                address.eni = address.instance = address.association_id = None
        return _terminate(self)


def _become_running() -> None:
    while True:
        while _pending and _pending[0][0] <= time.monotonic():
            instance = _pending.popleft()[1]
            if instance._state.name == "pending":
                instance._state.name, instance._state.code = "running", 16
        time.sleep(TICK)


def install(pending: float) -> None:
    models.Instance.terminate = _terminate_once
    if not pending:
        return

    def start(self: Any, *arguments: Any, **options: Any) -> None:
        _init(self, *arguments, **options)
        self._state.name, self._state.code = "pending", 0
        _pending.append((time.monotonic() + pending, self))

    models.Instance.__init__ = start
    threading.Thread(target=_become_running, daemon=True).start()
