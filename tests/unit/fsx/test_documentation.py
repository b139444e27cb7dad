"""fsx_lustre returns what its documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._fsx import plan as fsx
from ansible_collections.trainium.cluster.plugins.modules import fsx_lustre

from tests.unit.fsx.test_plan import item
from tests.unit.modules.documented import check_result


def test_the_file_system_is_shown_as_documented() -> None:
    check_result(fsx_lustre, fsx.shown(fsx.file_system_of(item())), "file_system")
    # Of one that is hardly there, FSx leaves out most.
    check_result(fsx_lustre, fsx.shown(fsx.file_system_of({"FileSystemId": "fs-1"})), "file_system")
