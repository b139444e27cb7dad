"""cfn-init, cfn-signal and cfn-hup, as far as the user data of ParallelCluster uses them."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from cookbook.node import LOG, client, instance_id, log_to, write

SEEN = Path("/var/lib/cfn-hup/metadata.json")
# A real cfn-hup looks once a minute.
SECONDS_BETWEEN_LOOKS = 3


def metadata(stack: str, resource: str) -> dict[str, Any]:
    """``AWS::CloudFormation::Init`` of a resource."""
    detail = client("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId=resource)
    found: dict[str, Any] = json.loads(detail["StackResourceDetail"]["Metadata"])["AWS::CloudFormation::Init"]
    return found


def apply(document: dict[str, Any], config_set: str) -> bool:
    """Files and commands of a set, in order; false where a command failed."""
    for name in document["configSets"][config_set]:
        section = document[name]
        for path, file in section.get("files", {}).items():
            content = file.get("content", "")
            text = content if isinstance(content, str) else json.dumps(content)
            write(Path(path), text, int(str(file.get("mode", "000644")), 8) & 0o7777)
        for label, command in sorted(section.get("commands", {}).items()):
            LOG.info("%s %s: %s", name, label, command["command"])
            done = subprocess.run(["/bin/bash", "-c", command["command"]], cwd=command.get("cwd") or "/", check=False)
            if done.returncode:
                LOG.error("Command %s (%s) failed", label, command["command"])
                return False
    return True


def init(arguments: list[str]) -> int:
    log_to("/var/log/cfn-init.log")
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--stack", required=True)
    parser.add_argument("-r", "--resource", required=True)
    parser.add_argument("-c", "--configsets", default="default")
    known, _rest = parser.parse_known_args(arguments)
    document = metadata(known.stack, known.resource)
    if known.configsets == "deployFiles":
        write(SEEN, json.dumps(document))
        write(Path("/etc/parallelcluster/stack"), f"{known.stack} {known.resource}\n")
    return 0 if apply(document, known.configsets) else 1


def parse_signal(arguments: list[str]) -> argparse.Namespace:
    """What cfn-signal is told. The service's region and address are not needed beside a handle, which is an address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("handle")
    parser.add_argument("-e", "--exit-code", type=int, default=0)
    parser.add_argument("-r", "--reason", default="")
    parser.add_argument("--region")
    parser.add_argument("--url")
    return parser.parse_args(arguments)


def signal(arguments: list[str]) -> int:
    log_to("/var/log/cfn-init.log")
    known = parse_signal(arguments)
    body = {
        "Status": "FAILURE" if known.exit_code else "SUCCESS",
        "Reason": known.reason,
        "UniqueId": instance_id(),
        "Data": "",
    }
    data = json.dumps(body).encode()
    request = urllib.request.Request(known.handle, data, {"Content-Type": ""}, method="PUT")  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the handle's own URL
        LOG.info("signalled %s: %s", body["Status"], answer.status)
    return 0


def hup(_arguments: list[str]) -> int:
    """Run the set ``update`` whenever an update of the stack changed the metadata."""
    log_to("/var/log/cfn-hup.log")
    logging.getLogger().setLevel(logging.INFO)
    stack, resource = Path("/etc/parallelcluster/stack").read_text(encoding="utf-8").split()
    while True:
        try:
            document = metadata(stack, resource)
            if json.dumps(document) != SEEN.read_text(encoding="utf-8"):
                LOG.info("the metadata changed")
                apply(document, "update")
                write(SEEN, json.dumps(document))
        except Exception:
            # As the real one does: what could not be asked now is asked again.
            LOG.exception("the metadata could not be read")
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return os.EX_OK
