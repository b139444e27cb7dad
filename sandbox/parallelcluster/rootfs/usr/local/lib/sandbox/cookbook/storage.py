"""Shared folders. The machine's folder /filesystems stands in for EFS, FSx, EBS and the head node's NFS server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cookbook.node import SHARED, SLURM, run

POOL = Path("/filesystems")


def wanted(cluster: dict[str, Any]) -> dict[str, str]:
    """Mount point -> name of the file system: those of the head node, and those of the cluster's storage."""
    head = {"/home": "home", str(SHARED): "shared", f"{SLURM}/etc": "slurm"}
    found = {path: f"{cluster['stack_name']}-{name}" for path, name in head.items()}
    for kind in ("efs", "fsx"):
        ids, folders = cluster.get(f"{kind}_fs_ids", ""), cluster.get(f"{kind}_shared_dirs", "")
        found.update(_pairs(folders, ids))
    found.update({folder: f"{cluster['stack_name']}-{Path(folder).name}" for folder in _words(_ebs(cluster))})
    return found


def _ebs(cluster: dict[str, Any]) -> str:
    return ",".join(filter(None, (cluster.get("ebs_shared_dirs", ""), cluster.get("raid_shared_dir", ""))))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip() not in ("", "NONE")]


def _pairs(folders: str, ids: str) -> dict[str, str]:
    # Mount points may be given without their slash, and are relative to the root then.
    return {f"/{folder.lstrip('/')}": name for folder, name in zip(_words(folders), _words(ids))}


def mount(cluster: dict[str, Any]) -> None:
    """Bind every shared folder to its place; a folder that was shared for the first time keeps what it held."""
    for path, name in wanted(cluster).items():
        source, target = POOL / name, Path(f"/{path.lstrip('/')}")
        target.mkdir(parents=True, exist_ok=True)
        if target.is_mount():
            continue
        if not source.exists():
            source.mkdir(parents=True)
            run("cp", "--archive", f"{target}/.", str(source))
        run("mount", "--bind", str(source), str(target))
    scratch = Path(cluster.get("ephemeral_dir") or "/scratch")
    scratch.mkdir(parents=True, exist_ok=True)
    scratch.chmod(0o1777)
