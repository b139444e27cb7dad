"""Whether the statements of a policy allow what a call needs. Pure.

Resources are judged where the need names some, and conditions where it has a context: a key that is not in it is not
in the request either. Sources: "IAM JSON policy elements reference" (Resource, Condition, condition operators, "Set
operators for multivalued context keys") and "Policy evaluation logic" in IAM's user guide.
"""

from __future__ import annotations

import functools
import re
from typing import Any

# An action, its resources, and the context, None where nobody knows it. Of a resource: its ARN ("" where nobody knows
# it), its tags, and what else of the context is this resource's alone.
Need = dict[str, Any]
Context = dict[str, list[str]]

_ELEMENTS = {"Sid", "Effect", "Action", "Resource", "Condition"}
# How a value is compared with one of the policy; with the same word after "Not" it must not be so.
_OPERATORS = ("StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool")
_OPERATOR = re.compile(r"(?:(ForAllValues|ForAnyValue):)?(.+?)(IfExists)?")
_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def allowed(statements: list[dict[str, Any]], need: Need) -> bool:
    """Whether the statements allow an action on all of its resources; one that denies wins over all that allow."""
    for resource in need["resources"] or [("", {})]:
        covering = {statement["Effect"] for statement in statements if _covers(statement, need, *resource)}
        if covering != {"Allow"}:
            return False
    return True


def _covers(statement: dict[str, Any], need: Need, arn: str, tags: dict[str, str], own: Context | None = None) -> bool:
    unknown = set(statement) - _ELEMENTS
    if unknown or statement["Effect"] not in ("Allow", "Deny"):
        raise ValueError(f"the emulator does not know {sorted(unknown) or statement['Effect']} in a statement")
    if not any(_like(need["action"].lower(), one.lower()) for one in _listed(statement["Action"])):
        return False
    known = {f"{prefix}esourceTag/{key}": [tags[key]] for key in tags for prefix in ("aws:R", "iam:R", "ssm:r")}
    context = {**(need["context"] or {}), **(own or {}), **known}
    if arn and not any(_is_like_arn(arn, one, context) for one in _listed(statement["Resource"])):
        return False
    if need["context"] is None:
        return True
    return all(
        _holds(operator, _listed(values), context.get(key, []), context)
        for operator, wanted in statement.get("Condition", {}).items()
        for key, values in wanted.items()
    )


def _holds(operator: str, values: list[Any], there: list[str], context: Context) -> bool:
    wanted = [str(value) for value in values]
    if operator == "Null":
        return str(not there).lower() in wanted
    match = _OPERATOR.fullmatch(operator)
    every, name, if_exists = match.groups() if match else ("", operator, "")
    negative, plain = "Not" in name, name.replace("Not", "", 1)
    if plain not in _OPERATORS or (negative and plain == "Bool"):
        raise ValueError(f"the emulator does not know the operator {operator}")
    if not there:
        # Nothing is all that there is, but not any of it; and what is not there is not equal.
        return bool(if_exists) or every == "ForAllValues" or (negative and not every)
    if not every and len(there) > 1:
        raise ValueError(f"{operator} compares one value with {there}: say ForAllValues or ForAnyValue")
    results = [any(_equals(plain, value, one, context) for one in wanted) != negative for value in there]
    return all(results) if every == "ForAllValues" else any(results)


def _equals(operator: str, value: str, wanted: str, context: Context) -> bool:
    if operator.startswith("Arn"):
        # Both of them take wildcards.
        return _is_like_arn(value, wanted, context)
    if operator == "StringLike":
        return _like(value, wanted, context)
    filled = _filled(wanted, context)
    if operator in ("Bool", "StringEqualsIgnoreCase"):
        return filled is not None and value.lower() == filled.lower()
    return value == filled


def _is_like_arn(arn: str, pattern: str, context: Context) -> bool:
    """Whether a pattern fits; but for a lone asterisk no wildcard goes beyond its part of the ARN."""
    if pattern == "*":
        return True
    parts, wanted = arn.split(":", 5), pattern.split(":", 5)
    return len(parts) == len(wanted) == 6 and all(_like(*both, context) for both in zip(parts, wanted))


def _filled(text: str, context: Context) -> str | None:
    """The text with the values of its variables, None where one of them is not in the request."""
    if any(len(context.get(name, [])) != 1 for name in _VARIABLE.findall(text)):
        return None
    return _VARIABLE.sub(lambda name: context[name[1]][0], text)


def _like(text: str, pattern: str, context: Context | None = None) -> bool:
    # The value of a variable has no wildcards.
    values = {name: context.get(name, []) for name in _VARIABLE.findall(pattern)} if context is not None else {}
    if any(len(value) != 1 for value in values.values()):
        return False
    expression = "".join(
        re.escape(values[part][0]) if number % 2 and values else _expression(part)
        for number, part in enumerate(_VARIABLE.split(pattern) if values else [pattern])
    )
    return re.fullmatch(expression, text, re.DOTALL) is not None


@functools.cache
def _expression(pattern: str) -> str:
    """Only these two are wildcards, and brackets are none."""
    return re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
