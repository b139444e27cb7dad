"""Policies of buckets: statements that do not concern the request; stock moto takes their conditions for met.

A bucket that refuses plain HTTP (``aws:SecureTransport``) works here: a request to the sandbox stands for one over TLS.
"""

from __future__ import annotations

import json
from typing import Any

from moto.s3.models import FakeBucket


def _concerns(statement: dict[str, Any]) -> bool:
    """Whether a statement concerns a client of the account that speaks TLS."""
    principal = statement.get("Principal", "*")
    if isinstance(principal, dict) and "AWS" not in principal:
        return False
    for operator, keys in (statement.get("Condition") or {}).items():
        secure = keys.get("aws:SecureTransport") if operator.startswith("Bool") else None
        if secure is not None and "false" in str(secure).lower():
            return False
    return True


_permission = FakeBucket.get_permission


def _permitted(self: Any, action: str, resource: str) -> Any:
    if self.policy is None:
        return _permission(self, action, resource)
    whole = self.policy
    document = json.loads(whole)
    statements = document.get("Statement", [])
    statements = statements if isinstance(statements, list) else [statements]
    document["Statement"] = [statement for statement in statements if _concerns(statement)]
    try:
        self.policy = json.dumps(document).encode() if document["Statement"] else None
        return _permission(self, action, resource)
    finally:
        self.policy = whole


def install() -> None:
    FakeBucket.get_permission = _permitted
