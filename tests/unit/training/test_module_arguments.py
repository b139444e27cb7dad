"""The modules take what their documentation says."""

from __future__ import annotations

from types import ModuleType

import pytest
from ansible_collections.trainium.cluster.plugins.modules import training_report
from ansible_collections.trainium.cluster.plugins.modules.internal import (
    job_files,
    training_job_info,
    training_unit_info,
)

from tests import module_arguments

MODULES = (job_files, training_job_info, training_report, training_unit_info)


@pytest.mark.parametrize("module", MODULES, ids=[module.__name__.rpartition(".")[2] for module in MODULES])
def test_a_module_takes_what_is_documented(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    module_arguments.check(module, monkeypatch, set())
