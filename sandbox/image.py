"""The image of the sandbox's hosts and the apt mirror that belongs to it.

The image is a small Debian or Ubuntu with systemd, sshd and Python, like the base image of a cloud. What roles
install is not in it: those packages are downloaded beside it, into a signed repository that the hosts use.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.machine import os_release
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import IMAGE, Podman

ROOTFS = REPOSITORY / "sandbox" / "rootfs"

BASE = (
    "systemd systemd-sysv dbus libpam-systemd openssh-server openssh-client openssh-sftp-server python3 python3-apt "
    "sudo iproute2 iputils-ping procps kmod ca-certificates gpg less"
)

# What roles install on the hosts, with everything these packages need.
MIRRORED = [
    *("slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "mariadb-server", "python3-venv"),
    *("debian-reference-en", "acl", "rsync", "nfs-common", "mdadm", "xfsprogs", "chrony"),
    *("prometheus", "prometheus-node-exporter", "python3-prometheus-client"),
    # Parses the repository files of the distributions that are not booted here.
    *("dnf", "dnf-plugins-core"),
    # What the EFA installer takes from the distribution.
    *("pciutils", "environment-modules"),
    # What the image of ParallelCluster has beyond the base.
    *("cloud-init", "jq", "curl", "python3-pip"),
]

# No unit of the image may wait for hardware, the network or a login.
MASKED = (
    "systemd-udevd.service systemd-udev-trigger.service systemd-resolved.service systemd-networkd.service "
    "systemd-logind.service getty.target console-getty.service"
)
DISABLED = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer"

ENABLED = (
    "sandbox-init.service sandbox-user-data.service ssh.service aws-ubuntu-eni-helper.service sandbox-python.socket"
)

HOOKS = (
    f'chroot "$1" systemctl mask {MASKED}',
    f'chroot "$1" systemctl disable {DISABLED} 2>/dev/null || :',
    'chroot "$1" useradd --no-create-home --uid 1000 --user-group --shell /bin/bash ubuntu',
    'echo "ubuntu ALL=(ALL) NOPASSWD: ALL" > "$1/etc/sudoers.d/90-ubuntu"; chmod 0440 "$1/etc/sudoers.d/90-ubuntu"',
    f'cp -a "{ROOTFS}/." "$1/"; chown -R 0:0 "$1/usr/local" "$1/usr/lib/python3"',
    'chown -R 0:0 "$1/etc/systemd/system" "$1/etc/ssh" "$1/etc/apt"',
    f'chroot "$1" systemctl enable {ENABLED}',
    # The Lustre client is part of the image, as of one that a site has made.
    'ln -s /usr/local/sbin/sandbox-mount-lustre "$1/sbin/mount.lustre"',
    'rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/hostname" "$1"/etc/apt/sources.list.d/* "$1/etc/apt/sources.list"',
    # An empty resolv.conf makes a look-up fail at once instead of after seconds.
    ': > "$1/etc/machine-id"; rm -f "$1/etc/resolv.conf"; : > "$1/etc/resolv.conf"; : > "$1/etc/hosts"',
)


def tag() -> str:
    """The image's tag: a digest of everything that goes into it, so that a changed recipe is built anew."""
    digest = hashlib.sha256(repr((suite(), BASE, MIRRORED, HOOKS)).encode())
    for path in sorted(ROOTFS.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(ROOTFS)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def suite() -> str:
    """The release that the image is made of: this machine's own (bookworm, noble, ...)."""
    return os_release().get("VERSION_CODENAME", "bookworm")


def _sources() -> list[str]:
    """The machine's own apt sources of its distribution: the image comes from where the machine itself comes from."""
    names = ("debian.sources", "ubuntu.sources", "debian.list", "ubuntu.list")
    files = [Path("/etc/apt/sources.list.d") / name for name in names] + [Path("/etc/apt/sources.list")]
    found = [str(file) for file in files if file.exists() and file.read_text(encoding="utf-8").strip()]
    if not found:
        raise SandboxError("No apt sources of the distribution were found in /etc/apt: add them and try again.")
    return found[:1]


def build(paths: Paths, podman: Podman) -> None:
    """Build the image and fetch the mirror's packages, unless both are there already.

    Raises:
        SandboxError: mmdebstrap failed; its last error line is in the sentence.
    """
    stamp = paths.mirror / "debian" / f"packages-{tag()}"
    if podman.image_exists(tag()) and stamp.exists():
        return
    print(f"sandbox: building the hosts' image from {suite()} (about a minute)", flush=True)
    tarball = paths.cache / "image.tar"
    pool = paths.mirror / "debian" / "pool"
    shutil.rmtree(pool.parent, ignore_errors=True)
    pool.mkdir(parents=True)
    download = (
        f"APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get --yes --download-only --no-install-recommends install "
        f"{' '.join(MIRRORED)} && cp \"$1\"/var/cache/apt/archives/*.deb '{pool}/' && "
        'rm -f "$1"/var/cache/apt/archives/*.deb'
    )
    bootstrap(tarball, BASE, (download, *HOOKS), paths.logs / "image.log")
    podman.run("import", "-q", "-c", 'CMD ["/lib/systemd/systemd"]', str(tarball), f"{IMAGE}:{tag()}")
    tarball.unlink()
    stamp.touch()


def bootstrap(tarball: Path, packages: str, hooks: Iterable[str], log: Path) -> None:
    """Write the root file system of this machine's release with some packages; the hooks run at the end.

    Raises:
        SandboxError: mmdebstrap failed; its last error line is in the sentence.
    """
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            # Essential packages only, with no skipped clean-up: the ending decides the format.
            [
                "mmdebstrap",
                "--variant=minbase",
                f"--include={packages.replace(' ', ',')}",
                *(f"--customize-hook={hook}" for hook in hooks),
                suite(),
                str(tarball),
                *_sources(),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, LC_ALL="C.UTF-8"),
            check=False,
        )
    if done.returncode:
        lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.startswith(("E:", "error"))]
        raise SandboxError(f"{tarball.name} could not be built ({(lines or ['no reason given'])[-1]}): see {log}.")
