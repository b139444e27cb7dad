"""Every EC2 action honours DryRun, and one that is not there says so; stock moto forgets the first for many actions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import moto.core.responses as core
from botocore import xform_name
from botocore.loaders import Loader
from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

from sandbox.emulator.errors import refuse

Handler = Callable[[EC2Response], Any]


def _dry(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def wrapper(self: EC2Response) -> Any:
        self.error_on_dryrun()
        return handler(self)

    return wrapper


def _missing(action: str) -> Handler:
    def handler(self: EC2Response) -> Any:
        refuse("InvalidAction", f"The action {action} is not valid for this web service: the sandbox does not have it.")

    return handler


def _returning_true(name: str) -> None:
    """Stock moto answers this action without the field that clients look at."""
    stock = getattr(EC2Response, name)

    def action(self: EC2Response) -> Any:
        self.error_on_dryrun()
        stock(self)
        return ActionResult({"Return": True})

    setattr(EC2Response, name, action)


def install() -> None:
    """Last of all, when every action is in place."""
    for direction in ("ingress", "egress"):
        _returning_true(f"update_security_group_rule_descriptions_{direction}")
    operations = Loader().load_service_model("ec2", "service-2")["operations"]
    for action in operations:
        name = xform_name(action)
        handler = getattr(EC2Response, name, None)
        if handler is None:
            setattr(EC2Response, name, _missing(action))
        elif "error_on_dryrun" not in handler.__code__.co_names:
            setattr(EC2Response, name, _dry(handler))
    # Stock moto looks through all methods of the class at every request.
    core.method_names_from_class = functools.cache(core.method_names_from_class)
