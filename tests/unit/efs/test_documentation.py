"""efs_file_system takes and returns what its documentation says."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._efs import plan as efs
from ansible_collections.trainium.cluster.plugins.modules import efs_file_system

from tests.unit.documented import check_options, check_result, hidden
from tests.unit.efs.test_plan import item, target


def test_the_options_are_as_documented_and_none_is_hidden() -> None:
    check_options(efs_file_system)
    assert hidden(efs_file_system.ARGUMENTS) == []


def test_the_file_system_is_shown_as_documented() -> None:
    check_result(efs_file_system, efs.file_system_of(item(), [target("a")]), "file_system")
    # Of what is hardly there, EFS leaves out most.
    check_result(efs_file_system, efs.file_system_of({"FileSystemId": "fs-1"}, [{}]), "file_system")
