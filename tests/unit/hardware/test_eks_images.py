"""EKS's images against the SDK: driver and runtime fit, or the sentence names the image that does."""

from __future__ import annotations

import re

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.eks_images import (
    IMAGES,
    ImageRelease,
    check_release,
    release_for,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import NeuronSdkError, numbers
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import RELEASES
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("sdk", "kubernetes", "release"),
    [
        ("2.29.1", "1.34", "1.34.9-20260625"),
        ("2.30.0", "1.35", "1.35.6-20260625"),
        ("2.31.1", "1.36", "1.36.2-20260714"),
        ("2.26.1", "1.33", "1.33.13-20260625"),
    ],
)
def test_the_newest_image_whose_driver_fits(sdk: str, kubernetes: str, release: str) -> None:
    assert release_for(sdk, kubernetes) == release
    check_release(release, sdk, kubernetes)


@given(
    st.sampled_from([release.sdk for release in RELEASES]), st.sampled_from(["1.33", "1.34", "1.35", "1.36", "1.40"])
)
def test_what_is_chosen_is_not_refused_and_what_is_refused_has_advice(sdk: str, kubernetes: str) -> None:
    try:
        chosen = release_for(sdk, kubernetes)
    except NeuronSdkError as error:
        assert "name a newer release in eks_cluster_release_version" in str(error)
        return
    check_release(chosen, sdk, kubernetes)
    for image in IMAGES:
        for day in (image.first, image.last):
            try:
                check_release(f"{kubernetes}.1-{day}", sdk, kubernetes)
            except NeuronSdkError as error:
                assert chosen in str(error)


@pytest.mark.parametrize(
    ("release", "sdk", "sentence"),
    [
        # nrt_init fails with the recommended image and the last XLA training image.
        ("1.34.9-20260714", "2.29.1", "has the driver 2.29.0.0, and the runtime 2.31.24.0 of Neuron SDK 2.29.1"),
        ("1.34.9-20260714", "2.30.0", "set eks_cluster_release_version to 1.34.9-20260625"),
        ("1.34.4-20260403", "2.30.0", "has the driver 2.26.10.0"),
        ("1.34.9-20261001", "2.29.1", "has the driver 2.29.0.0 or newer"),
        ("1.34.0-20200101", "2.29.1", "has a driver that is not known"),
        ("1.35.6-20260625", "2.29.1", "is for Kubernetes 1.35 and the cluster has 1.34"),
        ("recommended", "2.29.1", "is no release of EKS's images"),
        ("1.34.9-20260625", "9.9", "is not one that this collection knows"),
    ],
)
def test_what_does_not_fit(release: str, sdk: str, sentence: str) -> None:
    with pytest.raises(NeuronSdkError, match=sentence):
        check_release(release, sdk, "1.34")


def test_newer_images_are_for_newer_sdks_and_the_table_is_in_order() -> None:
    check_release("1.36.5-20261101", "2.33.0", "1.36")
    assert [image.first for image in IMAGES] == sorted((image.first for image in IMAGES), reverse=True)
    drivers = [numbers(image.driver) for image in IMAGES]
    assert drivers == sorted(drivers, reverse=True)


def test_no_day_belongs_to_two_images_and_patches_only_grow() -> None:
    for newer, older in zip(IMAGES, IMAGES[1:]):
        assert older.first <= older.last < newer.first <= newer.last
        # A version of Kubernetes that EKS has taken up stays for longer than these, and its patches are counted on.
        assert set(older.patches) <= set(newer.patches)
        assert all(newer.patches[version] >= patch for version, patch in older.patches.items())
    for image in IMAGES:
        assert all(re.fullmatch(r"20\d{6}", day) for day in (image.first, image.last))
        assert re.fullmatch(r"2\.\d+\.\d+\.0", image.driver)
        assert all(re.fullmatch(r"1\.3\d", version) for version in image.patches)


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.last)
def test_a_driver_is_in_all_releases_from_its_first_to_its_last(image: ImageRelease) -> None:
    kubernetes = min(image.patches)
    for day in (image.first, image.last):
        found = drivers_refused(f"{kubernetes}.1-{day}", kubernetes)
        assert found <= {image.driver} and found
    before = f"{int(image.first) - 1}"
    assert image.driver not in drivers_refused(f"{kubernetes}.1-{before}", kubernetes)


