"""Kinds of values at the edge between what fits and what does not, and what is said to use instead."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.rules import (
    COMMON,
    KINDS,
    SHOWN,
    refusal,
    shown,
)

Rule = dict[str, Any]


def refused(kind: str, value: Any, **more: Any) -> str:
    return refusal({"variable": "name", "kind": kind, **more}, value)


# kind, what the rule says beside, values that fit, values that do not.
EDGES: list[tuple[str, Rule, list[Any], list[Any]]] = [
    ("text", {}, ["a\u00e9", " "], ["a\tb", "a\x7f", "", [], True, 1.5]),
    ("pattern", {"pattern": "[0-9]+"}, [12, 3, "4"], [1.5, "1\n", None, ["1"], {"1": 1}]),
    ("one_of", {"values": [1, "a"]}, [1, "a"], ["1", "A", None]),
    ("whole", {}, [-1, "-1", " 7 ", 0], ["", "-", "1.0", 1.0, False, None, [1], float("nan"), "inf"]),
    ("whole", {"minimum": 1}, [1, 10**9], [0, "-1"]),
    ("whole", {"maximum": 9}, [9, -5], [10]),
    ("number", {}, [0, -2.5, "1e3", "inf"], ["nan", "", "a", True, None, [1], {}]),
    ("number", {"minimum": 0.5, "maximum": 1}, [0.5, 1, "1.0"], [0.49, 1.01]),
    ("port", {}, [1, 65535, "22"], [0, 65536, -1, "22/tcp", 22.0, True]),
    (
        "path",
        {},
        ["/", "/a/..b/c..", "/a.b-c_d,e=f"],
        ["", "a/b", "/a/..", "/../a", '/a"', "/a'", "/a\\b", "/%h", "/$a", "/a\tb", 3],
    ),
    (
        "cidr",
        {},
        ["10.0.0.0/8", "0.0.0.0/1", "1.2.3.4/32"],
        ["0.0.0.0/0", "1.2.3.4", "::/8", "1.2.3.5/31", "a/8", None],
    ),
    ("cidr", {"prefix": [16, 28]}, ["10.0.0.0/16", "10.0.0.0/28"], ["10.0.0.0/15", "10.0.0.0/29"]),
    (
        "url",
        {},
        ["http://h", "https://h.example.com:65535/a?b=c", "https://[::1]/"],
        ["http://h:0", "http://h:65536/", "http://", "//h", "http://u@h/", "http://h/\n", "HTTP//h", "http://[", 3],
    ),
    ("url", {"credentials": True}, ["https://u:p@h/a", "http://h"], ["https://u:p@/a", "ftp://u:p@h", "file:///a"]),
    ("url", {"files": True}, ["file:///srv/a", "http://h"], ["file://srv/a", "file:///a\n", "https://u:p@h", "/srv"]),
    ("host", {}, ["a", "a-b", "_a.b_", "1.2.3.4", "a" * 63], ["-a", "a-", "a.", ".a", "a" * 64, "a b", "a/b", 5]),
    ("cluster_name", {}, ["a", "A-1", "a" * 60], ["a" * 61, "1a", "-a", "a.b", "a_b", ""]),
    ("cluster_tag", {}, ["a", "a/b", "a" * 256], ["a" * 257, "a*", "a?", "a b", "a\tb", ""]),
    ("region", {}, ["us-west-2", "ap-southeast-10", "eusc-de-east-1"], ["us-west-2a", "us2", "us-west-", "u-west-2"]),
    ("instance_type", {}, ["trn1.32xlarge", "u-6tb1.metal"], ["trn1.", ".32xlarge", "1trn.2xlarge", "trn1.32_x", 5]),
    (
        "id",
        {"prefix": "sg"},
        ["sg-01234567", "sg-0123456789abcdef0"],
        ["sg-0123456", "sg-0123456789abcdef01", "sg-0G234567"],
    ),
    ("key_name", {}, ["a", "my key", "a" * 255], ["a" * 256, " a", "a ", "a\u00e9", "", "a\n"]),
    ("user", {}, ["a", "_apt", "1000", "a" * 64, "A.b@c-d"], ["a" * 65, "-a", ".a", "a b", "a/b", ""]),
    ("fingerprint", {}, ["0aB9" * 10, " 0aB9" * 10], ["0aB9" * 10 + "0", "0aB9" * 9, "g" * 40, ""]),
    ("sha256", {}, ["aF" * 32], ["aF" * 31, "aF" * 32 + "0", "g" * 64, "sha256:" + "aF" * 32]),
    ("sha256", {"prefixed": True}, ["aF" * 32, "sha256:" + "aF" * 32], ["sha512:" + "aF" * 32, "sha256:"]),
    ("size", {}, ["1", "64M", "64 MiB", "1.5TB", "7B", 10], ["0", "01", "64X", "64Mi", "1.", "-1", "M", ""]),
    ("duration", {}, ["1ms", "10s", "05m", "1h", "2d", "1w", "1y"], ["0s", "00m", "1", "1 s", "-1s", "1M", "s", 5]),
    (
        "time_limit",
        {},
        ["unlimited", "INFINITE", "1", 90, "2-0", "0:01"],
        ["0", 0, "0:00", 1.5, None, True, ["1"], "1h"],
    ),
    (
        "requirement",
        {},
        ["a", "a.b-c_d", "a[b, c]", "a==1.0", "a>=1,<2", "a~=1", "a===1", "a ; b", "a@ file:///a", "a!=1"],
        ["-r a", "a b", ".a", "a[b", "a]", "", 5],
    ),
    ("version", {}, ["1.2", "1.2.3", "1.2.3.4"], ["1", "1.2.3.4.5", "v1.2", "1.2rc1", "1..2", 1.2]),
    (
        "tags",
        {},
        [{}, {"k" * 128: "v" * 256}, {"a": 1, "b": 1.5}, {str(n): "a" for n in range(40)}],
        [
            {"k" * 129: "v"},
            {"k": "v" * 257},
            {str(n): "a" for n in range(41)},
            {"AWS:a": "b"},
            {"Trainium:a": "b"},
            {"": "a"},
            {1: "a"},
            {"a": None},
            {"a": ["b"]},
            "a",
        ],
    ),
    (
        "reservation",
        {},
        [
            {"id": "cr-01234567"},
            {"id": "cr-01234567", "resource_group_arn": "", "preference": None},
            {"resource_group_arn": "arn:aws-us-gov:resource-groups:us-gov-west-1:1:group/a"},
            {"preference": "none"},
            {"preference": "capacity-reservations-only"},
            {"id": "cr-01234567", "preference": "open"},
        ],
        [
            {"id": "cr-0123456"},
            {"id": "r-01234567"},
            {"resource_group_arn": "arn:aws:ec2:a"},
            {"id": "cr-01234567", "resource_group_arn": "arn:aws:resource-groups:a"},
            {"preference": "any"},
            {"id": ""},
            None,
            [],
        ],
    ),
    ("prices", {}, [{}, {"trn1.2xlarge": 0, "u-6tb1.metal": "1.5"}], [{"trn1": 1}, {"trn1.2xlarge": -0.1}, {1: 1}, []]),
    ("space", {}, [{"/": 0, "/var/a b": 2.5}], [{"var": 1}, {"/": -1}, {"/": True}, {"/": None}, "/"]),
    ("keys", {"known": ["a", "b"]}, [{}, {"a": None, "b": 1}], [{"c": 1}, {"a": 1, "c": 1}, ["a"], "a", None]),
    (
        "settings",
        {},
        [{}, {"A": "b", "a_9": 1, "B": 1.5}],
        [{"9a": "b"}, {"_a": "b"}, {"a-b": "c"}, {"a": ""}, {"a": "b\nc"}, {"a": None}, {1: "a"}, "a"],
    ),
    ("condition", {}, [True, "true", "True", "TRUE"], [False, "yes", 1, None, "False", ""]),
]


@pytest.mark.parametrize(("kind", "more", "good", "bad"), EDGES)
def test_the_edge_of_each_kind(kind: str, more: Rule, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if refused(kind, value, **more)] == []
    assert [value for value in bad if not refused(kind, value, **more)] == []


def test_every_kind_has_an_edge() -> None:
    assert {kind for kind, *_rest in EDGES} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_names_what_its_rules_may_say_beside(kind: str) -> None:
    """By these names the tables of roles are checked."""
    said = {key for one, more, *_values in EDGES if one == kind for key in more}
    assert said - COMMON == KINDS[kind].keys


@pytest.mark.parametrize(
    ("kind", "more", "wanted"),
    [
        ("pattern", {"pattern": "a", "wanted": "the letter a"}, "the letter a"),
        ("one_of", {"values": ["a", 2]}, "one of a, 2"),
        ("whole", {}, "a whole number"),
        ("whole", {"minimum": 3}, "a whole number of 3 or more"),
        ("whole", {"minimum": 3, "maximum": 9}, "a whole number from 3 to 9"),
        ("number", {"maximum": 9}, "a number from 0 to 9"),
        ("cidr", {}, "a network with a prefix of 1 to 32 bits, such as 10.77.0.0/16"),
        ("cidr", {"prefix": [16, 28]}, "a network with a prefix of 16 to 28 bits, such as 10.77.0.0/16"),
        ("url", {"credentials": True}, "an http or https URL"),
        ("id", {"prefix": "sg"}, "an id such as sg-0123456789abcdef0"),
        ("keys", {"known": ["a", "b"]}, "no keys but a, b"),
        ("region", {"wanted": "the cluster's region"}, "the cluster's region"),
    ],
)
def test_a_refusal_says_what_to_use(kind: str, more: Rule, wanted: str) -> None:
    assert refused(kind, "?", **more) == f"name is '?'; use {wanted}."


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"condition", "pattern"}))
def test_every_kind_says_something_to_use(kind: str) -> None:
    more = {"values": ["a"], "prefix": [1, 2] if kind == "cidr" else "sg", "known": ["a"]}
    said = refused(kind, None, **more)
    assert said.startswith("name is 'None'; use ") and len(said) > len("name is 'None'; use a b.")


@pytest.mark.parametrize("value", ["", [], (), {}, None])
def test_what_may_be_empty_is_not_looked_at(value: Any) -> None:
    assert refused("version", value, empty=True) == ""
    assert refused("version", value) != ""


@pytest.mark.parametrize("value", [0, False, " "])
def test_what_is_not_empty_is_looked_at(value: Any) -> None:
    assert refused("version", value, empty=True) != ""


def test_each_of_a_list_is_looked_at_and_the_first_wrong_one_is_named() -> None:
    assert refused("port", [1, 0, -1], each=True) == "name has '0'; use a TCP port from 1 to 65535."
    assert refused("port", (1, 2), each=True) == refused("port", [], each=True) == ""
    assert refused("port", {"a": 1}, each=True) == "name is '{'a': 1}'; use a list."
    assert refused("port", None, each=True, empty=True) == ""


def test_a_sentence_of_its_own_is_one_line_with_what_it_names() -> None:
    sentence = "{variable} of {host} is {value},\n  and {wanted} is {other}"
    said = refusal({"variable": "a", "kind": "version", "sentence": sentence}, "{host}", "node-1")
    assert said == "a of node-1 is {host}, and a version such as 2.31.1 is {other}"
    assert "is '';" in refused("version", "")
    assert refused("version", "", sentence="is {value}") == "is nothing"


def test_a_value_is_quoted_on_one_line_and_not_whole() -> None:
    assert shown("x" * SHOWN) == "x" * SHOWN
    assert shown("x" * (SHOWN + 1)) == f"{'x' * SHOWN}..."
    assert shown("a\nb\u200bc") == "a?b?c"
    assert shown(["https://u:p@h"]).endswith("https://...@h']")
