# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which packages belong to which release of the Neuron SDK, and on what they run.

Source: the release content pages and setup guides of the Neuron documentation, 2026-11. torch-neuronx is two products
of one name: up to 2.9 it is over PyTorch/XLA, from 2.10 on it is TorchNeuron, PyTorch's own backend ("Announcing
Transition to PyTorch Native Support"). PyTorch/XLA "is no longer supported for training workloads on Trainium" from SDK
2.30 on (announce-no-support-pytorch-xla-training), and TorchNeuron runs on trn2 and trn3 alone (its release notes).
"""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """One SDK release.

    ``torch``: the versions of torch-neuronx, newest last; ``pythons``: the first and last version. ``families``: how
    the families of instances begin on which its PyTorch is supported, for training where they are Trainium's.
    """

    sdk: str
    driver: str
    collectives: str
    runtime: str
    tools: str
    compiler: str
    torch: tuple[str, ...] = ()
    pythons: tuple[str, str] = ("", "")
    families: tuple[str, ...] = ("trn", "inf")


class System(NamedTuple):
    """One operating system.

    ``codename``: its name in Neuron's apt repository, '' where packages come as RPM. ``last_sdk`` and ``first_sdk``:
    the last and the first release for it, '' for no end. ``torch_below``: the first version of PyTorch that does not
    run on it, '' for no bound. ``repository``: whether AWS serves packages for it.
    """

    name: str
    codename: str
    python: str
    last_sdk: str = ""
    torch_below: str = ""
    repository: bool = True
    first_sdk: str = ""


def _torch(neuron: str, *versions: str) -> tuple[str, ...]:
    return tuple(f"{version}.{neuron}" for version in versions)


# Newest first.
RELEASES: tuple[Release, ...] = (
    Release(
        *("2.33.0", "2.31.7.0", "2.35.43.0", "2.35.30.0", "2.33.38.0", "2.28.7631.0"),
        ("2.13.3.0.*", "2.14.3.0.*"),
        ("3.12", "3.14"),
        ("trn2", "trn3"),
    ),
    Release("2.32.0", "2.30.2.0", "2.34.10.0", "2.34.10.0", "2.32.28.0", "2.27.5334.0"),
    Release(
        *("2.31.1", "2.29.0.0", "2.33.10.0", "2.33.10.0", "2.31.15.0", "2.26.6360.0"),
        _torch("2.15.32035", "2.9.0"),
        ("3.11", "3.13"),
        ("inf",),
    ),
    Release(
        *("2.30.0", "2.28.0.0", "2.32.28.0", "2.32.31.0", "2.30.10.0", "2.25.3371.0"),
        _torch("2.14.27725", "2.9.0"),
        ("3.11", "3.13"),
        ("inf",),
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
    # TorchNeuron's wheels are for 26.04 alone; on 24.04 it is built from source, or a DLAMI has it (its quickstart).
    ("Ubuntu", "26.04"): System("Ubuntu 26.04", "resolute", "3.14", first_sdk="2.33.0"),
    ("Ubuntu", "24.04"): System("Ubuntu 24.04", "noble", "3.12", torch_below="2.10"),
    ("Ubuntu", "22.04"): System("Ubuntu 22.04", "jammy", "3.10", last_sdk="2.29.1"),
    ("Amazon", "2023"): System("Amazon Linux 2023", "", "3.9", torch_below="2.9"),
    ("Amazon", "2"): System("Amazon Linux 2", "", "3.8", last_sdk="2.21.1", torch_below="2.1"),
    # Their glibc is Amazon Linux 2023's 2.34; PyTorch 2.9 asks for 2.35 (Neuron's DLAMI user guide).
    ("Rocky", "9"): System("Rocky Linux 9", "", "3.9", last_sdk="2.29.1", torch_below="2.9"),
    ("RedHat", "9"): System("Red Hat Enterprise Linux 9", "", "3.9", last_sdk="2.29.1", torch_below="2.9"),
    # The EFA installer supports it, Neuron's repository does not have it: a mirror may.
    ("Debian", "12"): System("Debian 12", "bookworm", "3.11", repository=False),
}

# The first torch-neuronx that is TorchNeuron, and the nki that its installation asks for beside it.
NATIVE = ("2.10", "nki==0.7.*")

# A driver from this version on needs a runtime library from that version on.
DRIVER_NEEDS_RUNTIME: tuple[str, str] = ("2.29", "2.33")


def find_system(distribution: str, version: str) -> System | None:
    """The entry of an operating system, by ``24.04`` or by the major version of ``9.4``; None where it is not known."""
    return SYSTEMS.get((distribution, version)) or SYSTEMS.get((distribution, version.split(".")[0]))
