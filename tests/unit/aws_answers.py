"""Clients of AWS whose calls a test answers, from whichever thread they come; nothing leaves this machine."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

Item = dict[str, Any]
REGION = "us-west-2"


class Aws:
    """``answers`` by the names of calls, or what makes them of the request; ``asked`` has each call and its request."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[str, Item]] = []
        # Several threads ask at the same time.
        self._mine = threading.local()

    def client(self, service: str) -> Any:
        create: Any = boto3.client
        made = create(service, region_name=REGION, aws_access_key_id="id", aws_secret_access_key="secret")
        made.meta.events.register("provide-client-params.*.*", self._heard)
        made.meta.events.register("before-call.*.*", self._answer)
        return made

    def _heard(self, params: Item, model: Any, **_more: Any) -> None:
        self._mine.request = dict(params)
        self.asked.append((model.name, dict(params)))

    def _answer(self, model: Any, params: Any, context: Any, **_more: Any) -> tuple[AWSResponse, Item]:
        answer = self.answers.get(model.name, {})
        if callable(answer):
            answer = answer(self._mine.request)
        if isinstance(answer, str):
            raise ClientError({"Error": {"Code": answer, "Message": f"{answer} it is"}}, model.name)
        done = {"RequestId": "1", "HTTPStatusCode": 200, "HTTPHeaders": {}}
        made: Any = AWSResponse
        return made("https://aws", 200, {}, None), {**answer, "ResponseMetadata": done}

    def last(self, name: str) -> Item:
        """The request of the last call of a name."""
        return next(request for call, request in reversed(self.asked) if call == name)

    def names(self) -> set[str]:
        return {call for call, _request in self.asked}

    def filters(self, name: str) -> dict[str, list[str]]:
        """The filters of its last call."""
        request = self.last(name)
        return {one["Name"]: one["Values"] for one in request.get("Filters") or request.get("Filter") or ()}
