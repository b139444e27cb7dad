"""Stand-ins for the EFA installer: a signed tarball with packages, as the real one, in two versions."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

from sandbox.machine import os_release
from sandbox.mirror.signing import Key
from sandbox.standins.debs import Package

HERE = Path(__file__).resolve().parent
VERSIONS = ("1.50.0", "1.51.0")
# A version whose checksum AWS publishes, which no stand-in has.
CHECKSUM_PUBLISHED = "1.47.0"
KEY_FILE = "aws-efa-installer.key"
NAME = "aws-efa-installer-{version}.tar.gz"


def _packages(version: str) -> list[Package]:
    libfabric = {f"/opt/amazon/efa/bin/{file.name}": file for file in sorted((HERE / "libfabric").iterdir())}
    return [
        Package("efa-config", version, {"/etc/efa.conf": "# stand-in\n"}),
        Package("efa-profile", version, {"/etc/ld.so.conf.d/efa.conf": "/opt/amazon/efa/lib\n"}),
        Package("rdma-core-efa", version, {"/opt/amazon/efa/lib/libefa.so.1": "stand-in\n"}),
        Package("efa", version, {f"/usr/src/efa-{version}/dkms.conf": 'PACKAGE_NAME="efa"\n'}),
        Package("libfabric-aws-bin", version, libfabric, depends="python3"),
        Package("openmpi40-aws", version, {"/opt/amazon/openmpi/bin/mpirun": "#!/bin/sh\nexit 1\n"}),
        Package("openmpi50-aws", version, {"/opt/amazon/openmpi5/bin/mpirun": "#!/bin/sh\nexit 1\n"}),
    ]


def make_tarball(folder: Path, version: str) -> Path:
    """Write ``aws-efa-installer-VERSION.tar.gz`` for this machine's distribution, which the hosts have too."""
    release = os_release()
    target = folder / NAME.format(version=version)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "aws-efa-installer"
        system = f"{release['ID'].upper()}{release['VERSION_ID'].replace('.', '')}"
        for package in _packages(version):
            package.build(root / "DEBS" / system / "x86_64")
        shutil.copytree(HERE / "efa", root, dirs_exist_ok=True)
        (root / "env.sh").write_text(f"EFA_INSTALLER_VERSION={version}\n", encoding="utf-8")
        with tarfile.open(target, "w:gz") as tar:
            tar.add(root, arcname=root.name)
    return target


def make(folder: Path, key: Key) -> None:
    """The whole site: tarballs, their signatures, the newest once more as ``latest``, and the key."""
    folder.mkdir(parents=True)
    key.export(folder / KEY_FILE, armor=True)
    for version in VERSIONS:
        key.detach(make_tarball(folder, version))
    for ending in ("", ".sig"):
        newest, latest = (folder / (NAME.format(version=which) + ending) for which in (VERSIONS[-1], "latest"))
        shutil.copyfile(newest, latest)


def make_refused(folder: Path, good: Path, expired: Key, stranger: Key) -> None:
    """Sites that must be refused: what each is, its name says."""
    tarball = NAME.format(version=VERSIONS[-1])
    cases = ("tampered", "unsigned", "other-key", "other-signature", "expired", "renamed")
    for case in cases:
        shutil.copytree(good, folder / case)
    with (folder / "tampered" / tarball).open("ab") as file:
        file.write(b"one byte more than was signed\n")
    # Signed as it should be, and not the version that its name says.
    for version in (VERSIONS[-1], CHECKSUM_PUBLISHED):
        for ending in ("", ".sig"):
            other = good / (NAME.format(version=VERSIONS[0]) + ending)
            shutil.copyfile(other, folder / "renamed" / (NAME.format(version=version) + ending))
    (folder / "unsigned" / f"{tarball}.sig").unlink()
    stranger.detach(folder / "other-signature" / tarball)
    for case, key in (("other-key", stranger), ("expired", expired)):
        key.export(folder / case / KEY_FILE, armor=True)
        key.detach(folder / case / tarball)
