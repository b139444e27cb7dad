"""The contracts of imports refuse what they are for."""

from __future__ import annotations

import pytest

from tests.lint.imports import PACKAGE, cycles, module_utils, problems_of, rooms_of, sandbox_rooms

FILES = frozenset({"_ec2.plan", "_ec2.calls", "_ec2.run", "_fsx.plan", "_fsx.calls", "_fsx.run", "_common.files"})


def test_the_tree_keeps_them() -> None:
    assert module_utils() == []
    assert sandbox_rooms() == []


@pytest.mark.parametrize(
    ("me", "source", "words"),
    [
        ("_ec2.plan", "import boto3", "a pure file imports boto3"),
        ("_ec2.plan", "import subprocess", "a pure file imports subprocess"),
        ("_ec2.plan", "from ansible.module_utils.basic import AnsibleModule", "a pure file imports ansible"),
        ("_ec2.plan", "def f():\n    import socket", "_ec2.plan, line 2: a pure file imports socket"),
        ("_ec2.plan", f"from {PACKAGE}._common import files", "reaches out of the process"),
        ("_ec2.plan", f"from {PACKAGE}._ec2.calls import describe", "a pure file imports _ec2.calls"),
        ("_ec2.calls", f"from {PACKAGE}._ec2 import run", "calls never import run"),
        ("_ec2.run", f"from {PACKAGE}._fsx.plan import Plan", "_fsx, which comes after it"),
        ("_fsx.run", f"from {PACKAGE}._ec2 import run", "the run of another subject"),
        ("_new.plan", "import json", "_new is not a subject"),
    ],
)
def test_what_is_refused(me: str, source: str, words: str) -> None:
    assert any(words in problem for problem in problems_of(me, source, FILES))


@pytest.mark.parametrize(
    ("me", "source"),
    [
        ("_fsx.plan", f"import json\nfrom urllib.parse import quote\nfrom {PACKAGE}._ec2.plan import Plan"),
        ("_ec2.run", f"import time\nimport boto3\nfrom {PACKAGE}._ec2 import calls, plan"),
    ],
)
def test_what_is_allowed(me: str, source: str) -> None:
    assert list(problems_of(me, source, FILES)) == []


def test_a_cycle_is_named() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["these import each other: a -> b -> c -> a"]
    assert cycles({"a": {"b", "c"}, "b": {"c"}}) == []


def test_folders_that_import_each_other_are_named_where_their_files_do_not() -> None:
    imports = [("top.ec2.a", "top.fsx.b"), ("top.fsx.c", "top.ec2.d"), ("top.ec2", "top.ec2.a"), ("top.ec2.a", "top")]
    assert cycles(rooms_of(imports)) == ["these import each other: top.ec2 -> top.fsx -> top.ec2"]
