"""When what was made shows, by a clock that is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.emulator.server import lag
from sandbox.emulator.server.lag import Lag
from tests.unit.passing_time import Clock

MADE = b"<x><vpcId>vpc-0123456789abcdef0</vpcId><groupId>sg-0123456789abcdef0</groupId></x>"
VPC = "vpc-0123456789abcdef0"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(1000)
    monkeypatch.setattr(lag, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def asked(action: str, service: str = "ec2", **parameters: str) -> dict[str, Any]:
    return {"service": service, "action": action, "parameters": parameters}


def test_it_shows_after_at_most_the_seconds_that_were_said(clock: Clock) -> None:
    seen = Lag()
    seen.change({"seconds": 30, "seed": "1"})
    seen.made(asked("CreateVpc"), "200 OK", MADE)
    look = asked("DescribeVpcs", VpcId=VPC)
    # What the answer names beside it was there before.
    assert seen.hidden() == {VPC}
    assert seen.refusal(look) == (400, "InvalidVpcID.NotFound", f"The ID '{VPC}' does not exist")
    assert seen.refusal(asked("DescribeVpcs", **{"Filter.1.Value.1": VPC})) is None
    assert seen.refusal(asked("DeleteVpc", VpcId=VPC)) is None
    waited = 0
    while seen.hidden():
        clock.sleep(1)
        waited += 1
    assert 1 < waited <= 30
    assert seen.refusal(look) is None


def test_that_it_is_named_again_does_not_make_it_later(clock: Clock) -> None:
    seen = Lag()
    seen.change({"seconds": 30, "seed": "1"})
    seen.made(asked("CreateVpc"), "200 OK", MADE)
    clock.sleep(31)
    seen.made(asked("CreateVpc"), "200 OK", MADE)
    assert seen.hidden() == set()


@pytest.mark.parametrize(
    ("made", "status", "seconds"),
    [
        (asked("CreateVpc"), "200 OK", 0),
        (asked("CreateVpc"), "400 Bad Request", 30),
        (asked("DescribeVpcs"), "200 OK", 30),
        (asked("CreateVpc", service="eks"), "200 OK", 30),
    ],
)
@pytest.mark.usefixtures("clock")
def test_nothing_lags(made: dict[str, Any], status: str, seconds: float) -> None:
    seen = Lag()
    seen.change({"seconds": seconds})
    seen.made(made, status, MADE)
    assert seen.hidden() == set()
