"""fetch_and_run: the custom actions of a cluster's configuration, each fetched and run with its arguments."""

from __future__ import annotations

import os
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from cookbook.node import LOG, attributes, configuration, fail, log_to, object_of

NAMES = {"-preinstall": "OnNodeStart", "-postinstall": "OnNodeConfigured", "-postupdate": "OnNodeUpdated"}


def section(cluster: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """``CustomActions`` of this kind of node."""
    kind = cluster["node_type"]
    if kind == "HeadNode":
        found = settings["HeadNode"]
    elif kind == "ComputeFleet":
        name = cluster["scheduler_queue_name"]
        found = next(queue for queue in settings["Scheduling"]["SlurmQueues"] if queue["Name"] == name)
    else:
        found = settings["LoginNodes"]["Pools"][0]
    actions: dict[str, Any] = found.get("CustomActions") or {}
    return actions


def fetch(url: str, folder: str) -> str:
    """The path of a script that was fetched from S3 or by HTTP."""
    parts = urllib.parse.urlsplit(url)
    path = Path(folder) / Path(parts.path).name
    if parts.scheme == "s3":
        path.write_bytes(object_of(parts.netloc, parts.path.lstrip("/")))
    else:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310  # the cluster's owner wrote it
            path.write_bytes(answer.read())
    path.chmod(0o700)
    return str(path)


def main(arguments: list[str]) -> int:
    log_to("/var/log/cfn-init-cmd.log")
    cluster = attributes()
    event = NAMES[arguments[0]]
    found = section(cluster, configuration(cluster)).get(event) or {}
    sequence = found.get("Sequence") or ([found] if found.get("Script") else [])
    with tempfile.TemporaryDirectory() as folder:
        for action in sequence:
            words = [fetch(action["Script"], folder), *map(str, action.get("Args") or [])]
            LOG.info("%s: %s", event, " ".join([action["Script"], *words[1:]]))
            done = subprocess.run(words, check=False, env={**os.environ, "HOME": "/root"})
            if done.returncode:
                fail(
                    f"Failed to execute {event} script {action['Script']}, return code: {done.returncode}. "
                    "Please check /var/log/cloud-init-output.log in the node."
                )
                return 1
    return 0
