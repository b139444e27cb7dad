# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submit, find again, look at and cancel a Slurm job.

What makes it safe to be killed at any moment: the digest travels with the job in its comment, an identical job is
looked for before sbatch is called, and a lock that sbatch itself holds keeps a second run away until the first job is
in the queue.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, replace
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import calls as slurm
from ansible_collections.trainium.cluster.plugins.module_utils._slurm import submit as plan
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.jobs import cannot_start, summed
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.look import look, shown

RECORDS = "~/.local/state/trainium/jobs"
END_FILE = "TRAINIUM_END_FILE"


def read_script(path: str | None, check: bool) -> bytes | None:
    """None where there is no script to read: none was given, or check mode has not written it."""
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        if check:
            return None
        raise ValueError(f"script {path} does not exist on this host; write it there first.") from None
    except OSError as error:
        raise ValueError(f"script {path} cannot be read ({error.strerror}); make it readable for the user.") from None
    plan.checked_script(path, content)
    return content


class Record:
    """What this host remembers of a job, in a JSON file: ``job_id``, ``name``, ``digest``, ``ended`` and ``job``."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser()

    def read(self) -> dict[str, Any]:
        """{} where there is none, or where it is not ours."""
        found = read_record(self.path)
        return found if found and isinstance(found.get("job_id"), int) else {}

    def write(self, value: Mapping[str, Any]) -> None:
        try:
            replace(self.path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode())
        except OSError as error:
            raise TrainiumError(f"record {self.path} cannot be written ({error.strerror}); see its folder.") from error

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Alone with the record. The lock ends when the last program that holds the file has ended."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TrainiumError(f"record {self.path} cannot be made ({error.strerror}); see its folder.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)


def find(name: str, digest: str, record: Mapping[str, Any]) -> int | None:
    """The newest identical job, of which the controller, accounting or the record knows."""
    for known in (slurm.named, slurm.accounted_named):
        # The controller first: one that was made anew counts from 1 again.
        numbers = [job["job_id"] for job in known(name) if job["digest"] == digest]
        if numbers:
            return max(numbers)
        if record.get("digest") == digest:
            return int(record["job_id"])
    return None


def present(options: Mapping[str, Any], content: bytes, check: bool) -> dict[str, Any]:
    """Submit the job unless an identical one is there. ``options``: the module's."""
    digest = plan.digest_of(options, content)
    record = Record(options.get("record") or f"{RECORDS}/{options['name']}-{digest}.json")
    argv = plan.command(options, digest)
    environment = {**plan.checked_environment(options.get("environment") or {}), END_FILE: f"{record.path}.end"}
    known = {"digest": digest, "record": str(record.path), "command": ["sbatch", *argv]}
    if check:
        before = _before(options, digest, record)
        if not plan.to_submit(before, options["resubmit"]):
            return {**known, **shown(before or {}), "submitted": False, "before": before}
        return {**known, "submitted": True, "before": before, "foreseen": slurm.test(argv, environment)}
    with record.locked() as lock:
        before = _before(options, digest, record)
        submitted = plan.to_submit(before, options["resubmit"])
        if not submitted and before is not None:
            job = before
        else:
            if before and cannot_start(before):
                # It can never start, and would stay in the queue beside its successor.
                slurm.cancel([before["job_id"]])
            _check_dependencies(options.get("dependency") or [])
            job_id = slurm.submit(argv, environment, lock)
            noted = {
                "job_id": job_id,
                "name": options["name"],
                "digest": digest,
                "steps": options.get("steps"),
                "submitted_at": time.time(),
            }
            record.write(noted)
            job = look(job_id, plan.log_path(options, job_id), options.get("steps"), noted)
        noted = record.read()
        record.write({**_remembered(options, digest, job), "submitted_at": _submitted_at(noted, job)})
        return {**known, **shown(job), "submitted": submitted, "before": before}


def _before(options: Mapping[str, Any], digest: str, record: Record) -> dict[str, Any] | None:
    """The newest identical job as it is now, with its end as the record or the job itself has noted it."""
    if not slurm.installed():
        raise TrainiumError("sbatch is not installed on this host; run this on a node of the cluster.")
    noted = record.read()
    job_id = find(options["name"], digest, noted)
    if job_id is None:
        return None
    mine = noted if noted.get("job_id") == job_id else {"digest": digest, "name": options["name"]}
    job = look(job_id, plan.log_path(options, job_id), options.get("steps"), mine)
    if job["succeeded"] is None:
        job["succeeded"] = _noted_end(record, job_id)
    return job


def _submitted_at(noted: Mapping[str, Any], job: Mapping[str, Any]) -> float:
    """When the job was submitted; not later than its start, where the record has been lost."""
    known = noted.get("submitted_at") if noted.get("job_id") == job["job_id"] else None
    return float(known or job["started_at"] or time.time())


def _noted_end(record: Record, job_id: int) -> bool | None:
    """Whether the job has succeeded by what it wrote itself into END_FILE: its number and its exit code."""
    try:
        number, code = Path(f"{record.path}.end").read_text(encoding="utf-8").split()[:2]
        return int(code) == 0 if int(number) == job_id else None
    except (OSError, ValueError):
        return None


def _check_dependencies(items: list[dict[str, Any]]) -> None:
    """Slurm takes a job that it has forgotten for one that succeeded, so a failure has to be seen here."""
    for item in items:
        for number in item.get("job_ids") or [] if item["type"] in ("afterok", "aftercorr") else []:
            if slurm.jobs(number):
                continue
            job = summed(slurm.accounted_job(number)[0] or slurm.completion(number), time.time())
            if job["ended"] and job["state"] not in ("COMPLETED", "UNKNOWN"):
                raise TrainiumError(
                    f"job {number}, which has to succeed first, ended as {job['state']}; submit that one again before."
                )


def _remembered(options: Mapping[str, Any], digest: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """What a record keeps. The steps are for whoever looks at the job while it runs."""
    return {
        "job_id": job["job_id"],
        "name": options["name"],
        "digest": digest,
        "steps": options.get("steps"),
        "ended": job["ended"],
        "job": {**job, "name": options["name"]},
    }


def absent(options: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Cancel the jobs of a name that we submitted; of these only the one in the record, where one is given."""
    plan.checked_name(options["name"])
    if not slurm.installed():
        if check:
            return {"cancelled": [], "before": []}
        raise TrainiumError("scancel is not installed on this host; run this on a node of the cluster.")
    ours = [job["job_id"] for job in slurm.named(options["name"]) if job["digest"]]
    if options.get("record"):
        noted = Record(options["record"]).read().get("job_id")
        ours = [number for number in ours if number == noted]
    # One that can never start has ended for whoever waits, but lies in the queue.
    jobs = [job for job in map(look, ours) if not job["ended"] or job["state"] == "PENDING"]
    if jobs and not check:
        slurm.cancel([job["job_id"] for job in jobs])
    return {"cancelled": [job["job_id"] for job in jobs], "before": jobs}
