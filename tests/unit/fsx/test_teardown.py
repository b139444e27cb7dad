"""What teardown finds of FSx for Lustre, deletes, keeps, and says of what stays."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run_teardown import FILE_SYSTEMS, UNMARKED, FsxOf

from tests.unit.fsx.stubbed import ARN, ID, Fsx, known

MINE = {"trainium:owner": "me"}
STACK = {"aws:cloudformation:stack-name": "c1"}
KEEP = {"trainium:keep": "true"}


def of(api: Fsx, keep: bool | None = None) -> FsxOf:
    return FsxOf(api.client, "c1", "me", keep)


@pytest.mark.parametrize(
    ("there", "keep", "found", "left"),
    [
        ({"more": MINE}, None, {FILE_SYSTEMS: [ID], UNMARKED: []}, ""),
        ({"more": MINE}, True, {FILE_SYSTEMS: [], UNMARKED: [ID]}, "kept"),
        ({"more": {**MINE, **KEEP}}, None, {FILE_SYSTEMS: [], UNMARKED: []}, "kept"),
        ({"more": {**MINE, **KEEP}}, False, {FILE_SYSTEMS: [ID], UNMARKED: []}, ""),
        # What goes already is waited for, whoever was to have kept it.
        ({"more": {**MINE, **KEEP}, "Lifecycle": "DELETING"}, None, {FILE_SYSTEMS: [ID], UNMARKED: []}, ""),
        ({"more": {**MINE, **STACK}, "Lifecycle": "DELETING"}, None, {FILE_SYSTEMS: [ID], UNMARKED: []}, ""),
        ({"more": {**MINE, **STACK}}, False, {FILE_SYSTEMS: [], UNMARKED: []}, "retained"),
        ({"more": STACK}, False, {FILE_SYSTEMS: [], UNMARKED: []}, "retained"),
        ({}, False, {FILE_SYSTEMS: [], UNMARKED: []}, "foreign"),
        ({"more": {"trainium:owner": "you", **KEEP}}, None, {FILE_SYSTEMS: [], UNMARKED: []}, "foreign"),
    ],
)
def test_what_becomes_of_it(api: Fsx, there: Any, keep: bool | None, found: Any, left: str) -> None:
    other = known(FileSystemId="fs-0fffffff", more={"trainium:cluster": "c2"})
    api.lists(other, known(**there))
    one = of(api, keep)
    assert one.look() == found
    assert one.foreign == ([ID] if left == "foreign" else [])
    assert one.networks() == ({"vpc-0a1b2c3d4e5f6"} if left == "kept" else set())
    assert len(one.retained) == (left == "retained") and len(one.told) == (left in ("kept", "retained"))
    # What is looked at again is not told twice.
    api.lists(known(**there))
    one.look()
    assert len(one.told) == (left in ("kept", "retained")) and len(one.foreign) == (left == "foreign")


def test_what_stays_is_told_in_order_with_what_it_costs(api: Fsx) -> None:
    more = {**MINE, **KEEP}
    api.lists(
        known(FileSystemId="fs-0bbbbbbb", more=more, VpcId=None),
        known(FileSystemId="fs-0aaaaaaa", more=more, StorageCapacity=4800),
        known(FileSystemId="fs-0dddddddd", more=STACK),
        known(FileSystemId="fs-0ccccccc", more=STACK),
    )
    one = of(api)
    one.look()
    assert [said.split(",")[0] for said in one.told] == [
        *("the file system fs-0ccccccc", "the file system fs-0dddddddd"),
        *("the shared file system fs-0aaaaaaa", "the shared file system fs-0bbbbbbb"),
    ]
    assert "whose 4800 GiB AWS bills by the hour, and its network vpc-0a1b2c3d4e5f6, which is free" in one.told[2]
    assert one.networks() == {"vpc-0a1b2c3d4e5f6"}


def test_what_stays_is_marked_before_the_rest_goes(api: Fsx) -> None:
    going = known(FileSystemId="fs-0aaaaaaa", more=MINE, Lifecycle="DELETING")
    api.lists(known(more=MINE), known(FileSystemId="fs-0bbbbbbb", more={**MINE, **KEEP}), going)
    api.tags(ARN, **KEEP)
    api.has_none("fs-0aaaaaaa")
    of(api, True).delete()


def test_what_goes_is_deleted_and_waited_for(api: Fsx) -> None:
    api.lists(known(more=MINE), known(FileSystemId="fs-0bbbbbbb"))
    api.deletes()
    api.has_none()
    of(api).delete()
