"""The modules take what their documentation says."""

from __future__ import annotations

from types import ModuleType

import pytest
from ansible_collections.trainium.cluster.plugins.modules import (
    pcluster,
    pcluster_compute_fleet,
    pcluster_image,
    pcluster_info,
    pcluster_logs,
)
from ansible_collections.trainium.cluster.plugins.modules.internal import collection_archive

from tests import module_arguments

MODULES = (pcluster, pcluster_compute_fleet, pcluster_image, pcluster_info, pcluster_logs, collection_archive)


@pytest.mark.parametrize("module", MODULES, ids=[module.__name__.rpartition(".")[2] for module in MODULES])
def test_a_module_takes_what_is_documented(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    module_arguments.check(module, monkeypatch, {"pcluster_python"})


@pytest.mark.parametrize(
    ("module", "given", "refused"),
    [
        (pcluster, {"state": "present"}, "configuration, configuration_file"),
        (
            pcluster,
            {"configuration": {}, "configuration_file": "/a"},
            "mutually exclusive: configuration|configuration",
        ),
        (pcluster_image, {"configuration": {"a": 1}}, "image_id"),
        (pcluster_image, {"image_id": "a"}, "configuration, configuration_file"),
        (pcluster_image, {"state": "absent"}, "image_id"),
        (pcluster_image, {"image_id": "a", "configuration": {}, "configuration_file": "/a"}, "mutually exclusive"),
    ],
)
def test_what_belongs_together_is_asked_for(
    module: ModuleType, given: dict[str, object], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.in_process import ended

    name = {"name": "bert"} if module is pcluster else {}
    result, _code = ended(module.main, {**name, **given}, capsys)
    assert result["failed"] and refused in result["msg"]
