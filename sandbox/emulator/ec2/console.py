"""GetConsoleOutput: what the instance's host has told; stock moto gives the same text for every instance."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.responses import EC2Response
from moto.ec2.utils import Base64EncodedString

from sandbox.emulator import state

# What EC2 keeps, in characters.
KEPT = 64 * 1024


def get_console_output(self: EC2Response) -> Any:
    self.error_on_dryrun()
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    text = state.CONSOLES.get(instance.id, "")[-KEPT:]
    output = {"Output": Base64EncodedString.from_raw_string(text)} if text else {}
    return ActionResult({"InstanceId": instance.id, "Timestamp": utcnow(), **output})


def install() -> None:
    EC2Response.get_console_output = get_console_output
