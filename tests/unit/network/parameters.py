"""SSM's parameters, as far as the lease of a cluster needs them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError


class Ssm:
    """Keeps parameters with their versions; ``asked`` has the calls, ``refused`` codes for the next of a name."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, int]] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refused: dict[str, list[str]] = {}
        self.meta = SimpleNamespace(region_name="us-west-2")

    def _heard(self, call: str, request: dict[str, Any]) -> None:
        self.asked.append((call, request))
        codes = self.refused.get(call, [])
        if codes:
            raise ClientError({"Error": {"Code": codes.pop(0), "Message": "no"}}, call)

    def get_parameter(self, **request: Any) -> dict[str, Any]:
        self._heard("get_parameter", request)
        if request["Name"] not in self.kept:
            raise ClientError({"Error": {"Code": "ParameterNotFound"}}, "GetParameter")
        text, version = self.kept[request["Name"]]
        return {"Parameter": {"Name": request["Name"], "Value": text, "Version": version}}

    def put_parameter(self, **request: Any) -> dict[str, Any]:
        self._heard("put_parameter", request)
        known = self.kept.get(request["Name"])
        if known and not request["Overwrite"]:
            raise ClientError({"Error": {"Code": "ParameterAlreadyExists"}}, "PutParameter")
        version = known[1] + 1 if known else 1
        self.kept[request["Name"]] = (request["Value"], version)
        return {"Version": version}

    def delete_parameter(self, **request: Any) -> dict[str, Any]:
        self._heard("delete_parameter", request)
        if self.kept.pop(request["Name"], None) is None:
            raise ClientError({"Error": {"Code": "ParameterNotFound"}}, "DeleteParameter")
        return {}

    def names(self) -> list[str]:
        return [call for call, _request in self.asked]
