"""What nodes have that is other than what is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.differences import (
    check_growth,
    differences,
    warning,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import known_network, plan_interfaces

ASKED: dict[str, Any] = {
    "security_groups": ["sg-2", "sg-1"],
    "placement_group": None,
    "key_name": None,
    "instance_profile": None,
    "volumes": [],
}
LAYOUT = plan_interfaces(known_network("trn1.32xlarge"), "efa")


def node(number: int, layout: str = "efa", **changes: Any) -> dict[str, Any]:
    planned = plan_interfaces(known_network("trn1.32xlarge"), layout)
    return {
        "instance_id": f"i-{number}",
        "network_interfaces": [
            {"network_card_index": card, "device_index": device, "interface_type": kind}
            for card, device, kind in planned
        ],
        "placement_group": "",
        "security_groups": ["sg-1", "sg-2"],
        "key_name": "",
        "instance_profile": "",
        "root_device_name": "/dev/sda1",
        "volumes": ["vol-1"],
        **changes,
    }


def found(*nodes: dict[str, Any], **asked: Any) -> list[str]:
    return [str(item) for item in differences(nodes, {**ASKED, **asked}, LAYOUT, [])]


def test_none() -> None:
    assert found(node(1), node(2)) == []


def test_what_ec2_does_not_show_yet_is_no_difference() -> None:
    fresh = node(1, network_interfaces=[], security_groups=[], volumes=[])
    assert found(fresh) == []
    assert differences([fresh], {**ASKED, "volumes": [{"size": 8}]}, LAYOUT, []) == []


def test_an_interface_that_somebody_attached_is_not_of_the_layout() -> None:
    other = node(1)
    other["network_interfaces"].append({"network_card_index": 0, "device_index": 2, "interface_type": "interface"})
    assert found(other) == []


def test_nodes_with_the_same_value_are_named_together() -> None:
    nodes = [node(number, placement_group="old") for number in range(5)]
    assert found(*nodes, placement_group="new") == [
        "placement_group old instead of new (i-0, i-1, i-2 and 2 more)",
    ]


@pytest.mark.parametrize("asked", ["one", "arn:aws:iam::1:instance-profile/path/one"])
def test_a_profile_is_asked_for_by_name_or_arn(asked: str) -> None:
    arn = "arn:aws:iam::1:instance-profile/path/one"
    assert found(node(1, instance_profile=arn), instance_profile=asked) == []
    assert found(node(1), instance_profile=asked) == [f"instance_profile none instead of {asked} (i-1)"]


def test_only_what_is_asked_of_a_volume_counts() -> None:
    volume: dict[str, Any] = {"Size": 512, "VolumeType": "gp3", "Iops": 3000, "Throughput": 125}
    volume["Attachments"] = [{"InstanceId": "i-1", "Device": "/dev/sda1"}]
    shown = [volume]
    assert differences([node(1)], {**ASKED, "volumes": [{"size": None, "type": "gp3"}]}, LAYOUT, shown) == []
    (one,) = differences([node(1)], {**ASKED, "volumes": [{"size": 512, "throughput": 500}]}, LAYOUT, shown)
    assert str(one) == ("volume of the root device: size=512 throughput=125 instead of size=512 throughput=500 (i-1)")


def test_what_does_not_fit_refuses_growth_and_the_rest_does_not() -> None:
    bound = differences([node(1, "efa-only")], ASKED, LAYOUT, [])
    with pytest.raises(TrainiumError, match="the set bert has nodes with interface_layout 1 interface, 8 efa-only"):
        check_growth(bound, "bert")
    free = differences([node(1, key_name="old")], {**ASKED, "key_name": "new"}, LAYOUT, [])
    check_growth(free, "bert")
    assert "key_name old instead of new (i-1)" in warning(free, "bert")


@pytest.mark.parametrize(
    ("changes", "asked", "said"),
    [
        ({"security_groups": ["sg-3"]}, {}, "security_groups sg-3 instead of sg-1, sg-2 (i-1)"),
        # Where none is asked for, whatever there is will do.
        ({"security_groups": ["sg-3"]}, {"security_groups": []}, ""),
        ({"placement_group": "old"}, {}, "placement_group old instead of none (i-1)"),
        ({}, {"placement_group": "new"}, "placement_group none instead of new (i-1)"),
        ({}, {"key_name": "new"}, "key_name none instead of new (i-1)"),
        ({"key_name": "old"}, {}, ""),
        (
            {"instance_profile": "arn:x/old"},
            {"instance_profile": "new"},
            "instance_profile arn:x/old instead of new (i-1)",
        ),
        ({"instance_profile": "arn:x/old"}, {}, ""),
        (
            {},
            {"volumes": [{"device_name": "/dev/sdb", "size": 8}]},
            "volume /dev/sdb: no volume instead of size=8 (i-1)",
        ),
        ({"volumes": []}, {"volumes": [{"device_name": "/dev/sdb", "size": 8}]}, ""),
    ],
)
def test_what_is_told_of_each_option(changes: dict[str, Any], asked: dict[str, Any], said: str) -> None:
    assert found(node(1, **changes), **asked) == ([said] if said else [])


@pytest.mark.parametrize(
    ("option", "field", "has", "wanted"),
    [
        ("size", "Size", 8, 9),
        ("type", "VolumeType", "gp2", "gp3"),
        ("iops", "Iops", 3000, 4000),
        ("throughput", "Throughput", 125, 500),
    ],
)
def test_each_property_of_a_volume_by_its_own_device(option: str, field: str, has: Any, wanted: Any) -> None:
    shown = [
        {field: wanted, "Attachments": [{"InstanceId": "i-1", "Device": "/dev/sda1"}]},
        {field: has, "Attachments": [{"InstanceId": "i-1", "Device": "/dev/sdb"}]},
        {field: has},
    ]
    asked = {**ASKED, "volumes": [{option: wanted}, {"device_name": "/dev/sdb", option: wanted}]}
    told = [str(item) for item in differences([node(1)], asked, LAYOUT, shown)]
    assert told == [f"volume /dev/sdb: {option}={has} instead of {option}={wanted} (i-1)"]


@pytest.mark.parametrize(
    ("changes", "asked", "binding"),
    [
        ({"placement_group": "old"}, {}, True),
        ({"security_groups": ["sg-3"]}, {}, True),
        ({}, {"instance_profile": "new"}, False),
        ({}, {"volumes": [{"device_name": "/dev/sdb", "size": 8}]}, False),
    ],
)
def test_what_keeps_new_nodes_from_those_that_are_there(
    changes: dict[str, Any], asked: dict[str, Any], binding: bool
) -> None:
    """How near they are to each other, and whether traffic passes; the rest may be different."""
    told = differences([node(1, **changes)], {**ASKED, **asked}, LAYOUT, [])
    if not binding:
        check_growth(told, "bert")
        return
    with pytest.raises(TrainiumError, match="and new nodes beside them would not fit; ask for what the nodes have"):
        check_growth(told, "bert")
