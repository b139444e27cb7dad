"""What a node gets to run jobs in container images, on folders of this machine that only the test sees otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox_driver import REPOSITORY

# A view of the system in which what is written is gone afterwards.
VIEW = """
set -e
mount -t tmpfs tmpfs /mnt
for folder in etc opt usr var; do
  upper=/mnt/$folder/upper work=/mnt/$folder/work
  mkdir -p "$upper" "$work"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$upper,workdir=$work,userxattr" "/$folder"
done
mount -t tmpfs tmpfs /run
# What another user of the node has laid out beforehand.
if [ -n "$LAID" ]; then
  chmod 1777 /run
  mkdir -p /run/enroot/user-7 /mnt/elsewhere /var/enroot/user-7/cache
  touch /var/enroot/user-7/cache/layer
  chown 7 /run/enroot /run/enroot/user-7 /var/enroot /var/enroot/user-7
  ln -s /mnt/elsewhere /run/pyxis
fi
mkdir -p /opt/slurm/bin /opt/slurm/etc /usr/local/lib/slurm
printf '#!/bin/sh\\necho "$@" >> /opt/slurm/told\\n' > /opt/slurm/bin/scontrol
chmod +x /opt/slurm/bin/scontrol
touch /usr/bin/enroot
[ "$PYXIS" = no ] || touch /usr/local/lib/slurm/spank_pyxis.so
set +e
"$@" || code=$?
if [ -n "$LAID" ]; then
  /opt/slurm/etc/scripts/prolog.d/20_trainium_containers || echo "the prolog failed"
  find /var/enroot /run/enroot -name layer
  # What the user has put in the place of a folder of theirs, and jobs of one user that begin at the same time.
  mkdir -m 0755 /mnt/victim
  rmdir /var/enroot/user-1/tmp
  ln -s /mnt/victim /var/enroot/user-1/tmp
  chown -h 1 /var/enroot/user-1/tmp
  /opt/slurm/etc/scripts/prolog.d/20_trainium_containers || echo "the prolog failed"
  stat --format='%a %u %F %n' /mnt/victim
  for job in 1 2 3 4 5 6; do
    (SLURM_JOB_UID=9 /opt/slurm/etc/scripts/prolog.d/20_trainium_containers || echo "the prolog failed") &
  done
  wait
fi
stat --format='%a %u %F %n' /run/enroot /run/pyxis /var/enroot /run/enroot/user-* /var/enroot/user-* 2> /dev/null
cat /opt/slurm/told /opt/slurm/etc/plugstack.conf /opt/slurm/etc/plugstack.conf.d/* /etc/enroot/enroot.conf 2> /dev/null
exit ${code:-0}
"""
# Root needs no namespace of users; anybody else takes the numbers that /etc/subuid gives.
USERS = [] if os.geteuid() == 0 else ["--user", "--map-root-user", "--map-auto"]
NAMESPACE = ["unshare", *USERS, "--mount", "bash", "-c"]


def configure(folder: Path, kind: str, times: int = 1, **environment: str) -> subprocess.CompletedProcess[str]:
    works = subprocess.run([*NAMESPACE, VIEW, "view", "true"], capture_output=True, check=False, env={**os.environ})
    if works.returncode:
        pytest.skip("no user namespaces with overlays here")
    root = folder / "ansible_collections" / "trainium"
    root.mkdir(parents=True)
    (root / "cluster").symlink_to(REPOSITORY)
    play = {"name": "Node", "hosts": "localhost", "connection": "local", "gather_facts": False}
    role = {"name": "trainium.cluster.parallelcluster", "tasks_from": "containers"}
    once = {"name": "Configure it", "ansible.builtin.import_role": role}
    (folder / "play.yml").write_text(json.dumps([{**play, "tasks": [once] * times}]))
    # Neither waits elsewhere for what it is to run, where it would see the system as it is.
    extra = {"parallelcluster_node_type": kind, "ansible_python_interpreter": sys.executable}
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "--inventory", "localhost,"]
    return subprocess.run(
        [*NAMESPACE, VIEW, "view", *command, "--extra-vars", json.dumps(extra), str(folder / "play.yml")],
        cwd=folder,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(folder),
            "ANSIBLE_INJECT_FACT_VARS": "false",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_head_node_has_slurm_load_pyxis_once(tmp_path: Path) -> None:
    done = configure(tmp_path, "HeadNode", times=2)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    for line in (
        "755 0 directory /run/enroot",
        "755 0 directory /run/pyxis",
        "755 0 directory /var/enroot",
        "include /opt/slurm/etc/plugstack.conf.d/*",
        "required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/run/pyxis",
        "ENROOT_RESTRICT_DEV no",
        "reconfigure",
    ):
        assert said.count(line) == 1, done.stdout
    assert any(line.startswith("ENROOT_DATA_PATH /") and "/run" not in line for line in said)


def test_a_compute_node_leaves_slurm_alone(tmp_path: Path) -> None:
    done = configure(tmp_path, "ComputeFleet")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "755 0 directory /run/pyxis" in done.stdout.splitlines()
    assert "plugstack" not in done.stdout


def test_nobody_lays_out_the_folders_of_another(tmp_path: Path) -> None:
    done = configure(tmp_path, "HeadNode", LAID="yes", SLURM_JOB_UID="1")
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert "the prolog failed" not in said
    for line in (
        "755 0 directory /run/enroot",
        "755 0 directory /run/pyxis",
        "755 0 directory /var/enroot",
        "700 1 directory /run/enroot/user-1",
        "700 1 directory /var/enroot/user-1",
        "700 9 directory /var/enroot/user-9",
        "755 0 directory /mnt/victim",
    ):
        assert line in said, done.stdout
    # Nor does anything stay of what lay there.
    assert not [line for line in said if "layer" in line or "user-7" in line]


def test_an_image_without_pyxis_is_refused(tmp_path: Path) -> None:
    done = configure(tmp_path, "ComputeFleet", PYXIS="no")
    assert done.returncode == 2
    assert "The image of this node has no Pyxis for Slurm, which those of ParallelCluster have from" in done.stdout
