"""Network interfaces of AWS's services stay a little longer than what they were for; stock moto's go with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moto.ec2.models import EC2Backend

from sandbox.emulator.records import store

LINGERS = 1.0


def _leaving(ec2: EC2Backend) -> dict[str, dict[str, Any]]:
    return store(ec2, "lingering_interfaces")


def leave(ec2: EC2Backend, identity: str, seconds: float = 0.0) -> None:
    """What an interface was for is gone; so is the interface, some seconds later."""
    _leaving(ec2)[identity] = {"until": time.monotonic() + LINGERS + seconds}


def let_go(ec2: EC2Backend) -> None:
    """Forget the interfaces whose time is over."""
    left = _leaving(ec2)
    for identity in [key for key, one in list(left.items()) if time.monotonic() >= one["until"]]:
        left.pop(identity, None)
        if identity in ec2.enis:
            ec2.enis[identity].status = "available"
            ec2.delete_network_interface(identity)


def _after_letting_go(method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(self: EC2Backend, *arguments: Any, **options: Any) -> Any:
        let_go(self)
        return method(self, *arguments, **options)

    return wrapper


def install() -> None:
    """After what refuses to delete what is in use."""
    for name in ("get_all_network_interfaces", "delete_security_group", "delete_subnet", "detach_internet_gateway"):
        setattr(EC2Backend, name, _after_letting_go(getattr(EC2Backend, name)))
