# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Operating system, running kernel and installed client -> how the client of FSx for Lustre comes onto the host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

MINIMUM_CLIENT = {"SCRATCH_1": (2, 10), "SCRATCH_2": (2, 10), "PERSISTENT_1": (2, 10), "PERSISTENT_2": (2, 12)}
"""The oldest client that a deployment type serves, as FSx's table of Lustre versions has it."""
# Lustre guide, "Lustre file system and client kernel compatibility": client 2.10 cannot have file systems of 2.15, nor
# client 2.15 those of 2.10; all others go together.
_OLDEST_CLIENT = {"2.15": (2, 12)}
_NEWEST_CLIENT = {"2.10": (2, 12)}

_UBUNTU = {"22.04": "jammy", "24.04": "noble"}
# The oldest kernels of each line that Amazon builds the client for; () takes the whole line.
_AMAZON: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {
    "2023": {(6, 12): (), (6, 1): (6, 1, 79, 99, 167)},
    "2": {(5, 10): (5, 10, 144, 127, 601), (5, 4): (5, 4, 214, 120, 368), (4, 14): (4, 14, 294, 220, 533)},
}
# The repository for Enterprise Linux 9 has a directory for each minor release, told from the kernel's build.
_EL9 = {"611": "9", "570": "9.6", "503": "9.5", "427": "9.4", "362": "9.3", "70": "9.0"}


@dataclass(frozen=True)
class Client:
    """How to install: ``apt`` (release: the suite), ``yum``, ``extras`` (release: the topic), ``dnf`` or ``none``."""

    method: str
    packages: list[str] = field(default_factory=list)
    release: str = ""


def plan_client(
    system: str,
    version: str,
    kernel: str,
    installed: str,
    deployment_types: Iterable[str],
    host: str,
    versions: Iterable[str] = (),
) -> Client:
    """Plan how the host gets the client for its running kernel.

    ``installed`` is the version of the kernel module that the running kernel would load, '' where it has none;
    ``versions`` are those of the file systems.
    Raises TrainiumError where there is no client for the system or kernel, or where it does not serve a file system.
    """
    versions = list(versions)
    needed, needing = _needed(deployment_types, versions)
    found = _version(installed)
    if found:
        if found[:2] < needed:
            raise TrainiumError(_too_old(host, installed, needing, needed, "upgrade the client or the image"))
        for old in versions:
            if found[:2] > _NEWEST_CLIENT.get(old, found[:2]):
                raise TrainiumError(
                    f"The Lustre client of {host} is too new ({installed}) for Lustre {old}; raise the version of the"
                    " file system, which takes FSx minutes."
                )
        return Client("none")
    major = version.partition(".")[0]
    if system == "Ubuntu" and version in _UBUNTU:
        return _ubuntu(version, kernel, host)
    if system == "Amazon" and major in _AMAZON:
        return _amazon(major, kernel, host, needing, needed)
    if system in ("Rocky", "RedHat", "AlmaLinux") and major == "9":
        return _enterprise(kernel, host)
    raise TrainiumError(
        f"There is no Lustre client for {system} {version} ({host}); use an image with Ubuntu 22.04 or 24.04, Amazon"
        " Linux 2 or 2023, or Rocky 9, or one that has the client already."
    )


def _ubuntu(version: str, kernel: str, host: str) -> Client:
    if not kernel.endswith("-aws"):
        raise TrainiumError(
            f"The kernel {kernel} of {host} has no Lustre client, as Amazon builds it for the aws kernels only; install"
            " linux-aws and reboot."
        )
    return Client("apt", [f"lustre-client-modules-{kernel}"], _UBUNTU[version])


def _amazon(major: str, kernel: str, host: str, needing: str, needed: tuple[int, int]) -> Client:
    found = _version(kernel)
    minimum = _AMAZON[major].get(found[:2])
    if minimum is not None and found[: len(minimum)] >= minimum:
        return Client("extras", ["lustre-client"], "lustre") if major == "2" else Client("dnf", ["lustre-client"])
    if major == "2" and minimum:
        if needed > (2, 10):
            raise TrainiumError(
                _too_old(
                    host, f"2.10, the only one for kernel {kernel}", needing, needed, "update the kernel and reboot"
                )
            )
        return Client("extras", ["lustre-client"], "lustre2.10")
    raise TrainiumError(
        f"The kernel {kernel} of {host} has no Lustre client for Amazon Linux {major}; update the kernel and reboot."
    )


def _enterprise(kernel: str, host: str) -> Client:
    match = re.match(r"^5\.14\.0-(\d+)", kernel)
    release = _EL9.get(match.group(1)) if match else None
    if release is None:
        raise TrainiumError(
            f"The kernel {kernel} of {host} has no Lustre client in the FSx repository; boot one of 5.14.0-"
            f"{', -'.join(_EL9)}."
        )
    return Client("yum", ["kmod-lustre-client", "lustre-client"], release)


def _needed(deployment_types: Iterable[str], versions: Iterable[str]) -> tuple[tuple[int, int], str]:
    """The oldest client that serves all file systems, and the deployment type or the version that asks for it."""
    wanted = [(MINIMUM_CLIENT[name], name) for name in deployment_types if name in MINIMUM_CLIENT]
    wanted += [(_OLDEST_CLIENT[name], f"Lustre {name}") for name in versions if name in _OLDEST_CLIENT]
    return max(wanted) if wanted else ((2, 10), "FSx for Lustre")


def _version(text: str) -> tuple[int, ...]:
    """The numbers at the beginning of a version: 2.15.6-1fsx -> (2, 15, 6, 1)."""
    match = re.match(r"^\d+(?:[.-]\d+)*", text.strip())
    return tuple(int(number) for number in re.split(r"[.-]", match.group(0))) if match else ()


def _too_old(host: str, version: str, needing: str, needed: tuple[int, int], advice: str) -> str:
    wanted = ".".join(str(number) for number in needed)
    return f"The Lustre client of {host} is too old ({version}): {needing} needs {wanted} or newer; {advice}."
