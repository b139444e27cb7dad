"""IAM for callers whose access key was given a policy: what no statement allows is refused as the service refuses it.

Judged by the action only; resources and conditions of a statement are not. Other keys may do everything.
Sources: "Actions, resources, and condition keys for Amazon EC2" (what creates something with tags needs CreateTags as
well, and who launches with an instance profile PassRole), "Tagging IAM resources" in IAM's user guide, the STS API
reference (GetCallerIdentity needs no permission), PutParameter in Systems Manager's.
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from sandbox.emulator import state

_FREE = ("sts:GetCallerIdentity",)
# Service in a signature -> prefix of its actions, where they differ.
_PREFIXES = {"monitoring": "cloudwatch", "email": "ses"}
_REST = {
    ("s3", "GET /"): "ListAllMyBuckets",
    ("resource-groups", "POST /groups"): "CreateGroup",
    ("resource-groups", "POST /groups-list"): "ListGroups",
    ("resource-groups", "POST /list-group-resources"): "ListGroupResources",
    ("resource-groups", "POST /get-group"): "GetGroup",
    ("resource-groups", "POST /delete-group"): "DeleteGroup",
    ("resource-groups", "POST /get-group-configuration"): "GetGroupConfiguration",
    ("resource-groups", "POST /group-resources"): "GroupResources",
    ("resource-groups", "POST /ungroup-resources"): "UngroupResources",
}


def caller(environ: dict[str, Any]) -> str:
    """The access key of a signed request, '' for none."""
    match = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
    return match.group(1) if match else ""


def refusal(environ: dict[str, Any], entry: dict[str, Any]) -> tuple[int, str, str] | None:
    """Status, code and sentence for a call that the caller's policy does not allow, else None; notes what it had."""
    key = caller(environ)
    if key not in state.POLICIES:
        return None
    service = entry["service"]
    name = _REST.get((service, entry["action"]), entry["action"])
    wanted = [f"{_PREFIXES.get(service, service)}:{name}"]
    if service == "ec2" and any(one.startswith("TagSpecification") for one in entry["parameters"]):
        wanted.append("ec2:CreateTags")
    if service == "ec2" and any(one.startswith("IamInstanceProfile.") for one in entry["parameters"]):
        wanted.append("iam:PassRole")
    if service == "iam" and any(one.startswith("Tags.") for one in entry["parameters"]):
        wanted.append(f"iam:{name.replace('Create', 'Tag')}")
    if wanted == ["ssm:PutParameter"] and entry["parameters"].get("Tags"):
        wanted.append("ssm:AddTagsToResource")
    for action in wanted:
        if action not in _FREE and not _allows(state.POLICIES[key], action):
            code = "UnauthorizedOperation" if service == "ec2" else "AccessDeniedException"
            return (403 if service == "ec2" else 400), code, f"You are not authorized to perform: {action}"
        state.USED.setdefault(key, set()).add(action)
    return None


def _allows(statements: list[dict[str, Any]], action: str) -> bool:
    return any(
        fnmatch.fnmatchcase(action.lower(), pattern.lower())
        for statement in statements
        if statement["Effect"] == "Allow"
        for pattern in statement["Action"]
    )