def drivers_refused(release: str, kubernetes: str) -> set[str]:
    """The drivers that are said to be in a release, by all SDKs that it does not fit."""
    found = set()
    for sdk in (one.sdk for one in RELEASES):
        try:
            check_release(release, sdk, kubernetes)
        except NeuronSdkError as error:
            found.add(str(error).partition(", and the runtime")[0].rsplit(" ", 1)[-1])
    return found


def test_nothing_is_advised_for_a_kubernetes_without_images() -> None:
    with pytest.raises(NeuronSdkError, match=r"\(there is none for this version\): take another"):
        release_for("2.29.1", "1.99")
    with pytest.raises(NeuronSdkError, match=r"does not work with it: take another neuron_sdk_version$"):
        check_release("1.99.1-20260714", "2.29.1", "1.99")
    with pytest.raises(NeuronSdkError, match=r"driver 2\.24\.7\.0 in 20251217\): take another") as caught:
        release_for("2.33.0", "1.33")
    assert "driver 2.29.0.0 in 20260714; driver 2.28.0.0 in 20260625; " in str(caught.value)


# As the changelog of awslabs/amazon-eks-ami has them: the first and the last release with each driver, and others.
PUBLISHED = """
2.29.0.0 1.33.13-20260714 1.34.9-20260714 1.35.6-20260714 1.36.2-20260714
2.28.0.0 1.33.13-20260625 1.34.9-20260625 1.35.6-20260625 1.36.2-20260625 1.34.8-20260610 1.36.1-20260610
2.27.4.0 1.33.11-20260505 1.34.7-20260505 1.35.4-20260505 1.33.10-20260409 1.35.3-20260409
2.26.10.0 1.33.8-20260403 1.34.4-20260403 1.35.2-20260403 1.34.4-20260318
2.26.5.0 1.33.8-20260304 1.34.4-20260304 1.35.2-20260304
2.25.4.0 1.33.8-20260224 1.34.4-20260224 1.35.0-20260224 1.34.2-20260107
2.24.7.0 1.33.5-20251217 1.34.2-20251217 1.34.1-20250920
"""
OF_RELEASE = {name: driver for driver, *names in map(str.split, PUBLISHED.split("\n")[1:-1]) for name in names}


@pytest.mark.parametrize(("name", "driver"), OF_RELEASE.items())
def test_the_driver_of_a_release_that_was_published(name: str, driver: str) -> None:
    kubernetes, _dot, _rest = name.rpartition(".")
    assert drivers_refused(name, kubernetes) == {driver}


@pytest.mark.parametrize("sdk", [release.sdk for release in RELEASES])
@pytest.mark.parametrize("kubernetes", ["1.33", "1.34", "1.35", "1.36"])
def test_only_releases_that_were_published_are_advised(sdk: str, kubernetes: str) -> None:
    try:
        assert release_for(sdk, kubernetes) in OF_RELEASE
    except NeuronSdkError as error:
        days = {name.rpartition("-")[2] for name in OF_RELEASE if name.startswith(f"{kubernetes}.")}
        assert set(re.findall(r" in (20\d{6})", str(error))) <= days


def test_the_last_release_with_each_driver_is_known_for_every_kubernetes_that_it_is_for() -> None:
    known = {f"{version}.{patch}-{image.last}" for image in IMAGES for version, patch in image.patches.items()}
    assert known <= set(OF_RELEASE)
    lasts = {image.last for image in IMAGES}
    assert known == {name for name in OF_RELEASE if name.rpartition("-")[2] in lasts}
