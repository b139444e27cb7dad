# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The versions of Neuron's packages that fit together, or why a combination cannot work and which nearest one does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.sdk_matrix import (
    DRIVER_NEEDS_RUNTIME,
    NATIVE,
    RELEASES,
    Release,
    System,
    find_system,
)

PACKAGES = ("aws-neuronx-dkms", "aws-neuronx-collectives", "aws-neuronx-runtime-lib", "aws-neuronx-tools")


class NeuronSdkError(TrainiumError):
    """A combination that cannot work; the sentence names the nearest that does."""


class Request(NamedTuple):
    """What is wanted.

    ``torch``: '' for none, ``latest`` for the newest of the release, else a version or its beginning (``2.8``).
    ``python``: version of the interpreter that PyTorch is for, '' where it is not known.
    ``versions``: package -> version, where it should differ from the release's. ``mirror``: the packages come from a
    site's own repository. ``family``: that of the instances, ``trn2`` for example.
    """

    sdk: str
    distribution: str
    version: str
    torch: str = "latest"
    python: str = ""
    versions: Mapping[str, str] = {}
    mirror: bool = False
    family: str = "trn1"


class Plan(NamedTuple):
    """``packages``: package -> version, as far as the release fixes it; ``pip``: pinned requirements."""

    sdk: str
    packages: dict[str, str]
    pip: list[str]
    codename: str


def numbers(version: str) -> tuple[int, ...]:
    """``2.9.0.2`` as numbers, for comparison; what does not begin with a number counts as 0."""
    found = (re.match(r"\d+", part) for part in version.split("."))
    return tuple(int(match.group()) if match else 0 for match in found)


def _within(python: str, pythons: tuple[str, str]) -> bool:
    low, high = pythons
    return numbers(low) <= numbers(python)[:2] <= numbers(high)


def _torch_of(release: Release, wanted: str, system: System) -> str | None:
    """The version of torch-neuronx that fits, the newest where several do; None where none does."""
    fitting = [
        version
        for version in release.torch
        if (wanted == "latest" or version == wanted or version.startswith(wanted + "."))
        and (not system.torch_below or numbers(version) < numbers(system.torch_below))
    ]
    return fitting[-1] if fitting else None


def _problem(release: Release, request: Request, system: System) -> str:
    """Why a release cannot serve a request on a system; '' where it can."""
    if system.last_sdk and numbers(release.sdk) > numbers(system.last_sdk):
        return f"Neuron SDK {release.sdk} does not support {system.name}, whose last release is {system.last_sdk}"
    if numbers(release.sdk) < numbers(system.first_sdk):
        return f"Neuron SDK {release.sdk} does not support {system.name}, whose first release is {system.first_sdk}"
    if not request.torch:
        return ""
    if not release.torch:
        return f"Neuron SDK {release.sdk} has no torch-neuronx, so PyTorch cannot train with it"
    if request.family.startswith(("trn", "inf")) and not request.family.startswith(release.families):
        return f"Neuron does not support training on {request.family} with PyTorch of its SDK {release.sdk}"
    if _torch_of(release, request.torch, system) is None:
        wanted = "" if request.torch == "latest" else f" {request.torch}"
        have = ", ".join(release.torch)
        return f"torch-neuronx{wanted} of Neuron SDK {release.sdk} does not run on {system.name} (it has {have})"
    if request.python and not _within(request.python, release.pythons):
        return (
            f"torch-neuronx of Neuron SDK {release.sdk} needs Python {release.pythons[0]} to {release.pythons[1]}, "
            f"and the interpreter is {request.python}"
        )
    return ""


def nearest(request: Request, system: System) -> str | None:
    """The release nearest to the wanted one that serves the request; of two equally near ones the newer."""
    order = [release.sdk for release in RELEASES]
    if request.sdk in order:
        wanted = order.index(request.sdk)
    else:
        wanted = sum(numbers(sdk) > numbers(request.sdk) for sdk in order)
    working = [index for index, release in enumerate(RELEASES) if not _problem(release, request, system)]
    best = min(working, key=lambda index: (abs(index - wanted), index), default=None)
    return None if best is None else order[best]


