"""The filters of hardware and of its software as the roles for nodes call them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.hardware import FilterModule

FILTERS = FilterModule().filters()
UBUNTU = ("Ubuntu", "24.04")


@pytest.mark.parametrize(
    ("name", "neuron", "interfaces", "devices", "cores"),
    [
        ("trn1.32xlarge", True, 8, 16, 32),
        ("trn1.2xlarge", True, 0, 1, 2),
        # Eight physical cores each.
        ("trn2.48xlarge", True, 16, 16, 128),
        ("p5.48xlarge", False, 32, 0, 0),
        ("m5.large", False, 0, 0, 0),
        ("", False, 0, 0, 0),
        # Of a family that is known, and itself too new.
        ("trn9.large", True, 0, 0, 0),
    ],
)
def test_what_a_type_has(name: str, neuron: bool, interfaces: int, devices: int, cores: int) -> None:
    found = FILTERS["instance_hardware"](name)
    wanted = {"neuron": neuron, "efa_interfaces": interfaces, "neuron_devices": devices, "neuron_cores": cores}
    assert found == wanted
    assert [type(value) for value in found.values()] == [bool, int, int, int]


def test_a_release_is_planned_as_a_host_s_facts_are_given() -> None:
    found = FILTERS["neuron_sdk"]("2.29.1", *UBUNTU, python="3.12", versions=None, instance_type="trn1.32xlarge")
    assert (found["refused"], found["sdk"], found["codename"], found["torchvision"]) == (
        "",
        "2.29.1",
        "noble",
        "0.24.*",
    )
    assert found["packages"]["aws-neuronx-dkms"] == "2.27.4.0"
    assert [line.partition("==")[0] for line in found["pip"]] == ["torch-neuronx", "neuronx-cc"]
    own = FILTERS["neuron_sdk"]("2.29.1", *UBUNTU, versions={"aws-neuronx-dkms": "2.28.0.0"})
    assert own["packages"]["aws-neuronx-dkms"] == "2.28.0.0"
    # What YAML has made a number of.
    assert FILTERS["neuron_sdk"]("2.29.1", "Ubuntu", 24.04)["refused"] == ""
    assert "Neuron SDK 2.29 is not one" in FILTERS["neuron_sdk"](2.29, *UBUNTU)["refused"]


def test_without_pytorch_there_is_no_torchvision() -> None:
    found = FILTERS["neuron_sdk"]("2.29.1", *UBUNTU, torch="")
    assert (found["pip"], found["torchvision"], found["refused"]) == ([], "", "")


def test_what_cannot_be_is_one_sentence_and_nothing_to_install() -> None:
    found = FILTERS["neuron_sdk"]("2.32.0", *UBUNTU)
    said = found.pop("refused")
    assert said.startswith("Neuron SDK 2.32.0 has no torch-neuronx") and said.endswith("to 2.29.1.")
    assert found == {"sdk": "2.32.0", "packages": {}, "pip": [], "codename": "", "torchvision": ""}


def test_a_type_that_is_not_given_is_one_for_training_and_a_mirror_has_more() -> None:
    assert "does not support training on trn1" in FILTERS["neuron_sdk"]("2.31.1", *UBUNTU)["refused"]
    assert "on trn2" in FILTERS["neuron_sdk"]("2.31.1", *UBUNTU, instance_type="trn2.48xlarge")["refused"]
    assert FILTERS["neuron_sdk"]("2.31.1", *UBUNTU, instance_type="inf2.xlarge")["refused"] == ""
    debian = ("Debian", "12")
    assert "AWS serves no Neuron packages" in FILTERS["neuron_sdk"]("2.29.1", *debian)["refused"]
    assert FILTERS["neuron_sdk"]("2.29.1", *debian, python="3.11", mirror=1)["refused"] == ""


def test_an_image_of_eks_by_release_and_version() -> None:
    assert FILTERS["eks_image_release"]("2.29.1", 1.34) == "1.34.9-20260625"
    with pytest.raises(AnsibleFilterError, match=r"^eks_image_release: No EKS image for Kubernetes 1\.99 is known"):
        FILTERS["eks_image_release"]("2.29.1", "1.99")


INSTALLED: dict[str, Any] = {
    "a": {"version": "1.0", "held": True},
    "b": {"version": "1.0-52a6f80d3", "held": False},
    "c": {"version": "1.01", "held": True},
    "d": {"version": "2.0", "held": False},
}


@pytest.mark.parametrize(
    ("wanted", "held", "install", "hold"),
    [
        ({"a": "1.0"}, True, [], []),
        ({"a": "1.0"}, False, [], ["a"]),
        # A build's mark is no other version, and more digits are one.
        ({"b": "1.0"}, True, [], ["b"]),
        ({"c": "1.0"}, True, ["c"], []),
        ({"a": "1x0"}, True, ["a"], []),
        ({"none": "1.0", "d": "1.0"}, True, ["none", "d"], ["none", "d"]),
        ({"none": "1.0"}, False, ["none"], []),
    ],
)
def test_which_packages_change(wanted: dict[str, str], held: bool, install: list[str], hold: list[str]) -> None:
    assert FILTERS["package_changes"](wanted, INSTALLED, held) == {"install": install, "hold": hold}


def test_packages_are_held_unless_that_is_not_wanted() -> None:
    assert FILTERS["package_changes"]({"d": "2.0"}, INSTALLED) == {"install": [], "hold": ["d"]}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("instance_hardware", (1,), "needs an instance type such as 'trn1.32xlarge', not int"),
        ("image_system", ([],), "needs the name of an image, not list"),
        ("image_of_sdk", ({}, "2.29.1"), "needs a list of images, not dict"),
        ("neuron_sdk", (2, *UBUNTU), "needs a release such as '2.29.1', not int"),
        ("eks_image_release", (None, "1.34"), "needs a release such as '2.29.1', not NoneType"),
        ("package_changes", ([], {}), "needs two dictionaries, wanted versions and installed packages, not list"),
        ("package_changes", ({}, []), "the installed packages have to be a dictionary"),
    ],
)
def test_other_values_are_mistakes_of_the_playbook(name: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        FILTERS[name](*arguments)


def test_the_system_of_an_image_and_the_image_of_a_release() -> None:
    assert FILTERS["image_system"]("ubuntu2404") == {"distribution": "Ubuntu", "distribution_version": "24.04"}
    images = [{"image_id": "ami-1", "description": "Neuron SDK 2.31.1", "name": "x", "creation_date": "1"}]
    assert FILTERS["image_of_sdk"](images, "2.31.1")["image_id"] == "ami-1"
    assert FILTERS["image_of_sdk"](images, 2.29)["refused"].startswith("AWS shows no image with Neuron SDK 2.29,")
