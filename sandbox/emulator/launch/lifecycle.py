"""The states of an instance take time, and each change may be asked for twice; stock moto changes at once.

pending -> running, stopping -> stopped, shutting-down -> terminated. What an instance holds (interfaces, volumes,
capacity) is given back when it is terminated, its Elastic IPs when it begins to shut down. LaunchTime is that of the
last start, in whole seconds; stock moto keeps the first one. An instance may fail late, pending -> terminated.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import moto.ec2.models.instances as models
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends

from sandbox.emulator.errors import refuse
from sandbox.emulator.launch import capacity
from sandbox.emulator.state import CAPACITY, LOCK

_init = models.Instance.__init__
_start = models.Instance.start
_stop = models.Instance.stop
_terminate = models.Instance.terminate

LOG = logging.getLogger("emulator")

TICK = 0.05  # seconds
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}

# (when, state in which the change still applies, instance, change), oldest first: every change takes equally long.
_changes: deque[tuple[float, str, Any, Callable[[Any], Any]]] = deque()
DELAY = {"seconds": 0.0}
# ``failures`` of the launch that this thread is working on: the StateReason of each instance that fails late.
LAUNCH = threading.local()
SHUT_DOWN = "Client.InstanceInitiatedShutdown"
# What EC2 says of them, from the API's reference of StateReason.
REASONS = {
    "Server.InsufficientInstanceCapacity": "There was insufficient capacity available to satisfy the launch request",
    "Server.InternalError": "An internal error caused the instance to terminate during launch",
}


def _set(instance: Any, state: str) -> None:
    instance._state.name, instance._state.code = state, CODES[state]
    if state == "running":
        instance.running_since = time.monotonic()


def _later(instance: Any, state: str, change: Callable[[Any], Any]) -> None:
    """Be in a state for a while, then change; at once where there is no delay."""
    if not DELAY["seconds"]:
        change(instance)
        return
    _set(instance, state)
    _changes.append((time.monotonic() + DELAY["seconds"], state, instance, change))


def _apply_changes() -> None:
    while True:
        with LOCK:
            while _changes and _changes[0][0] <= time.monotonic():
                _when, state, instance, change = _changes.popleft()
                # A reset may have forgotten the instance with its backend, and what its end would give back.
                backend = ec2_backends[instance.ec2_backend.account_id][instance.ec2_backend.region_name]
                if instance._state.name == state and backend.get_instance_by_id(instance.id) is instance:
                    try:
                        change(instance)
                    except Exception:
                        LOG.exception("instance %s", instance.id)
        time.sleep(TICK)


def _created(self: Any, *arguments: Any, **options: Any) -> None:
    _init(self, *arguments, **options)
    self.launch_time = utcnow().replace(microsecond=0)
    failures = getattr(LAUNCH, "failures", None)
    if failures:
        code = failures.pop()
        _later(self, "pending", lambda instance: _fail(instance, code))
    else:
        _later(self, "pending", lambda instance: _set(instance, "running"))


def _fail(instance: Any, code: str) -> None:
    """EC2 could not run it after all: terminated without having run."""
    instance.holds_capacity = True
    _set_addresses_free(instance)
    _end(instance)
    instance._reason = code
    instance.state_reason = models.StateReason(f"{code}: {REASONS.get(code, 'Injected by the sandbox')}", code)


def _started(self: Any) -> Any:
    previous = copy.copy(self._state)
    with LOCK:
        if previous.name not in ("stopped", "running", "pending"):
            _refuse_state(self)
        if previous.name == "stopped":
            key = (self.instance_type, self.availability_zone)
            if CAPACITY.get(key, 1) < 1:
                refuse("InsufficientInstanceCapacity", f"Insufficient capacity of {key[0]} in {key[1]}.")
            if key in CAPACITY:
                CAPACITY[key] -= 1
            _start(self)
            self.launch_time = utcnow().replace(microsecond=0)
            _later(self, "pending", lambda instance: _set(instance, "running"))
    return previous


def _stopped(self: Any) -> Any:
    previous = copy.copy(self._state)
    with LOCK:
        if previous.name in ("terminated", "shutting-down", "pending"):
            _refuse_state(self)
        if previous.name == "running":
            capacity.give_back(self)
            self.capacity_reservation_id = None
            _stop(self)
            _later(self, "stopping", lambda instance: _set(instance, "stopped"))
    return previous


def shut_down(instance_id: str) -> None:
    """The operating system of an instance has shut down: it stops, or ends where it was launched so or is of spot."""
    backends = [backend for regions in list(ec2_backends.values()) for backend in list(regions.values())]
    for instance in filter(None, [backend.get_instance_by_id(instance_id) for backend in backends]):
        ends = instance.instance_initiated_shutdown_behavior == "terminate" or instance.lifecycle == "spot"
        (instance.terminate if ends else instance.stop)()
        instance.state_reason = models.StateReason(f"{SHUT_DOWN}: Instance initiated shutdown", SHUT_DOWN)


def _terminated(self: Any) -> Any:
    previous = copy.copy(self._state)
    with LOCK:
        if previous.name not in ("terminated", "shutting-down"):
            self.holds_capacity = previous.name in ("pending", "running")
            _set_addresses_free(self)
            _later(self, "shutting-down", _end)
    return previous


def _set_addresses_free(instance: Any) -> None:
    interfaces = {eni.id for eni in instance.nics.values()}
    for address in instance.ec2_backend.addresses:
        if address.eni is not None and address.eni.id in interfaces:
            address.eni.public_ip = None
            address.eni = address.instance = address.association_id = None


def _end(instance: Any) -> None:
    """Give back what the instance holds."""
    if instance.holds_capacity:
        capacity.give_back(instance)
    kept = [eni for eni in instance.nics.values() if not eni.delete_on_termination]
    why = instance.state_reason
    _terminate(instance)
    if why.code == SHUT_DOWN:
        instance.state_reason = why
    for eni in kept:
        eni.instance = eni.attachment_id = eni.attach_time = None
        eni.status = "available"


def _refuse_state(instance: Any) -> None:
    refuse("IncorrectInstanceState", f"The instance '{instance.id}' is in the state '{instance._state.name}'.")


def install(pending: float) -> None:
    DELAY["seconds"] = pending
    models.Instance.__init__ = _created
    models.Instance.start = _started
    models.Instance.stop = _stopped
    models.Instance.terminate = _terminated
    if pending:
        threading.Thread(target=_apply_changes, daemon=True).start()
