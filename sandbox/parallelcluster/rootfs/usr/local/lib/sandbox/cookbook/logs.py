"""The agent that carries a node's logs to CloudWatch: one stream for each file, named by node and instance."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

from cookbook.node import LOG, attributes, client, instance_id, log_to

FILES = {
    "cfn-init": "/var/log/cfn-init.log",
    "chef-client": "/var/log/chef-client.log",
    "cloud-init-output": "/var/log/cloud-init-output.log",
    "slurmctld": "/var/log/slurmctld.log",
    "slurmd": "/var/log/slurmd.log",
    "clustermgtd": "/var/log/parallelcluster/clustermgtd",
    "computemgtd": "/var/log/parallelcluster/computemgtd",
    "clusterstatusmgtd": "/var/log/parallelcluster/clusterstatusmgtd",
    "slurm_resume": "/var/log/parallelcluster/slurm_resume.log",
    "slurm_suspend": "/var/log/parallelcluster/slurm_suspend.log",
    "bootstrap_error_msg": "/var/log/parallelcluster/bootstrap_error_msg",
}
SECONDS_BETWEEN_LOOKS = 3
LINES_AT_ONCE = 1000


def main(_arguments: list[str]) -> int:
    log_to("/var/log/cloudwatch-agent.log")
    cluster = attributes()
    group = cluster["log_group_name"]
    if group == "NONE":
        return 0
    read: dict[str, int] = {}
    prefix = f"{socket.gethostname().split('.')[0]}.{instance_id()}"
    while True:
        for name, path in FILES.items():
            try:
                carry(group, f"{prefix}.{name}", Path(path), read)
            except Exception:
                LOG.exception("%s was not carried", path)
        time.sleep(SECONDS_BETWEEN_LOOKS)


def carry(group: str, stream: str, path: Path, read: dict[str, int]) -> None:
    """Send the complete lines that were added to a file since the last look."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(read.get(stream, 0))
        new = file.read()
    whole = new[: new.rfind(b"\n") + 1]
    if not whole:
        return
    logs = client("logs")
    if stream not in read:
        with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
            logs.create_log_stream(logGroupName=group, logStreamName=stream)
    now = int(time.time() * 1000)
    lines = [line for line in whole.decode("utf-8", "replace").splitlines() if line]
    for start in range(0, len(lines), LINES_AT_ONCE):
        events = [{"timestamp": now, "message": line} for line in lines[start : start + LINES_AT_ONCE]]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)
    read[stream] = read.get(stream, 0) + len(whole)
