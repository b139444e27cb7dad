"""The script that installs what was built, in a namespace where the machine itself can only be read."""

from __future__ import annotations

import os
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "roles/slurm/files/install.sh"
PREFIX = "/opt/slurm/0123456789ab"
USERS = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
# What the script writes is in memory and ends with it.
NAMESPACE = """\
mount -t tmpfs tmpfs /mnt
for folder in etc opt usr var; do
  mkdir /mnt/$folder /mnt/$folder.work
  mount -t overlay overlay -o lowerdir=/$folder,upperdir=/mnt/$folder,workdir=/mnt/$folder.work /$folder
done
mount -o remount,bind,ro /
"""


def install(folder: Path, *programs: str, checksum: str = "", then: str = "") -> subprocess.CompletedProcess[str]:
    """Install an archive with these programs; ``then`` looks at what that made."""
    for program in programs:
        path = folder / PREFIX.lstrip("/") / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    archive = folder / "built.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        target.add(folder / "opt", "opt")
    command = ["unshare", *USERS, "--mount", "bash", "-ec", f'{NAMESPACE}sh "$@"\n{then}', "install", str(SCRIPT)]
    command += [PREFIX, str(archive), checksum or sha256(archive.read_bytes()).hexdigest()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("program", "path"), [("bin/sh", "/usr/bin/sh"), ("sbin/ldconfig", "/usr/sbin/ldconfig")])
def test_no_program_of_the_system_is_replaced(tmp_path: Path, program: str, path: str) -> None:
    done = install(tmp_path, "sbin/munged", program)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (1, [])
    assert done.stderr.startswith(f"{path} is there already, of a package; ")


def test_what_has_another_checksum_than_what_was_built_is_not_unpacked(tmp_path: Path) -> None:
    done = install(tmp_path, "sbin/munged", checksum="0" * 64)
    assert (done.returncode, done.stderr.splitlines()[1:]) == (1, [])
    assert "is not what was built" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_programs_are_linked_and_users_and_folders_made(tmp_path: Path) -> None:
    then = """sh "$@"
    ls -d /opt/slurm/*
    readlink /usr/sbin/munged /usr/bin/sinfo
    cat /opt/slurm/active; echo
    stat -c %U:%a /etc/munge /var/log/slurm
    id -u slurm"""
    done = install(tmp_path, "sbin/munged", "bin/sinfo", then=then)
    assert done.returncode == 0, done.stderr
    made = ["/opt/slurm/active", "munge:700", "slurm:755", "64030"]
    links = [f"{PREFIX}/sbin/munged", f"{PREFIX}/bin/sinfo"]
    assert done.stdout.splitlines() == [PREFIX, made[0], *links, PREFIX, *made[1:]]
