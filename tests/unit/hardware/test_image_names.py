"""The operating system of an image by its name."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.hardware import FilterModule

SYSTEM = FilterModule().filters()["image_system"]


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id", "Ubuntu 24.04"),
        ("/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id", "Amazon 2023"),
        ("Deep Learning Base Neuron AMI (Ubuntu 22.04) 20260511", "Ubuntu 22.04"),
        ("Deep Learning Base Neuron AMI (Amazon Linux 2) 20240101", "Amazon 2"),
        ("/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id", "Ubuntu 24.04"),
        ("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260101", "Ubuntu 24.04"),
        ("/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", "Amazon 2023"),
        ("amzn2-ami-hvm-2.0.20260101-x86_64-gp2", "Amazon 2"),
        ("debian-12-amd64-20260101-2000", "Debian 12"),
        ("/aws/service/debian/release/12/latest/amd64", "Debian 12"),
        ("Rocky-9-EC2-Base-9.4-20240523.0.x86_64", "Rocky 9"),
        ("RHEL-9.4.0_HVM-20240423-x86_64", "RedHat 9.4"),
        ("aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64", "Ubuntu 24.04"),
        ("ubuntu2404", "Ubuntu 24.04"),
        ("alinux2023", "Amazon 2023"),
        ("rhel9", "RedHat 9"),
        ("rocky9", "Rocky 9"),
        ("our-golden-image-7 Red Hat Enterprise Linux", "RedHat "),
    ],
)
def test_the_name_tells_the_system(name: str, system: str) -> None:
    assert " ".join(SYSTEM(name).values()) == system


@pytest.mark.parametrize("name", ["", "my-image-3", "final2", "training 2026-10"])
def test_other_names_tell_nothing(name: str) -> None:
    assert SYSTEM(name) == {}


def test_a_name_is_text() -> None:
    with pytest.raises(AnsibleFilterError, match="needs the name of an image, not int"):
        SYSTEM(3)


OF_SDK = FilterModule().filters()["image_of_sdk"]


def image(sdk: str, date: str) -> dict[str, str]:
    description = f"Supported EC2 instances: Trn1. Neuron SDK {sdk}. Release notes: none" if sdk else ""
    return {"image_id": f"ami-{date}", "name": f"DLAMI {date}", "description": description, "creation_date": date}


IMAGES = [image("2.33.0", "5"), image("2.31.0", "4"), image("2.31.1", "2"), image("2.31.1", "3"), image("", "6")]


def test_the_image_of_an_sdk_is_the_newest_that_names_it() -> None:
    assert OF_SDK(IMAGES, "2.31.1") == {"image_id": "ami-3", "name": "DLAMI 3", "sdk": "2.31.1", "refused": ""}


def test_another_patch_release_is_the_next_best() -> None:
    assert OF_SDK(IMAGES, "2.31.2")["sdk"] == "2.31.1"
    assert OF_SDK([image("2.30.0", "1"), image("2.310.0", "2")], "2.31.1")["image_id"] == ""


@pytest.mark.parametrize(
    ("images", "said"), [(IMAGES, "there are those of 2.31.0, 2.31.1, 2.33.0"), ([], "there is none of that name")]
)
def test_no_image_of_an_sdk_is_said(images: list[dict[str, str]], said: str) -> None:
    assert OF_SDK(images, "2.29.1")["refused"] == f"AWS shows no image with Neuron SDK 2.29.1, {said}"


def test_images_are_a_list() -> None:
    with pytest.raises(AnsibleFilterError, match="needs a list of images"):
        OF_SDK("ami-1", "2.31.1")
