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


def install(
    folder: Path, *programs: str, checksum: str = "", then: str = "", before: str = ":"
) -> subprocess.CompletedProcess[str]:
    """Install an archive with these programs; ``then`` looks at what that made."""
    for program in programs:
        path = folder / PREFIX.lstrip("/") / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    archive = folder / "built.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        target.add(folder / "opt", "opt")
    command = [
        "unshare",
        *USERS,
        "--mount",
        "bash",
        "-ec",
        f'{NAMESPACE}{before}\nsh "$@"\n{then}',
        "install",
        str(SCRIPT),
    ]
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
    stat -c %U:%G:%a:%n /etc/munge /var/lib/munge /var/log/munge /var/log/slurm /var/lib/slurm/* /etc/slurm
    id -u slurm
    id -gn slurm
    getent passwd slurm munge | cut -d : -f 1,6,7
    ls /opt/slurm"""
    done = install(tmp_path, "sbin/munged", "bin/sinfo", then=then)
    assert done.returncode == 0, done.stderr
    links = [f"{PREFIX}/sbin/munged", f"{PREFIX}/bin/sinfo"]
    assert done.stdout.splitlines() == [
        *(PREFIX, "/opt/slurm/active", *links, PREFIX),
        # The key is for its user alone.
        *(f"munge:munge:700:{folder}" for folder in ("/etc/munge", "/var/lib/munge", "/var/log/munge")),
        *("slurm:slurm:755:/var/log/slurm", "slurm:slurm:755:/var/lib/slurm/slurmctld"),
        # slurmd is root.
        *("root:root:755:/var/lib/slurm/slurmd", "root:root:755:/etc/slurm"),
        *("64030", "slurm"),
        *("slurm:/var/lib/slurm:/usr/sbin/nologin", "munge:/var/lib/munge:/usr/sbin/nologin"),
        # Nothing of the way there is left.
        *("0123456789ab", "active"),
    ]


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@ROOT_ONLY
def test_without_an_archive_there_are_the_user_and_folders_of_slurm_alone(tmp_path: Path) -> None:
    then = "id -u slurm; stat -c %U:%a /var/lib/slurm/slurmctld /var/lib/slurm/slurmd; ls -d /opt/slurm /etc/munge || :"
    script = f"{NAMESPACE}sh {SCRIPT}\n{then}"
    done = subprocess.run(
        ["unshare", *USERS, "--mount", "bash", "-ec", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["64030", "slurm:755", "root:755"]


@ROOT_ONLY
def test_what_is_there_of_another_version_is_replaced_in_one_step(tmp_path: Path) -> None:
    old = f"mkdir -p {PREFIX}/sbin /opt/slurm/other/sbin; echo old > {PREFIX}/sbin/munged"
    link = "ln -s /opt/slurm/other/sbin/munged /usr/sbin/munged"
    then = f"readlink /usr/sbin/munged; cat {PREFIX}/sbin/munged; ls /opt/slurm"
    done = install(tmp_path, "sbin/munged", before=f"{old}; {link}", then=then)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{PREFIX}/sbin/munged", "0123456789ab", "active", "other"]


@ROOT_ONLY
def test_users_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    before = "groupadd --system --gid 777 slurm; useradd --system --uid 777 --gid slurm --shell /bin/sh slurm"
    done = install(tmp_path, "sbin/munged", before=before, then="getent passwd slurm")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("slurm:x:777:777:") and done.stdout.strip().endswith("/bin/sh")


@ROOT_ONLY
def test_selinux_gets_its_labels_where_there_is_selinux(tmp_path: Path) -> None:
    tool = "printf '#!/bin/sh\\necho \"$*\" >> /opt/labelled\\n' > /usr/sbin/restorecon; chmod 755 /usr/sbin/restorecon"
    done = install(tmp_path, "sbin/munged", before=tool, then="cat /opt/labelled")
    assert (done.returncode, done.stdout) == (0, f"-R {PREFIX}\n"), done.stderr
