"""The table of instance types against DescribeInstanceTypes, of which moto has a copy."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import moto
import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import (
    TYPES,
    family,
    has_efa,
    is_neuron,
)

# No API model of EC2 has these, and its copy knows no devices of trn2u.
UNKNOWN = {"trn3.48xlarge", "trn3e.24xlarge"}
WITHOUT_DEVICES = {"trn2u.48xlarge"}


@cache
def described() -> dict[str, dict[str, Any]]:
    """By the names of the types."""
    data = (Path(str(moto.__file__)).parent / "ec2/resources/instance_types.json.gz").read_bytes()
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(data))
    return found


@pytest.mark.parametrize("name", sorted(set(TYPES) - UNKNOWN))
def test_cards_interfaces_and_efa(name: str) -> None:
    known, network = TYPES[name], described()[name]["NetworkInfo"]
    assert known.cards == network["MaximumNetworkCards"]
    assert known.cards * known.interfaces_per_card == network["MaximumNetworkInterfaces"]
    assert known.efa == network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)


@pytest.mark.parametrize("name", sorted(set(TYPES) - UNKNOWN - WITHOUT_DEVICES))
def test_devices_and_cores(name: str) -> None:
    devices = described()[name].get("NeuronInfo", {}).get("NeuronDevices", [])
    assert TYPES[name].devices == sum(one["Count"] for one in devices)
    # Where two cores are joined, a device shows half as many.
    physical = [one["CoreInfo"]["Count"] for one in devices]
    assert TYPES[name].cores[:1] == tuple(physical)
    assert TYPES[name].cores[1:] == ((physical[0] // 2,) if physical and physical[0] == 8 else ())


def test_what_the_api_has_no_model_of() -> None:
    """By Neuron's documentation; EC2 has to be asked for cards and EFA."""
    assert not UNKNOWN & set(described())
    assert [(TYPES[name].devices, TYPES[name].cores) for name in sorted(UNKNOWN)] == [(16, (8, 4)), (4, (8, 4))]
    assert [(TYPES[name].cards, TYPES[name].efa, has_efa(name)) for name in sorted(UNKNOWN)] == [(0, 0, None)] * 2
    # What is not known of them is told as nothing, and not as a number that somebody could take for one.
    assert {TYPES[name][:3] for name in UNKNOWN} == {(0, 0, 0)}
    assert TYPES["trn2u.48xlarge"][3:] == TYPES["trn2.48xlarge"][3:]


def test_whether_a_type_has_efa_is_known_for_sure_or_not_at_all() -> None:
    for name, about in described().items():
        assert has_efa(name) in (None, about["NetworkInfo"]["EfaSupported"]), name
    # Most of what is asked for can be answered.
    for name in ("g5.48xlarge", "g6e.8xlarge", "p3dn.24xlarge", "inf1.24xlarge", "p5.4xlarge", "gr6.8xlarge"):
        assert has_efa(name) is True
    for name in ("g5.xlarge", "g4dn.4xlarge", "c7i.2xlarge", "t3.medium", "m5.metal", "inf1.6xlarge"):
        assert has_efa(name) is False
    assert has_efa("c7i.48xlarge") is None


@pytest.mark.parametrize("name", sorted(set(TYPES) - UNKNOWN))
def test_of_a_type_in_the_table_it_is_known(name: str) -> None:
    assert has_efa(name) is described()[name]["NetworkInfo"]["EfaSupported"]


@pytest.mark.parametrize("group", ["g4dn", "g5", "g6", "g6e", "gr6"])
def test_graphics_families_have_efa_by_their_size(group: str) -> None:
    known = {name: about for name, about in described().items() if name.startswith(f"{group}.")}
    assert known
    for name, about in known.items():
        assert has_efa(name) is about["NetworkInfo"]["EfaSupported"], name


def test_small_sizes_and_families_without_efa_are_answered_whatever_the_family() -> None:
    sizes = ("nano", "micro", "small", "medium", "large", "xlarge", "2xlarge")
    assert [has_efa(f"x9.{size}") for size in sizes] == [False] * len(sizes)
    assert not [name for name, about in described().items() if name.split(".")[1] in sizes and has_efa(name) is None]
    for group in ("inf1", "t2", "t3", "t3a", "t4g", "m4", "m5", "m5a", "c4", "c5", "r5"):
        of_family = [name for name in described() if name.split(".")[0] == group]
        assert of_family and None not in [has_efa(name) for name in of_family], group


def test_the_family_is_what_comes_before_the_size() -> None:
    assert [family(name) for name in ("trn1.32xlarge", "p6-b200.48xlarge", "trn1")] == ["trn1", "p6-b200", "trn1"]


def test_what_has_neuron_devices() -> None:
    assert all(is_neuron(name) == bool(TYPES[name].devices) for name in TYPES)
    assert is_neuron("trn9.large") and is_neuron("inf1.xlarge") and not is_neuron("m5.large")
    with_devices = {name for name, about in described().items() if "NeuronInfo" in about}
    assert with_devices <= {name for name in described() if is_neuron(name)}
