# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which operating system and which Neuron SDK an image has, by what it is called. Pure.

Sources: the Neuron DLAMI user guide (``/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id``, "Deep Learning
Base Neuron AMI (Amazon Linux 2023) 20261101"), the names of ParallelCluster's ``Image: Os`` (``alinux2023``), and the
names that Canonical, Debian, Amazon, Red Hat and Rocky give their images and parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_GAP = r"[^0-9]{0,24}?"
_SYSTEMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Ubuntu", re.compile(rf"ubuntu{_GAP}(?P<year>[1-9][0-9])[.-]?(?P<month>04|10)(?![0-9])")),
    ("Amazon", re.compile(r"(?<![a-z])(?:amazon[ -]linux[ -]|alinux|amzn|al)(?P<major>2023|2)(?![0-9])")),
    ("Debian", re.compile(rf"debian{_GAP}(?P<major>[1-9][0-9]?)(?![0-9])")),
    ("Rocky", re.compile(rf"rocky{_GAP}(?P<major>[89]|10)(?P<minor>\.[0-9]+)?(?![0-9])")),
    ("RedHat", re.compile(r"(?:rhel|red hat enterprise linux)[ -]?(?P<major>[89]|10)(?P<minor>\.[0-9]+)?(?![0-9])")),
)
# What EC2 bills an image as ("AMI billing information fields"), which copies keep; it tells no version.
_PLATFORMS = (("RedHat", "red hat enterprise linux"), ("SLES", "suse linux"), ("Windows", "windows"))


def system_of(name: str) -> dict[str, str]:
    """``distribution`` and ``distribution_version`` as Ansible's facts name them; nothing where the name does not tell.

    The version is empty where only the platform is told.

    >>> system_of("/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id")
    {'distribution': 'Ubuntu', 'distribution_version': '24.04'}
    """
    for distribution, pattern in _SYSTEMS:
        match = pattern.search(name.lower())
        if match:
            part = match.groupdict()
            version = f"{part['year']}.{part['month']}" if "year" in part else part["major"] + (part.get("minor") or "")
            return {"distribution": distribution, "distribution_version": version}
    for distribution, platform in _PLATFORMS:
        if platform in name.lower():
            return {"distribution": distribution, "distribution_version": ""}
    return {}


class SdkImage(NamedTuple):
    """``image_id`` is '' where ``refused`` says why there is none; ``sdk`` is what the image has."""

    image_id: str
    name: str
    sdk: str
    refused: str


def sdk_in(description: str) -> str:
    """The SDK that a Neuron DLAMI says it has, '' for another image.

    "Each Neuron DLAMI includes the SDK version in its description", which is found there as ``*Neuron SDK 2.32.0*``
    (Neuron's DLAMI user guide, "Finding a DLAMI for a specific Neuron SDK version").
    """
    found = re.search(r"Neuron SDK ([0-9]+\.[0-9]+(?:\.[0-9]+)?)", description)
    return found.group(1) if found else ""


def image_of_sdk(images: Iterable[Mapping[str, Any]], wanted: str) -> SdkImage:
    """The newest image with the wanted SDK; without one, with the newest of its patch releases.

    ``images`` are those of ec2_ami_info. Between patch releases few packages differ, if any.
    """
    have = [(sdk_in(image.get("description") or ""), image) for image in images]
    minor = wanted.split(".")[:2]
    fitting = [
        (sdk == wanted, tuple(map(int, sdk.split("."))), image.get("creation_date") or "", sdk, image)
        for sdk, image in have
        if sdk and sdk.split(".")[:2] == minor
    ]
    if fitting:
        *_order, sdk, image = max(fitting, key=lambda item: item[:3])
        return SdkImage(image["image_id"], image.get("name") or "", sdk, "")
    known = sorted({sdk for sdk, _image in have if sdk}, key=lambda sdk: [int(part) for part in sdk.split(".")])
    said = f"there are those of {', '.join(known)}" if known else "there is none of that name"
    return SdkImage("", "", "", f"AWS shows no image with Neuron SDK {wanted}, {said}")
