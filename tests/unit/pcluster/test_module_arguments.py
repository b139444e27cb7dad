"""What a module for ParallelCluster asks for together, or one of."""

from __future__ import annotations

from types import ModuleType

import pytest
from ansible_collections.trainium.cluster.plugins.modules import pcluster, pcluster_image

from tests.in_process import ended


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
    name = {"name": "bert"} if module is pcluster else {}
    result, _code = ended(module.main, {**name, **given}, capsys)
    assert result["failed"] and refused in result["msg"]
