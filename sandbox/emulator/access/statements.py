"""Whether the statements of a policy allow what a call needs. Pure.

Resources are judged where the need names some. Of the condition keys those in `JUDGED` are, others pass; and no
condition where the context is None. Sources: "IAM JSON policy elements reference" and "Policy evaluation logic" in
IAM's user guide.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import Any

# An action, its resources (ARN and tags; none where it has none or where nobody knows them), and the context.
Need = dict[str, Any]

JUDGED = (
    *("aws:CalledVia", "aws:RequestTag/", "aws:ResourceTag/", "aws:TagKeys", "ec2:CreateAction", "ec2:LaunchTemplate"),
    *("eks:policyArn", "iam:AWSServiceName", "iam:PassedToService", "iam:PolicyARN", "iam:ResourceTag/"),
    "ssm:resourceTag/",
)


def allowed(statements: list[dict[str, Any]], need: Need) -> bool:
    """Whether the statements allow an action on all of its resources."""
    for arn, tags in need["resources"] or [("", {})]:
        if not any(_covers(statement, need, arn, tags) for statement in statements if statement["Effect"] == "Allow"):
            return False
    return True


def _covers(statement: dict[str, Any], need: Need, arn: str, tags: dict[str, str]) -> bool:
    if not _matches(need["action"].lower(), [pattern.lower() for pattern in _listed(statement["Action"])]):
        return False
    if arn and not _matches(arn, _listed(statement["Resource"])):
        return False
    if need["context"] is None:
        return True
    known = {f"{prefix}esourceTag/{key}": [tags[key]] for key in tags for prefix in ("aws:R", "iam:R", "ssm:r")}
    context = {**need["context"], **known}
    return all(
        _holds(operator, values, context.get(key, []))
        for operator, wanted in statement.get("Condition", {}).items()
        for key, values in wanted.items()
        if key.startswith(JUDGED)
    )


def _holds(operator: str, values: Any, there: list[str]) -> bool:
    wanted = [str(value) for value in _listed(values)]
    if operator == "Null":
        return bool(there) == (wanted == ["false"])
    plain = operator.removesuffix("IfExists")
    if plain not in ("StringEquals", "StringLike", "ForAnyValue:StringEquals", "ArnEquals", "ArnLike"):
        raise ValueError(f"the emulator does not know the operator {operator}")
    if plain != operator and not there:
        return True
    # ArnEquals takes wildcards as well.
    like = plain == "StringLike" or plain.startswith("Arn")
    return any(value in wanted or (like and _matches(value, wanted)) for value in there)


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
