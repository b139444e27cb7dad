# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which driver of Neuron is in which release of EKS's Neuron image, and which release fits a Neuron SDK. Pure.

The driver comes with the node's image, the runtime library with the training's. A driver from 2.29 on needs a runtime
from 2.33 on, and a runtime refuses a driver of an older release than its own (``DRIVER_NEEDS_RUNTIME`` and the releases
in sdk_matrix.py). Source: CHANGELOG.md of awslabs/amazon-eks-ami, AMI releases up to v20260714.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.rules import shown
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import NeuronSdkError, numbers
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import (
    DRIVER_NEEDS_RUNTIME,
    RELEASES,
    Release,
)

VERSION = re.compile(r"(?P<minor>1\.[0-9]{2})\.[0-9]+-(?P<day>20[0-9]{6})")


class ImageRelease(NamedTuple):
    """``first`` to ``last``: the releases with a driver; ``patches``: version of Kubernetes -> patch in ``last``."""

    first: str
    last: str
    driver: str
    patches: dict[str, int]


# Newest first. Releases since the first entry's may have a newer driver, never an older one.
IMAGES = (
    ImageRelease("20260714", "20260714", "2.29.0.0", {"1.33": 13, "1.34": 9, "1.35": 6, "1.36": 2}),
    ImageRelease("20260610", "20260625", "2.28.0.0", {"1.33": 13, "1.34": 9, "1.35": 6, "1.36": 2}),
    ImageRelease("20260409", "20260505", "2.27.4.0", {"1.33": 11, "1.34": 7, "1.35": 4}),
    ImageRelease("20260318", "20260403", "2.26.10.0", {"1.33": 8, "1.34": 4, "1.35": 2}),
    ImageRelease("20260304", "20260304", "2.26.5.0", {"1.33": 8, "1.34": 4, "1.35": 2}),
    ImageRelease("20260107", "20260224", "2.25.4.0", {"1.33": 8, "1.34": 4, "1.35": 0}),
    ImageRelease("20250920", "20251217", "2.24.7.0", {"1.33": 5, "1.34": 2}),
)


def _sdk(sdk: str) -> Release:
    found = next((release for release in RELEASES if release.sdk == sdk), None)
    if found is None:
        known = ", ".join(release.sdk for release in RELEASES)
        raise NeuronSdkError(
            f"neuron_sdk_version is '{shown(sdk)}', which is not one that this collection knows: take one of {known}"
        )
    return found


def _fits(driver: str, release: Release) -> bool:
    first_driver, first_runtime = DRIVER_NEEDS_RUNTIME
    too_new = numbers(driver) >= numbers(first_driver) and numbers(release.runtime) < numbers(first_runtime)
    return not too_new and numbers(driver)[:2] >= numbers(release.driver)[:2]


def _fitting(release: Release, kubernetes: str) -> Iterator[str]:
    """The release versions for a minor version of Kubernetes, newest first."""
    for image in IMAGES:
        if kubernetes in image.patches and _fits(image.driver, release):
            yield f"{kubernetes}.{image.patches[kubernetes]}-{image.last}"


def release_for(sdk: str, kubernetes: str) -> str:
    """The newest release of the image with a driver for an SDK. Raises NeuronSdkError where none is known.

    >>> release_for("2.29.1", "1.34")
    '1.34.9-20260625'
    """
    release = _sdk(sdk)
    for version in _fitting(release, kubernetes):
        return version
    have = "; ".join(f"driver {image.driver} in {image.last}" for image in IMAGES if kubernetes in image.patches)
    raise NeuronSdkError(
        f"No EKS image for Kubernetes {kubernetes} is known whose driver fits Neuron SDK {sdk}, which needs "
        f"{release.driver} ({have or 'there is none for this version'}): take another neuron_sdk_version or "
        "trainium_eks_version, or name a newer release in eks_cluster_release_version"
    )


def check_release(version: str, sdk: str, kubernetes: str) -> None:
    """Refuse a release of the image whose driver does not fit an SDK, or which is for another Kubernetes."""
    match, release = VERSION.fullmatch(version), _sdk(sdk)
    if not match:
        raise NeuronSdkError(
            f"eks_cluster_release_version is '{shown(version)}', which is no release of EKS's images: use one such as "
            "1.34.9-20260625"
        )
    if match["minor"] != kubernetes:
        raise NeuronSdkError(
            f"The image {version} is for Kubernetes {match['minor']} and the cluster has {kubernetes}: take another"
        )
    day = match["day"]
    driver = next((image.driver for image in IMAGES if image.first <= day <= image.last), "")
    if day > IMAGES[0].last:
        # Its driver is not known, but is no older.
        if numbers(release.runtime) >= numbers(DRIVER_NEEDS_RUNTIME[1]):
            return
        driver = f"{IMAGES[0].driver} or newer"
    elif driver and _fits(driver, release):
        return
    advice = next(_fitting(release, kubernetes), "")
    what = f"has the driver {driver}" if driver else "has a driver that is not known"
    raise NeuronSdkError(
        f"The image {version} {what}, and the runtime {release.runtime} of Neuron SDK {sdk} does not work with it: "
        + (f"set eks_cluster_release_version to {advice}" if advice else "take another neuron_sdk_version")
    )
