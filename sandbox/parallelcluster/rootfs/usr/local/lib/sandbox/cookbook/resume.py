"""slurm_resume, to which Slurm of the distribution describes the jobs in an older way than the program reads."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

PROGRAM = "/opt/parallelcluster/venv/bin/slurm_resume"


def described(job: dict[str, Any]) -> dict[str, Any]:
    """A job of the resume file with the names that newer releases of Slurm use."""
    nodes = job.get("nodes", "")
    return {
        "job_id": job["job_id"],
        "nodes_alloc": job.get("nodes_alloc", nodes),
        "nodes_resume": job.get("nodes_resume", nodes),
        "oversubscribe": job.get("oversubscribe", "NO"),
        "partition": job.get("partition", ""),
        "features": job.get("features", ""),
        "extra": job.get("extra", ""),
    }


def main(arguments: list[str]) -> None:
    # Slurm gives its programs an empty environment.
    os.environ.update(AWS_CONFIG_FILE="/etc/aws/config", AWS_EC2_METADATA_DISABLED="true")
    given = os.environ.get("SLURM_RESUME_FILE")
    if given:
        with open(given, encoding="utf-8") as file:
            document = json.load(file)
        document["jobs"] = [described(job) for job in document.get("jobs", [])]
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as newer:
            json.dump(document, newer)
        os.environ["SLURM_RESUME_FILE"] = newer.name
    os.execv(PROGRAM, [PROGRAM, *arguments])  # noqa: S606  # a list, no shell
