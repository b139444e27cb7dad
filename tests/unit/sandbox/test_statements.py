"""The emulator judges statements of IAM as its user guide says, and never more kindly."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.emulator.access.statements import allowed

ARN = "arn:aws:ec2:us-west-2:123456789012:instance/i-1"
MINE = {"trainium:cluster": "bert"}
Statement = dict[str, Any]


def statement(effect: str = "Allow", **more: Any) -> Statement:
    return {"Sid": "A", "Effect": effect, "Action": ["ec2:StopInstances"], "Resource": "*", **more}


def judged(
    *statements: Statement,
    arn: str = ARN,
    tags: dict[str, str] | None = None,
    given: dict[str, list[str]] | None = None,
) -> bool:
    need = {"action": "ec2:StopInstances", "resources": [(arn, tags or {})], "context": given or {}}
    return allowed(list(statements), need)


def test_what_nothing_allows_is_refused() -> None:
    assert not judged()
    assert not judged(statement(Action=["ec2:StartInstances"]))
    assert judged(statement(Action="EC2:stop*"))


def test_a_denial_wins_wherever_it_stands() -> None:
    deny = statement("Deny", Condition={"Null": {"aws:ResourceTag/keep": "false"}})
    for both in ([statement(), deny], [deny, statement()]):
        assert not judged(*both, tags={"keep": "1"})
        assert judged(*both, tags=MINE)
    assert not judged(deny, tags=MINE)


def test_every_resource_must_be_allowed() -> None:
    bound = statement(Condition={"Null": {"aws:ResourceTag/trainium:cluster": "false"}})
    need = {"action": "ec2:StopInstances", "resources": [(ARN, MINE), (ARN, {})], "context": {}}
    assert not allowed([bound], need)
    assert allowed([bound], {**need, "resources": [(ARN, MINE), (ARN, MINE, {})]})


def test_what_is_made_has_its_own_tags_alone() -> None:
    """A tag that a request gives to its volumes is none of its instances."""
    bound = statement(Condition={"Null": {"aws:RequestTag/trainium:cluster": "false"}})
    given = {"aws:RequestTag/trainium:cluster": ["bert"]}
    need = {"action": "ec2:StopInstances", "context": {}}
    assert allowed([bound], {**need, "resources": [(ARN, {}, given)]})
    assert not allowed([bound], {**need, "resources": [(ARN, {}, given), (ARN, {}, {})]})


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*", True),
        (ARN, True),
        ("arn:aws:ec2:*:*:instance/*", True),
        ("arn:aws:ec2:*:*:instance/i-?", True),
        ("arn:*", False),
        ("arn:aws:ec2:*", False),
        ("arn:aws:ec2:us-west-2:*:volume/*", False),
        ("arn:aws:ec2:*:*:instance/[i]-1", False),
        ("arn:aws:ec2:*:*:Instance/*", False),
        ("arn:aws:ec2:*:*:instance/${aws:userid}", False),
    ],
)
def test_resources_are_compared_part_by_part(pattern: str, fits: bool) -> None:
    assert judged(statement(Resource=pattern)) == fits
    assert judged(statement(Resource=["arn:aws:s3:::a", pattern])) == fits


def test_what_has_no_resource_takes_the_asterisk() -> None:
    assert judged(statement(), arn="*")
    assert not judged(statement(Resource="arn:aws:ec2:*:*:instance/*"), arn="*")


def test_a_variable_is_the_callers() -> None:
    own = statement(Resource="arn:aws:ssm:*:*:session/${aws:userid}-*")
    for session, fits in (("ada-1", True), ("eve-1", False)):
        arn = f"arn:aws:ssm:us-west-2:123456789012:session/{session}"
        assert judged(own, arn=arn, given={"aws:userid": ["ada"]}) == fits
    # What a variable holds is no pattern.
    assert not judged(own, arn="arn:aws:ssm:us-west-2:123456789012:session/eve-1", given={"aws:userid": ["*"]})


# Operator, values of the policy, values of the request, whether it holds.
CONDITIONS: list[tuple[str, Any, list[str], bool]] = [
    ("Null", "true", [], True),
    ("Null", "true", ["x"], False),
    ("Null", "false", [], False),
    ("Null", "false", ["x"], True),
    ("Bool", "true", ["true"], True),
    ("Bool", True, ["true"], True),
    ("Bool", "true", ["false"], False),
    ("Bool", "true", [], False),
    ("Bool", "false", [], False),
    ("BoolIfExists", "true", [], True),
    ("BoolIfExists", "true", ["false"], False),
    ("StringEquals", "a", ["a"], True),
    ("StringEquals", ["a", "b"], ["b"], True),
    ("StringEquals", "a", ["A"], False),
    ("StringEquals", "a*", ["ab"], False),
    ("StringEquals", "a", [], False),
    ("StringEqualsIfExists", "a", [], True),
    ("StringEqualsIfExists", "a", ["b"], False),
    ("StringEqualsIgnoreCase", "a", ["A"], True),
    ("StringNotEquals", "a", ["b"], True),
    ("StringNotEquals", ["a", "b"], ["b"], False),
    ("StringNotEquals", "a", [], True),
    ("StringLike", "ec2.*.amazonaws.com", ["ec2.us-west-2.amazonaws.com"], True),
    ("StringLike", "a?c", ["abc"], True),
    ("StringLike", "a[b]c", ["abc"], False),
    ("StringLike", "*", [], False),
    ("StringNotLike", "a*", ["ab"], False),
    ("StringNotLike", "a*", [], True),
    ("ArnEquals", "arn:aws:iam::aws:policy/*", ["arn:aws:iam::aws:policy/A"], True),
    ("ArnLike", "arn:aws:iam::*:policy/A", ["arn:aws:iam::aws:policy/B"], False),
    ("ArnNotLike", "arn:aws:iam::aws:policy/*", ["arn:aws:iam::aws:policy/A"], False),
    ("ForAnyValue:StringEquals", ["a", "b"], ["c", "b"], True),
    ("ForAnyValue:StringEquals", "a", ["b", "c"], False),
    ("ForAnyValue:StringEquals", "a", [], False),
    ("ForAnyValue:StringNotEquals", "a", ["a", "b"], True),
    ("ForAnyValue:StringNotEquals", "a", [], False),
    ("ForAllValues:StringEquals", ["a", "b"], ["a", "b"], True),
    ("ForAllValues:StringEquals", "a", ["a", "b"], False),
    # As AWS has it: nothing is all that there is, so that such a condition does not ask for the key to be there.
    ("ForAllValues:StringEquals", "a", [], True),
    ("ForAllValues:StringLike", ["trainium:*", "Name"], ["Name", "trainium:cluster"], True),
]


@pytest.mark.parametrize(("operator", "wanted", "there", "holds"), CONDITIONS)
def test_conditions(operator: str, wanted: Any, there: list[str], holds: bool) -> None:
    condition = {operator: {"a:key": wanted}}
    given = {"a:key": there} if there else {}
    assert judged(statement(Condition=condition), given=given) == holds
    assert judged(statement(), statement("Deny", Condition=condition), given=given) != holds


def test_all_keys_of_all_operators_must_hold() -> None:
    both = statement(Condition={"Null": {"a:x": "false", "a:y": "false"}, "Bool": {"a:z": "true"}})
    whole = {"a:x": ["1"], "a:y": ["1"], "a:z": ["true"]}
    assert judged(both, given=whole)
    for key in whole:
        assert not judged(both, given={name: value for name, value in whole.items() if name != key})


@pytest.mark.parametrize(
    ("more", "there"),
    [
        ({"Condition": {"NumericLessThan": {"a:key": "1"}}}, ["1"]),
        ({"Condition": {"BoolNot": {"a:key": "true"}}}, ["true"]),
        ({"Condition": {"StringEquals": {"a:key": "a"}}}, ["a", "b"]),
        ({"NotAction": ["ec2:StopInstances"]}, []),
        ({"NotResource": "*"}, []),
        ({"Effect": "allow"}, []),
    ],
)
def test_what_the_emulator_cannot_judge_is_said(more: Statement, there: list[str]) -> None:
    with pytest.raises(ValueError, match=r"emulator does not know|compares one value"):
        judged({**statement(), **more}, given={"a:key": there})
