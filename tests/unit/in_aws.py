"""A module of AWS in this process, which talks to clients of the test's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule

from tests.in_process import ended

Item = dict[str, Any]


class Module:
    def __init__(
        self, module: ModuleType, clients: Mapping[str, Any], patch: pytest.MonkeyPatch, capsys: Any, usual: Item
    ) -> None:
        def client(_module: object, service: str, **more: str) -> Any:
            self.asked.append((service, more.get("region", "")))
            return clients[service]

        self.asked: list[tuple[str, str]] = []
        self.warned: list[str] = []
        if hasattr(module, "warn"):
            # Where the controller has been imported as well, Ansible would show it there.
            patch.setattr(module, "warn", self.warned.append)
        self._main: Callable[[], None] = module.main
        self._capsys, self._usual = capsys, usual
        patch.setattr(AnsibleAWSModule, "client", client)
        patch.setenv("AWS_REGION", "us-west-2")

    def run(self, check: bool = False, diff: bool = False, **arguments: Any) -> Item:
        given = {**self._usual, **arguments, "_ansible_check_mode": check, "_ansible_diff": diff}
        result, code = ended(self._main, {key: one for key, one in given.items() if one is not None}, self._capsys)
        assert bool(code) is bool(result.get("failed"))
        return result

    def said(self, **arguments: Any) -> str:
        """What it says where it fails."""
        result = self.run(**arguments)
        assert result["failed"]
        return str(result["msg"])
