"""Stand-ins for the packages of Neuron's apt repository, in the versions of a few SDK releases."""

from __future__ import annotations

import platform
from pathlib import Path

from sandbox.standins.debs import Package

TOOLS = Path(__file__).resolve().parent / "tools"
KEY_FILE = "GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB"

# Versions as the real repository has them: libraries carry a build's mark, driver and tools do not.
RELEASES = (
    # driver, collectives, runtime library, tools
    ("2.30.2.0", "2.34.10.0-3c1f0ab52", "2.34.10.0-8e6d1c2a7", "2.32.28.0"),
    ("2.29.0.0", "2.33.10.0-1d7e9c4b0", "2.33.10.0-52a6f80d3", "2.31.15.0"),
    ("2.28.0.0", "2.32.28.0-9b40c75e1", "2.32.31.0-0f3a8d61c", "2.30.10.0"),
    ("2.27.4.0", "2.31.24.0-6a2b9e8f4", "2.31.24.0-c90d17be5", "2.29.22.0"),
)

DKMS = "/usr/local/sbin/dkms"
DKMS_CONF = """\
PACKAGE_NAME="aws-neuronx"
PACKAGE_VERSION="{version}"
BUILT_MODULE_NAME[0]="neuron"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
"""


def _driver(version: str) -> Package:
    return Package(
        "aws-neuronx-dkms",
        version,
        {f"/usr/src/aws-neuronx-{version}/dkms.conf": DKMS_CONF.format(version=version)},
        # apt runs these scripts without /usr/local on the path.
        postinst=f"{DKMS} add -m aws-neuronx -v {version}\n{DKMS} install -m aws-neuronx -v {version}\n",
        prerm=f"{DKMS} remove -m aws-neuronx -v {version} --all\n",
    )


def _headers() -> Package:
    """The headers of the machine's kernel, which no distribution has where the machine is itself virtual."""
    kernel = platform.release()
    version = "1.0"
    return Package(
        f"linux-headers-{kernel.replace('_', '-').lower()}",
        version,
        {f"/lib/modules/{kernel}/build/Makefile": "# stand-in for the kernel's headers\n"},
    )


def packages() -> list[Package]:
    """All packages of the repository."""
    found = [_headers()]
    for driver, collectives, runtime, tools in RELEASES:
        found += [
            _driver(driver),
            Package("aws-neuronx-collectives", collectives, {"/opt/aws/neuron/lib/libnccom.so.2": "stand-in\n"}),
            Package("aws-neuronx-runtime-lib", runtime, {"/opt/aws/neuron/lib/libnrt.so.1": "stand-in\n"}),
            Package(
                "aws-neuronx-tools",
                tools,
                {f"/opt/aws/neuron/bin/{file.name}": file for file in sorted(TOOLS.iterdir()) if file.is_file()},
                depends="python3",
            ),
        ]
    return found
