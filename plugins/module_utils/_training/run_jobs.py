# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the folders of trainings on this host, and asks Slurm for those that have not ended."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls as slurm
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.job_log import progress
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.look import look, read_tail
from ansible_collections.trainium.cluster.plugins.module_utils._training.plan_jobs import (
    NO_JOB,
    chosen,
    described,
    steps_wanted,
    unit_job,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import plain


def _read(path: Path) -> dict[str, Any]:
    """A record with null for nan and inf; {} where there is none."""
    found: dict[str, Any] = plain(read_record(path) or {})
    return found


def _folders(directory: Path) -> dict[str, float]:
    """When each folder's training last did something."""
    try:
        folders = [path for path in directory.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise TrainiumError(f"{directory} cannot be read ({error.strerror}); set directory.") from error
    return {path.name: max(map(_changed, (path, path / "train.log", path / "train.json"))) for path in folders}


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _job(job_id: int, log: Path, steps: int | None, record: Mapping[str, Any]) -> dict[str, Any]:
    """What Slurm knows of a job; what the log alone says where there is no Slurm or no job."""
    if job_id and slurm.installed():
        return look(job_id, str(log), steps, record)
    return {**unit_job(_read(log.with_name("node.0.json"))), "progress": progress(read_tail(str(log)), steps)}


def checksum(path: str, most: int) -> str:
    """SHA-256 of a plain file; '' for none, or where it has more bytes than that."""
    digest, left = hashlib.sha256(), most
    try:
        # What lies in its place may be a pipe, from which nothing comes.
        found = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(found, "rb") as stream:
            if not most or not stat.S_ISREG(os.fstat(found).st_mode):
                return ""
            for block in iter(lambda: stream.read(1 << 20), b""):
                left -= len(block)
                if left < 0:
                    return ""
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def trainings(directory: str, name: str, folder: str, limit: int, known: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The newest trainings, the newest first. Raises TrainiumError where Slurm does not answer.

    ``known``: number of the job by folder, for a host that has the log and not the record.
    """
    jobs = Path(directory) / "jobs"
    found = _folders(jobs)
    names = [folder] if folder in found else [] if folder else chosen(found, name, limit)
    result = []
    for item in names:
        path = jobs / item
        record, report = _read(path / "train.json"), _read(path / "report.json")
        record = record or ({"job_id": int(known[item])} if item in known else {})
        log = path / "train.log"
        steps = steps_wanted(record, report)
        job = NO_JOB if report else _job(record.get("job_id") or 0, log, steps, record)
        described_job = described(item, record, report, job, log.is_file())
        # Where the script writes events of its own; the folder itself may be on another node.
        events = (path / "tensorboard").is_symlink()
        result.append({**described_job, "path": str(path), "log": str(log), "events": events})
    return result
