"""Wait conditions and their signals; stock moto has no wait condition at all.

A handle's Ref is a URL to which the head node PUTs a JSON document, as ``cfn-signal`` does: Status (SUCCESS or
FAILURE), Reason, UniqueId and Data. Where nobody runs the hosts, ``state.WAITING`` says what happens instead.
"""

from __future__ import annotations

import json
import os
import time
import urllib.parse
from typing import Any

from moto.moto_api._internal import mock_random

from sandbox.emulator import state
from sandbox.emulator.cloudformation.resource import Resource

PATH = "/wait-conditions/"
# Token of a handle -> UniqueId -> signal.
SIGNALS: dict[str, dict[str, dict[str, str]]] = {}


def base_url() -> str:
    """Where the hosts reach the emulator."""
    return os.environ.get("EMULATOR_PUBLIC_URL") or f"http://127.0.0.1:{os.environ.get('MOTO_PORT', '5199')}"


def signal(token: str, body: bytes) -> bool:
    """Take a signal in; false where there is no such handle.

    Raises:
        ValueError: the body is not a signal.
    """
    if token not in SIGNALS:
        return False
    document = json.loads(body or b"{}")
    if not isinstance(document, dict) or document.get("Status") not in ("SUCCESS", "FAILURE"):
        raise ValueError("Status must be SUCCESS or FAILURE")
    SIGNALS[token][str(document.get("UniqueId", ""))] = {key: str(value) for key, value in document.items()}
    return True


class Handle(Resource):
    """AWS::CloudFormation::WaitConditionHandle."""

    def create(self) -> None:
        token = mock_random.get_random_hex(32)
        SIGNALS[token] = {}
        name = urllib.parse.quote(f"{self.context['StackId']}/{self.context['LogicalId']}", safe="")
        self.identity = f"{base_url()}{PATH}{token}?{name}"

    def remove(self) -> None:
        SIGNALS.pop(token_of(self.identity), None)


def token_of(url: str) -> str:
    """The token in a handle's URL."""
    return urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]


class Condition(Resource):
    """AWS::CloudFormation::WaitCondition: met, failed, or still to be waited for."""

    def create(self) -> None:
        self.began = time.monotonic()
        self.token = token_of(self.properties.get("Handle", ""))
        self.count = int(self.properties.get("Count", 1))
        self.timeout = float(self.properties.get("Timeout", 43200))  # seconds
        self.done = False

    def signals(self) -> dict[str, dict[str, str]]:
        return SIGNALS.get(self.token, {})

    def outcome(self) -> tuple[bool, str | None] | None:
        """None while it waits, else whether it was met, and why not."""
        for unique, document in self.signals().items():
            if document["Status"] == "FAILURE":
                text = document.get("Reason", "")
                return False, f"WaitCondition received failed message: '{text}' for uniqueId: {unique}"
        if len(self.signals()) >= self.count:
            return True, None
        waited = time.monotonic() - self.began
        if state.WAITING["mode"] != "signal" and waited >= state.WAITING["delay"]:
            self.stand_in()
            return self.outcome()
        if waited >= self.timeout:
            received = len(self.signals())
            return False, f"WaitCondition timed out. Received {received} conditions when expecting {self.count}"
        return None

    def stand_in(self) -> None:
        """The signal of a head node that nobody runs."""
        status = "FAILURE" if state.WAITING["mode"] == "fail" else "SUCCESS"
        for number in range(self.count):
            document = {"Status": status, "Reason": state.WAITING["reason"], "Data": ""}
            SIGNALS.setdefault(self.token, {})[f"stand-in-{number}"] = document

    def get_cfn_attribute(self, name: str) -> Any:
        """``Data``: what the signals carried, by their unique id."""
        return json.dumps({unique: document.get("Data", "") for unique, document in self.signals().items()})
