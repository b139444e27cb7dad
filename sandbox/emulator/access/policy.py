"""IAM for callers whose access key was given a policy: what no statement allows is refused as the service refuses it.

Other keys may do everything. What CloudFormation does in the caller's name is judged by its actions
(sandbox/emulator/cloudformation/permissions.py). GetCallerIdentity needs no permission (STS API reference).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from sandbox.emulator import state
from sandbox.emulator.access.permissions import needs, signer
from sandbox.emulator.access.statements import Need, allowed

_FREE = ("sts:GetCallerIdentity",)
# Services whose protocol is older than JSON.
_XML = ("s3", "cloudformation", "elasticloadbalancing")
# Who asks for what CloudFormation does in this thread.
CALLER = threading.local()


class DeniedError(Exception):
    """The caller's policy does not allow what CloudFormation would do."""


def refusal(environ: dict[str, Any], entry: dict[str, Any], body: bytes) -> tuple[int, str, str] | None:
    """Status, code and sentence for a call that the caller's policy does not allow, else None; notes what it had."""
    key = CALLER.key = signer(environ)[0]
    if key not in state.POLICIES:
        return None
    for need in needs(environ, entry, body):
        if not _granted(key, need):
            service = entry["service"]
            code = "UnauthorizedOperation" if service == "ec2" else "AccessDenied" if service in _XML else ""
            text = f"You are not authorized to perform: {need['action']}"
            return (403, code, text) if code else (400, "AccessDeniedException", text)
    return None


def caller() -> str:
    """The access key of the request that this thread answers, '' for none."""
    return str(getattr(CALLER, "key", ""))


def check(key: str, wanted: Callable[[], Iterable[str | Need]]) -> None:
    """Raise DeniedError where the policy of a key does not allow something; an action alone on whatever resource."""
    for one in wanted() if key in state.POLICIES else ():
        need = {"action": one, "resources": [], "context": None} if isinstance(one, str) else one
        if not _granted(key, need):
            raise DeniedError(f"User: {key} is not authorized to perform: {need['action']}")


def _granted(key: str, need: Need) -> bool:
    if need["action"] in _FREE:
        return True
    if not allowed(state.POLICIES[key], need):
        return False
    used = state.USED.setdefault(key, [])
    if need not in used:
        used.append(need)
    return True
