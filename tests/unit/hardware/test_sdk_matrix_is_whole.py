"""Every cell of the matrix of SDK releases: whole, in order, and where a driver and a runtime may be set apart."""

from __future__ import annotations

import re

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk import (
    NeuronSdkError,
    Request,
    numbers,
    plan,
)
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import (
    DRIVER_NEEDS_RUNTIME,
    RELEASES,
    SYSTEMS,
    Release,
    find_system,
)

UBUNTU = ("Ubuntu", "24.04")


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.sdk)
def test_no_cell_is_empty_or_no_version(release: Release) -> None:
    assert re.fullmatch(r"2\.\d+\.\d", release.sdk)
    for package in (release.driver, release.collectives, release.runtime, release.tools, release.compiler):
        assert re.fullmatch(r"2(\.\d+){3}", package)
    # PyTorch's version of three numbers and Neuron's of three, or any of a patch of TorchNeuron.
    assert all(re.fullmatch(r"[12]\.\d+\.\d\.(2\.\d+\.\d+|1\.\d+\.0|0\.\*)", version) for version in release.torch)
    assert list(release.torch) == sorted(release.torch, key=lambda version: numbers(version.replace("*", "0")))
    assert bool(release.torch) == (release.pythons != ("", ""))
    assert release.families and set(release.families) <= {"trn", "inf", "trn2", "trn3"}
    if release.torch:
        first, last = map(numbers, release.pythons)
        assert (3, 7) <= first < last <= (3, 14)


def test_what_is_newer_has_newer_packages() -> None:
    for newer, older in zip(RELEASES, RELEASES[1:]):
        for name in ("sdk", "driver", "collectives", "runtime", "tools", "compiler"):
            assert numbers(getattr(newer, name)) > numbers(getattr(older, name)), (newer.sdk, name)
        # PyTorch for Neuron is numbered on, too: the highest that the older release has is no newer.
        if newer.torch and older.torch:
            assert numbers(newer.torch[-1].replace("*", "0")) > numbers(older.torch[-1].replace("*", "0"))


def test_systems_are_found_by_their_version() -> None:
    for (distribution, version), system in SYSTEMS.items():
        assert find_system(distribution, version) is system
        assert version in system.name
        assert re.fullmatch(r"3\.\d+", system.python)
        releases = {release.sdk for release in RELEASES} | {""}
        assert {system.last_sdk, system.first_sdk} <= releases
    for distribution in ("Rocky", "RedHat", "Debian"):
        major = next(version for name, version in SYSTEMS if name == distribution)
        assert find_system(distribution, f"{major}.4") is SYSTEMS[distribution, major]
    assert find_system("Ubuntu", "20.04") is None


def with_versions(**versions: str) -> dict[str, str]:
    packages = {f"aws-neuronx-{name.replace('_', '-')}": version for name, version in versions.items()}
    return plan(Request("2.29.1", *UBUNTU, torch="", versions=packages)).packages


def test_a_driver_may_be_newer_and_a_patch_older_than_the_runtime_s() -> None:
    """Only the first two numbers tell whether they belong together."""
    assert with_versions(dkms="2.27.0.0")["aws-neuronx-dkms"] == "2.27.0.0"
    assert with_versions(dkms="2.28.0.0")["aws-neuronx-dkms"] == "2.28.0.0"
    with pytest.raises(NeuronSdkError, match=r"aws-neuronx-dkms 2.26.99.0 is older .* set it to 2.27.4.0 or newer"):
        with_versions(dkms="2.26.99.0")


def test_a_driver_that_needs_a_newer_runtime() -> None:
    driver, runtime = DRIVER_NEEDS_RUNTIME
    with pytest.raises(NeuronSdkError, match=f"needs aws-neuronx-runtime-lib {runtime} or newer, not 2.32.99"):
        with_versions(dkms=f"{driver}.0.0", runtime_lib="2.32.99")
    with pytest.raises(NeuronSdkError, match=f"needs aws-neuronx-runtime-lib {runtime} or newer, not 2.32"):
        with_versions(dkms=driver, runtime_lib="2.32")
    assert with_versions(dkms=f"{driver}.0.0", runtime_lib=f"{runtime}.0")
    assert with_versions(dkms=driver, runtime_lib=runtime)["aws-neuronx-dkms"] == driver


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.sdk)
def test_a_runtime_of_a_release_takes_the_driver_of_that_release_and_none_before(release: Release) -> None:
    versions = {"runtime_lib": release.runtime, "dkms": release.driver}
    assert with_versions(**versions)["aws-neuronx-runtime-lib"] == release.runtime
    major, minor = numbers(release.driver)[:2]
    versions["dkms"] = f"{major}.{minor - 1}.99.0"
    with pytest.raises(NeuronSdkError, match=f"set it to {release.driver} or newer in neuron_package_versions"):
        with_versions(**versions)


def test_a_runtime_older_than_all_releases_needs_the_oldest_driver() -> None:
    oldest = RELEASES[-1]
    assert with_versions(runtime_lib="2.1.0.0", dkms=oldest.driver)["aws-neuronx-dkms"] == oldest.driver
    with pytest.raises(NeuronSdkError, match=f"set it to {oldest.driver} or newer"):
        with_versions(runtime_lib="2.1.0.0", dkms="2.0.0.0")
