"""The status of the compute fleet: scripts that read and set it, and the daemon that makes a request come true."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cookbook.node import LOG, attributes, client, log_to

KEY = {"Id": {"S": "COMPUTE_FLEET"}}
DATA = Path("/opt/parallelcluster/shared/computefleet-status.json")
# What the request becomes while it is worked on, and afterwards.
STEPS = {"STOP_REQUESTED": ("STOPPING", "STOPPED"), "START_REQUESTED": ("STARTING", "RUNNING")}
SECONDS_BETWEEN_LOOKS = 2


def table() -> str:
    return str(attributes()["ddb_table"])


def status() -> dict[str, Any]:
    """Status and the time of its last change; empty where there is none yet."""
    item = client("dynamodb").get_item(TableName=table(), Key=KEY, ConsistentRead=True).get("Item")
    if not item:
        return {}
    return {name: value["S"] for name, value in item["Data"]["M"].items()}


def set_status(value: str, unless_set: bool = False) -> None:
    """Write the status down."""
    if unless_set and status():
        return
    data = {"status": {"S": value}, "lastStatusUpdatedTime": {"S": str(datetime.now(tz=timezone.utc))}}
    client("dynamodb").put_item(TableName=table(), Item={**KEY, "Data": {"M": data}})


def get(_arguments: list[str]) -> int:
    print(json.dumps(status()))
    return 0


def update(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--status", required=True)
    set_status(parser.parse_args(arguments).status)
    return 0


def daemon(_arguments: list[str]) -> int:
    log_to("/var/log/parallelcluster/clusterstatusmgtd")
    while True:
        try:
            step()
        except Exception:
            LOG.exception("the fleet's status could not be handled")
        time.sleep(SECONDS_BETWEEN_LOOKS)


def step() -> None:
    """One look: a request is handed to the program of aws-parallelcluster-node, and its end is written down."""
    now = status()
    if now.get("status") not in STEPS:
        return
    LOG.info("fleet: %s", now["status"])
    during, after = STEPS[now["status"]]
    DATA.write_text(json.dumps(now), encoding="utf-8")
    set_status(during)
    manager = ["/opt/parallelcluster/bin/slurm_fleet_status_manager", "--computefleet-status-data", str(DATA)]
    done = subprocess.run(manager, check=False)
    LOG.info("fleet: %s, code %s", during, done.returncode)
    if done.returncode == 0:
        set_status(after)
