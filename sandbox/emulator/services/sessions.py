"""Session Manager: which instances are registered with Systems Manager, and sessions; stock moto has neither.

An instance registers some time after it runs, if its role allows the agent what the policy AmazonSSMManagedInstanceCore
allows, and if its subnet has a way to the endpoints of Systems Manager: a default route over a NAT gateway, one over an
internet gateway for an instance with a public address, or interface endpoints (Systems Manager user guide, "Session
Manager prerequisites" and "Configure instance permissions"). A session is for one connection.
"""

from __future__ import annotations

import fnmatch
import json
import secrets
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ssm.responses import SimpleSystemManagerResponse

from sandbox.emulator import state
from sandbox.emulator.access import policy

# Where the stream of a session is, as with AWS; the stand-in for session-manager-plugin connects to it.
PATH = "/v1/data-channel/"
DOCUMENT = "AWS-StartSSHSession"
# What an agent calls before it is connected.
NEEDED = ("ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel")
ENDPOINTS = ("ssm", "ssmmessages")
DEFAULT_PAGE = 10
# Session -> word, address, port, and the access key of who began it.
_sessions: dict[str, tuple[str, str, int, str]] = {}
# Seconds from running to registered.
_delay = {"seconds": 0.0}


def _statements(role: Any) -> Iterator[dict[str, Any]]:
    managed = [version for policy in role.managed_policies.values() for version in policy.versions]
    for document in [version.document for version in managed if version.is_default] + list(role.policies.values()):
        found = (json.loads(document) if isinstance(document, str) else document).get("Statement", [])
        yield from found if isinstance(found, list) else [found]


def _allowed(backend: Any, instance: Any) -> bool:
    association = backend.iam_instance_profile_associations.get(instance.id)
    roles = association.iam_instance_profile.roles if association else []
    granted = [
        pattern
        for role in roles
        if "ec2.amazonaws.com" in str(role.assume_role_policy_document)
        for statement in _statements(role)
        if statement["Effect"] == "Allow"
        for pattern in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]
    return all(any(fnmatch.fnmatchcase(action, pattern) for pattern in granted) for action in NEEDED)


def _has_way_out(backend: Any, instance: Any) -> bool:
    inside = [one for one in backend.vpc_end_points.values() if one.vpc_id == instance.vpc_id]
    wanted = {f"com.amazonaws.{backend.region_name}.{name}" for name in ENDPOINTS}
    if wanted <= {one.service_name for one in inside}:
        return True
    tables = [table for table in backend.route_tables.values() if table.vpc_id == instance.vpc_id]
    own = [table for table in tables if instance.nics[0].subnet.id in table._associations.values()]
    for table in own or [table for table in tables if table.main_association_id]:
        for route in table.routes:
            if route.destination_cidr_block == "0.0.0.0/0":
                return bool(route.nat_gateway or (route.gateway and instance.nics[0].public_ip))
    return False


def registered(account: str, region: str) -> dict[str, Any]:
    """The instances that Session Manager reaches, by id."""
    backend = ec2_backends[account][region]
    return {
        instance.id: instance
        for reservation in backend.reservations.values()
        for instance in reservation.instances
        if instance._state.name == "running"
        and time.monotonic() - getattr(instance, "running_since", 0.0) >= _delay["seconds"]
        and _allowed(backend, instance)
        and _has_way_out(backend, instance)
    }


def _describe(self: SimpleSystemManagerResponse) -> ActionResult:
    online = registered(self.current_account, self.region)
    for wanted in self._get_param("Filters") or []:
        if wanted["Key"] == "InstanceIds":
            online = {key: value for key, value in online.items() if key in wanted["Values"]}
        elif wanted["Key"] != "PingStatus":
            raise JsonRESTError("InvalidFilterKey", f"The sandbox does not know the filter {wanted['Key']}.")
        elif "Online" not in wanted["Values"]:
            online = {}
    first = int(self._get_param("NextToken") or 0)
    last = first + int(self._get_param("MaxResults") or DEFAULT_PAGE)
    records = [
        {"InstanceId": key, "PingStatus": "Online", "ResourceType": "EC2Instance", "PlatformType": "Linux"}
        for key in sorted(online)
    ]
    more = {"NextToken": str(last)} if last < len(records) else {}
    return ActionResult({"InstanceInformationList": records[first:last], **more})


def _start(self: SimpleSystemManagerResponse) -> ActionResult:
    target = self._get_param("Target")
    if self._get_param("DocumentName") != DOCUMENT:
        raise JsonRESTError("InvalidDocument", f"The sandbox knows no other document than {DOCUMENT}.")
    instance = registered(self.current_account, self.region).get(target)
    if instance is None:
        raise JsonRESTError("TargetNotConnected", f"{target} is not connected.")
    (port,) = (self._get_param("Parameters") or {}).get("portNumber", ["22"])
    session, word = f"sandbox-{secrets.token_hex(9)}", secrets.token_urlsafe(32)
    _sessions[session] = (word, instance.private_ip, int(port), policy.caller())
    stream = f"ws://{urlsplit(self.uri).netloc}{PATH}{session}?role=publish_subscribe"
    return ActionResult({"SessionId": session, "TokenValue": word, "StreamUrl": stream})


def _terminate(self: SimpleSystemManagerResponse) -> ActionResult:
    session = self._get_param("SessionId")
    _sessions.pop(session, None)
    return ActionResult({"SessionId": session})


def take(session: str, word: str) -> tuple[str, int] | None:
    """Address and port of a session, once and for who knows its word. Raises DeniedError.

    The plugin opens it in the name of who began it (user guide, "Sample IAM policies for Session Manager").
    """
    with state.LOCK:
        known = _sessions.pop(session, None)
        if known is None or not secrets.compare_digest(known[0], word):
            return None
        policy.check(known[3], lambda: ["ssmmessages:OpenDataChannel"])
    return known[1:3]


def install(pending: float) -> None:
    _delay["seconds"] = 3 * pending
    SimpleSystemManagerResponse.describe_instance_information = _describe
    SimpleSystemManagerResponse.start_session = _start
    SimpleSystemManagerResponse.terminate_session = _terminate
