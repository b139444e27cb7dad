"""The log of every call: what a request in any of the AWS protocols asks for, and how it was answered."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from typing import Any

from sandbox.emulator import state
from sandbox.emulator.access.permissions import signer

# Names of actions that change nothing.
READS = re.compile(r"^(Describe|Get|List|Head|Lookup|BatchGet|Search|Query|Scan|Select|Validate|Assume|Simulate)")
# The same of REST services that read by POST, as Resource Groups does.
READ_PATHS = re.compile(r"^/(get-|list-|search-|groups-list)")
CODE = re.compile(rb"<Code>([^<]+)</Code>|\"(?:__type|code)\": ?\"(?:[^\"]*#)?([^\"]+)\"")


def record(environ: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Write a call down.

    Returns:
        its entry: time (seconds since 1970), service, action, parameters, write, agent; ``finish`` adds the answer.
    """
    service, action, parameters = read(environ, body)
    entry = {
        "time": time.time(),
        "service": service,
        "action": action,
        "parameters": parameters,
        "write": writes(action, parameters),
        "agent": environ.get("HTTP_USER_AGENT", "")[:120],
    }
    state.CALLS.append(entry)
    return entry


def finish(entry: dict[str, Any], status: str, body: bytes) -> None:
    """Add the answer: status (HTTP), and error (the AWS code) where it is one."""
    entry["status"] = int(status.split()[0])
    if entry["status"] >= 400:
        found = CODE.search(body)
        entry["error"] = (found.group(1) or found.group(2)).decode() if found else ""


def read(environ: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, Any]]:
    """(service, action, parameters) of a request.

    The service is that of the credential scope. Parameters of query protocols are flat, as sent
    (``NetworkInterface.1.DeviceIndex``); those of JSON protocols are the body. REST calls are ``METHOD /path``.
    """
    service = signer(environ)[2] or "unknown"
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        try:
            parameters = json.loads(body or b"{}")
        except ValueError:
            parameters = {}
        return service, target.rsplit(".", 1)[-1], parameters if isinstance(parameters, dict) else {}
    query = environ.get("QUERY_STRING", "")
    if "x-www-form-urlencoded" in environ.get("CONTENT_TYPE", ""):
        query = body.decode(errors="replace")
    parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    if "Action" in parameters:
        parameters.pop("Version", None)
        return service, str(parameters.pop("Action")), parameters
    return service, f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}", parameters


def writes(action: str, parameters: dict[str, Any]) -> bool:
    """Whether a call would change the account. A dry run does not."""
    if str(parameters.get("DryRun", "")).lower() == "true":
        return False
    if " " in action:
        method, path = action.split(maxsplit=1)
        return method not in ("GET", "HEAD") and not READ_PATHS.match(path)
    return not READS.match(action)