def _advice(request: Request, system: System) -> str:
    # What is made on an instance without Neuron devices is most likely for trn1.
    if not request.family.startswith(("trn", "inf")):
        request = request._replace(family="trn1")
    sdk = nearest(request, system)
    if sdk:
        return f"set neuron_sdk_version to {sdk}"
    if request.torch and request.python:
        other = nearest(request._replace(python=""), system)
        if other:
            low, high = next(release.pythons for release in RELEASES if release.sdk == other)
            python = f"install Python {low} to {high} and name it in neuron_venv_python"
            return python if other == request.sdk else f"{python}, with neuron_sdk_version {other}"
    return "use Ubuntu 24.04, the system that current releases support"


def _check_versions(versions: Mapping[str, str], release: Release) -> None:
    """Refuse a driver that cannot work with the runtime library."""
    driver, runtime = versions["aws-neuronx-dkms"], versions["aws-neuronx-runtime-lib"]
    first_driver, first_runtime = DRIVER_NEEDS_RUNTIME
    if numbers(driver) >= numbers(first_driver) and numbers(runtime) < numbers(first_runtime):
        raise NeuronSdkError(
            f"The driver aws-neuronx-dkms {driver} needs aws-neuronx-runtime-lib {first_runtime} or newer, not "
            f"{runtime}: leave both to neuron_sdk_version {release.sdk}"
        )
    belongs = next((one for one in RELEASES if numbers(one.runtime)[:2] <= numbers(runtime)[:2]), RELEASES[-1])
    if numbers(driver)[:2] < numbers(belongs.driver)[:2]:
        raise NeuronSdkError(
            f"The driver aws-neuronx-dkms {driver} is older than aws-neuronx-runtime-lib {runtime} needs: set it to "
            f"{belongs.driver} or newer in neuron_package_versions, or leave both to neuron_sdk_version {release.sdk}"
        )


def torchvision_of(torch: str) -> str:
    """The torchvision that belongs to a PyTorch: 0.24 to 2.9, 0.23 to 2.8, 0.14 to 1.13 and so on."""
    major, minor = numbers(torch)[:2]
    return f"0.{minor + 1}.*" if major == 1 else f"0.{minor + 15}.*"


def plan(request: Request) -> Plan:
    """The versions for a request.

    Raises NeuronSdkError where the release or the system is not known, or they and the rest do not fit together.
    """
    system = find_system(request.distribution, request.version)
    if system is None:
        raise NeuronSdkError(
            f"Neuron has no packages for {request.distribution} {request.version}: use Ubuntu 24.04 or another of "
            "Ubuntu 26.04, Ubuntu 22.04, Amazon Linux 2023, Amazon Linux 2 and Rocky Linux 9"
        )
    if not system.repository and not request.mirror:
        raise NeuronSdkError(
            f"AWS serves no Neuron packages for {system.name}: use Ubuntu 24.04, or set neuron_repository_url to a "
            "mirror that has them"
        )
    release = next((one for one in RELEASES if one.sdk == request.sdk), None)
    if release is None:
        known = ", ".join(one.sdk for one in RELEASES)
        raise NeuronSdkError(
            f"Neuron SDK {request.sdk} is not one that this collection knows ({known}): {_advice(request, system)}"
        )
    problem = _problem(release, request, system)
    if problem:
        raise NeuronSdkError(f"{problem}: {_advice(request, system)}")
    unknown = sorted(set(request.versions) - set(PACKAGES))
    if unknown:
        raise NeuronSdkError(
            f"neuron_package_versions names {', '.join(unknown)}, which is no package of Neuron: "
            f"use {', '.join(PACKAGES)}"
        )
    own = dict(zip(PACKAGES, (release.driver, release.collectives, release.runtime, release.tools)))
    packages = {**own, **request.versions}
    _check_versions(packages, release)
    torch = _torch_of(release, request.torch, system) if request.torch else None
    pip = [f"torch-neuronx=={torch}", f"neuronx-cc=={release.compiler}"] if torch else []
    if torch and numbers(torch) >= numbers(NATIVE[0]):
        pip.append(NATIVE[1])
    return Plan(release.sdk, packages, pip, system.codename)
