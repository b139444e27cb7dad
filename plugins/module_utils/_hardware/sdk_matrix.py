# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which packages belong to which release of the Neuron SDK, and on what they run.

Source: the release content pages and setup guides of the Neuron documentation, 2026-11. PyTorch here is torch-neuronx
over PyTorch/XLA, the one that trains on trn1; SDK 2.31.1 was the last release with it.
"""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """One SDK release; ``torch`` the versions of torch-neuronx, newest last; ``pythons`` the first and last version."""

    sdk: str
    driver: str
    collectives: str
    runtime: str
    tools: str
    compiler: str
    torch: tuple[str, ...] = ()
    pythons: tuple[str, str] = ("", "")


class System(NamedTuple):
    """One operating system.

    ``codename``: its name in Neuron's apt repository, '' where packages come as RPM. ``last_sdk``: the last release for
    it, '' for no end. ``torch_below``: the first version of PyTorch that does not run on it, '' for no bound.
    ``repository``: whether AWS serves packages for it.
    """

    name: str
    codename: str
    python: str
    last_sdk: str = ""
    torch_below: str = ""
    repository: bool = True


def _torch(neuron: str, *versions: str) -> tuple[str, ...]:
    return tuple(f"{version}.{neuron}" for version in versions)


# Newest first.
RELEASES: tuple[Release, ...] = (
    Release("2.33.0", "2.31.7.0", "2.35.43.0", "2.35.30.0", "2.33.38.0", "2.28.7631.0"),
    Release("2.32.0", "2.30.2.0", "2.34.10.0", "2.34.10.0", "2.32.28.0", "2.27.5334.0"),
    Release(
        *("2.31.1", "2.29.0.0", "2.33.10.0", "2.33.10.0", "2.31.15.0", "2.26.6360.0"),
        _torch("2.15.32035", "2.9.0"),
        ("3.11", "3.13"),
    ),
    Release(
        *("2.30.0", "2.28.0.0", "2.32.28.0", "2.32.31.0", "2.30.10.0", "2.25.3371.0"),
        _torch("2.14.27725", "2.9.0"),
        ("3.11", "3.13"),
    ),
    Release(
        *("2.29.1", "2.27.4.0", "2.31.24.0", "2.31.24.0", "2.29.22.0", "2.24.8799.0"),
        _torch("2.13.26312", "2.9.0"),
        ("3.10", "3.12"),
    ),
    Release(
        *("2.28.1", "2.26.10.0", "2.30.59.0", "2.30.51.0", "2.28.23.0", "2.23.6484.0"),
        _torch("2.12.22436", "2.7.0", "2.8.0", "2.9.0"),
        ("3.10", "3.12"),
    ),
    Release(
        *("2.27.1", "2.25.4.0", "2.29.41.0", "2.29.40.0", "2.27.33.0", "2.22.12471.0"),
        _torch("2.11.19912", "2.7.0", "2.8.0", "2.9.0"),
        ("3.10", "3.12"),
    ),
    Release(
        *("2.26.1", "2.24.7.0", "2.28.27.0", "2.28.23.0", "2.26.14.0", "2.21.33363.0"),
        _torch("2.10.16998", "2.6.0", "2.7.0", "2.8.0"),
        ("3.9", "3.11"),
    ),
    Release(
        *("2.25.0", "2.23.9.0", "2.27.34.0", "2.27.23.0", "2.25.145.0", "2.20.9961.0"),
        _torch("2.9.9357", "2.6.0", "2.7.0"),
        ("3.9", "3.11"),
    ),
    Release(
        *("2.22.0", "2.20.28.0", "2.24.59.0", "2.24.53.0", "2.22.61.0", "2.17.194.0"),
        ("2.5.1.2.6.0",),
        ("3.9", "3.11"),
    ),
    Release(
        *("2.21.1", "2.19.64.0", "2.23.135.0", "2.23.112.0", "2.20.204.0", "2.16.372.0"),
        ("1.13.1.1.17.0", "2.1.2.2.4.0", "2.5.1.2.4.0"),
        ("3.8", "3.11"),
    ),
    Release(
        *("2.18.2", "2.16.7.0", "2.20.22.0", "2.20.22.0", "2.17.1.0", "2.13.72.0"),
        ("1.13.1.1.14.0", "2.1.2.2.1.0"),
        ("3.8", "3.10"),
    ),
    Release(
        *("2.6.0", "2.6.33.0", "2.10.37.0", "2.10.30.0", "2.6.1.0", "2.3.0.4"),
        ("1.12.0.1.4.0",),
        ("3.7", "3.8"),
    ),
)

# Distribution and version as Ansible's facts name them.
SYSTEMS: dict[tuple[str, str], System] = {
    ("Ubuntu", "24.04"): System("Ubuntu 24.04", "noble", "3.12"),
    ("Ubuntu", "22.04"): System("Ubuntu 22.04", "jammy", "3.10", last_sdk="2.29.1"),
    ("Amazon", "2023"): System("Amazon Linux 2023", "", "3.9", torch_below="2.9"),
    ("Amazon", "2"): System("Amazon Linux 2", "", "3.8", last_sdk="2.21.1", torch_below="2.1"),
    ("Rocky", "9"): System("Rocky Linux 9", "", "3.9", last_sdk="2.29.1"),
    ("RedHat", "9"): System("Red Hat Enterprise Linux 9", "", "3.9", last_sdk="2.29.1"),
    # The EFA installer supports it, Neuron's repository does not have it: a mirror may.
    ("Debian", "12"): System("Debian 12", "bookworm", "3.11", repository=False),
}

# A driver from this version on needs a runtime library from that version on.
DRIVER_NEEDS_RUNTIME: tuple[str, str] = ("2.29", "2.33")


def find_system(distribution: str, version: str) -> System | None:
    """The entry of an operating system, by ``24.04`` or by the major version of ``9.4``; None where it is not known."""
    return SYSTEMS.get((distribution, version)) or SYSTEMS.get((distribution, version.split(".")[0]))
