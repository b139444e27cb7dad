"""The image of ParallelCluster: the base image with Slurm, cloud-init, and the daemons that AWS publishes on PyPI.

What AWS does not publish, its cookbook above all, is stood in for by what lies in ``rootfs``.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from sandbox import image
from sandbox.commands import run
from sandbox.mirror.apt import make_apt_repository
from sandbox.mirror.wheels import hosts_python
from sandbox.paths import REPOSITORY, Paths
from sandbox.podman import IMAGE, Podman

ROOTFS = REPOSITORY / "sandbox" / "parallelcluster" / "rootfs"
VERSION = "3.16.1"
WHEELS = [f"aws-parallelcluster-node=={VERSION}", "awscli", "boto3", "PyYAML"]
PACKAGES = "slurmctld slurmd slurm-client munge python3-pip cloud-init jq curl acl rsync"

INSTALL = f"""\
set -eu
export DEBIAN_FRONTEND=noninteractive
echo 'deb [trusted=yes] file:/mirror/debian {{suite}} main' > /etc/apt/sources.list.d/build.list
apt-get update -qq
apt-get install -qq --yes --no-install-recommends {PACKAGES} python3-venv > /dev/null
rm /etc/apt/sources.list.d/build.list
rm -rf /var/lib/apt/lists/*
python3 -m venv /opt/parallelcluster/venv
# The Python that the cookbook builds (resource install_pyenv) stands here as an environment of the distribution's.
python3 -m venv "/opt/parallelcluster/pyenv/versions/$(python3 -c 'import platform; print(platform.python_version())')"
# The cookbook installs python3 and python3-pip, and nothing that makes environments with pip in them.
dpkg --purge python3-venv $(dpkg-query --show --showformat '${{Package}} ' 'python3.*-venv')
/opt/parallelcluster/venv/bin/pip install -q --no-index --find-links /wheels {" ".join(WHEELS)}
cp -a /rootfs/. /
mkdir -p /var/lib/cloud/seed/nocloud && ln -s /seed/meta-data /seed/user-data /var/lib/cloud/seed/nocloud/
mkdir -p /opt/slurm/bin /opt/slurm/etc /etc/chef /opt/parallelcluster/tmp
for tool in sacct sacctmgr salloc sattach sbatch sbcast scancel sdiag sinfo sprio squeue sreport srun sshare sstat; do
  ln -s "/usr/bin/$tool" /opt/slurm/bin/
done
ln -s /opt/parallelcluster/bin/scontrol /opt/slurm/bin/scontrol
rm -rf /etc/slurm && ln -s /opt/slurm/etc /etc/slurm
ln -s /opt/parallelcluster/venv/bin/aws /usr/local/bin/aws
mkdir /root/.aws && ln -s /etc/aws/config /root/.aws/config
systemctl disable --quiet slurmctld slurmd munge sandbox-user-data
systemctl enable --quiet cloud-init-local cloud-init cloud-config cloud-final
# A container has no disks, no udev and no network to wait for.
systemctl mask --quiet cloud-init-hotplugd.socket
"""


def tag() -> str:
    """A digest of everything that goes into the image."""
    digest = hashlib.sha256(f"{image.tag()} {INSTALL}".encode())
    for path in sorted(ROOTFS.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(ROOTFS)).encode() + path.read_bytes())
    return f"parallelcluster-{digest.hexdigest()[:12]}"


def _wheels(paths: Paths) -> Path:
    """The folder with the wheels of AWS's programs."""
    folder = paths.cache / f"wheels-parallelcluster-{VERSION}-{hosts_python()}"
    if not folder.exists():
        unfinished = folder.with_suffix(".new")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(unfinished)]
        run([*pip, *WHEELS], paths.cache)
        unfinished.rename(folder)
    return folder


def build(paths: Paths, podman: Podman) -> str:
    """Build the image unless it is there; its full name."""
    name = f"{IMAGE}:{tag()}"
    if podman.image_exists(tag()):
        return name
    make_apt_repository(paths)
    # Named so that the reconciler does not take it for a host.
    container = f"build-{paths.name}"
    podman.run("rm", "-f", container, check=False)
    volumes = {paths.mirror: "/mirror", _wheels(paths): "/wheels", ROOTFS: "/rootfs"}
    options = [word for source, target in volumes.items() for word in ("--volume", f"{source}:{target}:ro")]
    script = INSTALL.replace("{suite}", image.suite())
    podman.run(
        "run", "--name", container, "--network", "none", *options, f"{IMAGE}:{image.tag()}", "/bin/bash", "-c", script
    )
    podman.run("commit", "-q", "--change", 'CMD ["/lib/systemd/systemd"]', container, name)
    podman.run("rm", "-f", container)
    return name
