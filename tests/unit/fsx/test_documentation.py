"""fsx_lustre takes and returns what its documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as fsx
from ansible_collections.trainium.cluster.plugins.modules import fsx_lustre

from tests.unit.documented import check_options, check_result, hidden
from tests.unit.fsx.test_plan import item


def test_the_options_are_as_documented_and_none_is_hidden() -> None:
    check_options(fsx_lustre)
    assert hidden(fsx_lustre.ARGUMENTS) == []


def test_the_file_system_is_shown_as_documented() -> None:
    check_result(fsx_lustre, fsx.shown(fsx.file_system_of(item())), "file_system")
    # Of one that is hardly there, FSx leaves out most.
    check_result(fsx_lustre, fsx.shown(fsx.file_system_of({"FileSystemId": "fs-1"})), "file_system")
