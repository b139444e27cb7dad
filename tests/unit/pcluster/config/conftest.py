"""The module pcluster_config in this process."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.trainium.cluster.plugins.modules import pcluster_config


class EndedError(Exception):
    """The module's last word."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    def exit_json(_module: basic.AnsibleModule, **result: Any) -> None:
        raise EndedError({"failed": False, **result})

    def fail_json(_module: basic.AnsibleModule, msg: str, **result: Any) -> None:
        raise EndedError({"failed": True, "msg": msg, **result})

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", exit_json)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", fail_json)

    def once(check: bool = False, diff: bool = False, **arguments: Any) -> dict[str, Any]:
        modes = {"_ansible_check_mode": check, "_ansible_diff": diff}
        given = {"cluster_name": "bert", "_ansible_remote_tmp": "/tmp", **modes, **arguments}  # noqa: S108
        with patch_module_args(given), pytest.raises(EndedError) as ended:
            pcluster_config.main()
        result: dict[str, Any] = ended.value.args[0]
        return result

    return once
