"""What the tests of modules for file systems have in common."""

from __future__ import annotations

from typing import Any

Account = Any
Result = dict[str, Any]


class Systems:
    """A module with its usual arguments, and what the API shows."""

    MODULE = ""
    SERVICE = ""

    def __init__(self, cloud: Account) -> None:
        self.cloud, self.client = cloud, cloud.client(self.SERVICE)

    def usual(self) -> dict[str, Any]:
        raise NotImplementedError

    def arguments(self, **changes: Any) -> dict[str, Any]:
        base = {"name": "data", "cluster_name": "c1", "security_groups": [self.cloud.group]}
        full = {**base, **self.usual(), **changes}
        return {key: value for key, value in full.items() if value is not None}

    def run(self, check: bool = False, **changes: Any) -> Result:
        result: Result = self.cloud.run(self.MODULE, self.arguments(**changes), check)
        assert not result.get("failed"), result.get("msg")
        return result

    def refused(self, check: bool = False, **changes: Any) -> str:
        result = self.cloud.run(self.MODULE, self.arguments(**changes), check)
        assert result.get("failed"), result
        return str(result["msg"])

    def shown(self) -> list[Result]:
        found: list[Result] = self.client.describe_file_systems()["FileSystems"]
        return found
