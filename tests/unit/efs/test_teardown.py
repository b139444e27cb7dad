"""What teardown finds of EFS, deletes, lets go of its network, and says of what stays."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run_teardown import (
    FILE_SYSTEMS,
    TARGETS,
    UNMARKED,
    EfsOf,
)

from tests.unit.efs.stubbed import Efs, known, target

MINE = {"trainium:owner": "me"}
KEEP = {"trainium:keep": "true"}
STACK = {"parallelcluster:cluster-name": "c1"}
A, B = "fsmt-0000000a", "fsmt-0000000b"


def of(api: Efs, keep: bool | None = None, *networks: str) -> EfsOf:
    return EfsOf(api.client, "c1", "me", keep, lambda: list(networks))


@pytest.mark.parametrize(
    ("there", "keep", "found", "stays"),
    [
        ({"more": MINE}, None, {FILE_SYSTEMS: ["fs-1"], UNMARKED: [], TARGETS: []}, 0),
        ({"more": MINE, "LifeCycleState": "deleting"}, None, {FILE_SYSTEMS: ["fs-1"], UNMARKED: [], TARGETS: []}, 0),
        ({"more": MINE}, True, {FILE_SYSTEMS: [], UNMARKED: ["fs-1"], TARGETS: [A, B]}, 1),
        ({"more": {**MINE, **KEEP}}, None, {FILE_SYSTEMS: [], UNMARKED: [], TARGETS: [A, B]}, 1),
        # Somebody deletes it.
        ({"more": MINE, "LifeCycleState": "deleting"}, True, {FILE_SYSTEMS: [], UNMARKED: [], TARGETS: []}, 0),
    ],
)
def test_what_becomes_of_the_owner_s(api: Efs, there: Any, keep: bool | None, found: Any, stays: int) -> None:
    api.lists(known(**there), known(FileSystemId="fs-2", more={"trainium:cluster": "c2"}))
    api.targets(target("b"), target("a"))
    one = of(api, keep)
    assert one.look() == found
    assert (len(one.told), one.foreign, one.unseen) == (stays, [], set())


def test_of_what_is_retained_the_mount_targets_in_networks_that_go_are_in_the_way(api: Efs) -> None:
    api.lists(known(more=STACK))
    api.targets(target("b"), target("a", VpcId="vpc-2"))
    one = of(api, False, "vpc-1")
    assert one.look() == {FILE_SYSTEMS: [], UNMARKED: [], TARGETS: [B]}
    assert (
        "the file system fs-1, which AWS bills by what lies in it, since a stack was told to retain it" in one.told[0]
    )


@pytest.mark.parametrize("owner", [{}, {"trainium:owner": "you"}])
def test_what_is_not_the_owner_s_is_named_and_not_looked_at(api: Efs, owner: dict[str, str]) -> None:
    others = [known(FileSystemId=identity, more=owner) for identity in ("fs-2", "fs-1")]
    api.lists(*others)
    one = of(api)
    assert one.look() == {FILE_SYSTEMS: [], UNMARKED: [], TARGETS: []}
    assert one.foreign == ["fs-1", "fs-2"]
    assert one.told[1] == "the file system fs-1, which does not carry your tag trainium:owner"


@pytest.mark.parametrize("code", ["AccessDeniedException", "AccessDenied", "BadRequest"])
def test_mount_targets_that_may_not_be_listed_are_named(api: Efs, code: str) -> None:
    api.lists(known(more=STACK))
    api.targets(error=code)
    one = of(api, None, "vpc-1")
    if code == "BadRequest":
        with pytest.raises(AwsCallError, match="would not list the mount targets"):
            one.look()
        return
    assert one.look()[TARGETS] == [] and one.unseen == {"fs-1"}


def test_what_is_retained_lets_go_before_the_rest_is_deleted(api: Efs) -> None:
    retained, going = known(FileSystemId="fs-3", more=STACK), known(more=MINE)
    api.lists(going, retained)
    api.targets(target("a"), target("b", VpcId="vpc-2"), of="fs-3")
    api.detaches(A)
    # It is waited for the one alone that is in the way.
    api.targets(target("b", VpcId="vpc-2"), of="fs-3")
    api.targets(target("c"))
    api.detaches("fsmt-0000000c")
    api.targets()
    api.deletes()
    api.has_none()
    of(api, None, "vpc-1").delete()


def test_what_is_kept_is_marked_and_detached_and_stays(api: Efs) -> None:
    api.lists(known(more=MINE))
    api.targets(target("a"))
    api.tags(**KEEP)
    api.detaches(A)
    api.targets()
    of(api, True).delete()


def test_nothing_of_others_is_touched(api: Efs) -> None:
    api.lists(known(), known(FileSystemId="fs-2", more={"trainium:owner": "you"}))
    of(api, False, "vpc-1").delete()
