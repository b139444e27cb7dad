"""efs_file_system returns what its documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as efs
from ansible_collections.trainium.cluster.plugins.modules import efs_file_system

from tests.unit.efs.test_plan import item, target
from tests.unit.modules.documented import check_result


def test_the_file_system_is_shown_as_documented() -> None:
    check_result(efs_file_system, efs.file_system_of(item(), [target("a")]), "file_system")
    # Of what is hardly there, EFS leaves out most.
    check_result(efs_file_system, efs.file_system_of({"FileSystemId": "fs-1"}, [{}]), "file_system")
