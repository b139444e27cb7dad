"""Kinds of values: what fits, what does not, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.rules import KINDS, refusal, shown

VALUES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "text": ({}, ["a b"], ["", "a\nb", 3, None]),
    "pattern": ({"pattern": "a+", "wanted": "letters a"}, ["aa"], ["ab", "", ["a"]]),
    "one_of": ({"values": ["a", "b"]}, ["a"], ["c", ""]),
    "whole": ({"minimum": 1, "maximum": 9}, [1, "9"], [0, 10, 1.5, "many", True, "", "1e0"]),
    "number": ({"minimum": 0}, [0, 2.5, "3"], [-1, "much", float("nan"), False, None]),
    "port": ({}, [1, "65535"], [0, 65536, "ssh"]),
    "path": ({}, ["/a b/c"], ["a", "/a/../b", "/a\n", "/$HOME", "", None]),
    "cidr": ({"prefix": [16, 20]}, ["10.77.0.0/16"], ["10.77.0.0/24", "10.77.1.0/16", "10.77.0.0", "999.0.0.0/16", 10]),
    "url": (
        {},
        ["https://host:8/a"],
        ["host", "ftp://host/a", "https://me:pw@host", "https:///a", "http://h:x/", "http://h/a b"],
    ),
    "host": ({}, ["ip-10-0-0-1", "a.example.com", "a_b"], ["a b", "-a", f"{'a' * 64}", "a..b", ""]),
    "cluster_name": ({}, ["demo", "a" * 60], ["my cluster", "1a", "a_b", "a" * 61, "*", ""]),
    "cluster_tag": ({}, ["demo", "a_b", "1"], ["*", "d?mo", "a b", "", "a" * 257]),
    "region": ({}, ["us-west-2", "us-gov-east-1"], ["us-west", "US-WEST-2", ""]),
    "instance_type": ({}, ["trn2u.48xlarge", "u-6tb1.metal"], ["trn1", "TRN1.2xlarge"]),
    "id": ({"prefix": "subnet"}, ["subnet-0123456789abcdef0"], ["subnet-1", "sg-0123456789abcdef0"]),
    "key_name": ({}, ["my key"], ["", " a", "é", "a" * 256]),
    "user": ({}, ["ubuntu", "_apt", "Alice.B@corp", "1000"], ["a b", "-x", "a:b", ""]),
    "fingerprint": ({}, ["AB CD" * 10], ["AB", "Z" * 40, 12]),
    "sha256": ({}, ["a" * 64], ["a" * 63, "sha256:" + "a" * 64]),
    "size": ({}, ["64M", "1.5 TiB", 1024], ["big", "0", "-1G", ""]),
    "duration": ({}, ["15d", "500ms"], ["15", "15 d", "0s", ""]),
    "time_limit": ({}, ["30", "1:00:00", "3-00:00:00", "INFINITE", 90], ["3 days", "0", "", None]),
    "requirement": (
        {},
        ["h5py", "a[b,c]>=1,<2", "a @ https://host/a.whl", "a; python_version > '3'"],
        ["--pre", "a b", ""],
    ),
    "version": ({}, ["2.31.1", "3.16"], ["latest", "3", "3.16.1rc1"]),
    "tags": ({}, [{"team": "a"}], [{"aws:x": "a"}, {"trainium:cluster": "a"}, {"a": "b" * 257}, {"": "a"}, ["a"]]),
    "reservation": (
        {},
        [
            {"id": "cr-0123456789abcdef0"},
            {"resource_group_arn": "arn:aws:resource-groups:us-west-2:1:group/a"},
            {"preference": "open"},
        ],
        [
            {},
            {"preference": "all"},
            {"id": "a"},
            {"id": "cr-01234567", "resource_group_arn": "arn:aws:resource-groups:a"},
            "cr-01234567",
        ],
    ),
    "prices": ({}, [{"trn1.32xlarge": 21.5}], [{"trn1": 1}, {"trn1.32xlarge": "much"}, {"trn1.32xlarge": -1}, 3]),
    "space": ({}, [{"/": 10}], [{"tmp": 1}, {"/": "much"}]),
    "keys": ({"known": ["a"]}, [{"a": 1}, {}], [{"b": 1}, "a"]),
    "settings": ({}, [{"Features": "trn1"}], [{"A B": 1}, {"A": "b\nC=d"}, ["A"]]),
    "condition": ({}, [True, "True"], [False, "", None]),
}


def test_every_kind_is_tried() -> None:
    assert set(VALUES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_and_what_does_not(kind: str) -> None:
    more, good, bad = VALUES[kind]
    rule = {"variable": "name", "kind": kind, **more}
    assert [value for value in good if refusal(rule, value)] == []
    assert [value for value in bad if not refusal(rule, value)] == []


def test_an_empty_value_only_where_it_may_be_so() -> None:
    rule = {"variable": "name", "kind": "url"}
    assert refusal(rule, "") == "name is ''; use an http or https URL without user and password."
    assert refusal({**rule, "empty": True}, "") == ""


def test_each_element_of_a_list() -> None:
    rule = {"variable": "names", "kind": "host", "each": True}
    assert refusal(rule, ["a", "b"]) == ""
    assert refusal(rule, ["a", "b c"]).startswith("names has 'b c'; use a host name")
    assert refusal(rule, [None]).startswith("names has 'None'")
    assert refusal(rule, "a") == "names is 'a'; use a list."


def test_no_password_and_no_page_of_text_in_a_sentence() -> None:
    rule = {"variable": "mirror", "kind": "url"}
    assert "'https://...@host/a'" in refusal(rule, "https://me:secret@host/a")
    assert len(refusal(rule, "x" * 5000)) < 400
    assert "\n" not in refusal(rule, "a\nb")


def test_a_sentence_of_its_own() -> None:
    rule = {"variable": "address", "kind": "host", "sentence": "{variable} of {host} is {value}; use {wanted}."}
    assert refusal(rule, "", "node-1").startswith("address of node-1 is nothing; use a host name")


def test_what_only_some_rules_allow() -> None:
    digest = {"variable": "digest", "kind": "sha256"}
    assert refusal({**digest, "prefixed": True}, "sha256:" + "0" * 64) == ""
    mirror = {"variable": "mirror", "kind": "url"}
    assert refusal(mirror, "file:///srv/mirror") != ""
    assert refusal({**mirror, "files": True}, "file:///srv/mirror") == ""
    assert refusal({**mirror, "files": True}, "file://host/mirror") != ""


@pytest.mark.parametrize("url", ["https://aws:abc/def@host/simple", "https://aws:a@bc@host/", "ftp://user:secret@host"])
def test_no_password_of_a_url_is_quoted(url: str) -> None:
    assert shown(url).startswith(url.partition("://")[0] + "://...@host")
