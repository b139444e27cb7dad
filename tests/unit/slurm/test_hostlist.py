"""Slurm hostlists: examples from scontrol's own behaviour, and what holds for any set of names."""

from __future__ import annotations

import random

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import (
    MAX_HOSTS,
    HostlistError,
    compress,
    expand,
    sort_hosts,
)
from hypothesis import example, given
from hypothesis import strategies as st

PLAIN_NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,12}", fullmatch=True)
# Few prefixes and small, differently padded numbers, so that runs, gaps and both kinds of padding meet.
NUMBERED_NAMES = st.builds(
    lambda prefix, number, width, suffix: f"{prefix}{number:0{width}d}{suffix}",
    st.sampled_from(["n", "ip-10-77-16-", "rack1-node"]),
    st.integers(0, 120),
    st.integers(1, 4),
    st.sampled_from(["", "", "-ib", ".cluster1.local"]),
)
NAMES = st.lists(st.one_of(PLAIN_NAMES, NUMBERED_NAMES), max_size=60)


@pytest.mark.parametrize(
    ("hostlist", "names"),
    [
        ("", []),
        ("head", ["head"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        # Decimal, as Slurm has it, whatever else a number may look like.
        ("n[15-17]", ["n15", "n16", "n17"]),
        ("n[010-011]", ["n010", "n011"]),
        ("head,ip-10-77-16-[5-6]", ["head", "ip-10-77-16-5", "ip-10-77-16-6"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("n[1-2]-ib, m", ["n1-ib", "n2-ib", "m"]),
        ("n2,n[1-2]", ["n2", "n1", "n2"]),
    ],
)
def test_expand(hostlist: str, names: list[str]) -> None:
    assert expand(hostlist) == names


@pytest.mark.parametrize(
    ("names", "hostlist"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n2", "n1", "n2"], "n[1-2]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n15", "n16", "n17", "n20"], "n[15-17,20]"),
        (["n10", "n1a"], "n10,n1a"),
        (["n09", "n10", "n08"], "n[08-10]"),
        (["n1", "n01"], "n[01,1]"),
        (["n", "n1", "n2"], "n,n[1-2]"),
        (["n1.a.example", "n2.a.example", "n1.b.example"], "n[1-2].a.example,n1.b.example"),
        (["ip-10-77-16-6", "head", "ip-10-77-16-5"], "head,ip-10-77-16-[5-6]"),
    ],
)
def test_compress(names: list[str], hostlist: str) -> None:
    assert compress(names) == hostlist


@given(NAMES)
@example(["n9", "n10", "n010", "n09", "n8", "n08"])
@example(["a" + "9" * 25, "a" + "9" * 24])
def test_expand_undoes_compress(names: list[str]) -> None:
    """The sorted unique names come back, spelled as they were, padding included."""
    back = expand(compress(names))
    assert back == sort_hosts(names)
    assert sorted(back) == sorted(set(names))


@given(NAMES, st.randoms(use_true_random=False))
def test_compress_depends_on_the_set_only(names: list[str], shuffler: random.Random) -> None:
    shuffled = names * 2
    shuffler.shuffle(shuffled)
    assert compress(shuffled) == compress(names)


@given(st.integers(0, 5000), st.integers(0, 300), st.integers(1, 6))
def test_a_run_is_one_range_of_one_width(low: int, length: int, width: int) -> None:
    names = [f"n{number:0{width}d}" for number in range(low, low + length + 1)]
    assert compress(names) == (f"n[{names[0][1:]}-{names[-1][1:]}]" if length else names[0])
    assert expand(compress(names)) == names


@given(st.text(alphabet="n019[]-, .", max_size=25))
def test_any_text_expands_or_is_refused_in_one_sentence(text: str) -> None:
    try:
        names = expand(text)
    except HostlistError as error:
        assert "\n" not in str(error)
    else:
        assert all(names)
        assert expand(compress(names)) == sort_hosts(names)


@pytest.mark.parametrize(
    "hostlist",
    [
        "n[1-2",
        "n1]",
        "n[[1]]",
        "n[]",
        "n[a-b]",
        "n[3-1]",
        "n[1,,2]",
        "n[0f-11]",
        "n[0x1-2]",
        "a,,b",
        "a,",
        "a b",
        "n[1-2]]",
    ],
)
def test_what_is_no_hostlist(hostlist: str) -> None:
    with pytest.raises(HostlistError):
        expand(hostlist)


@pytest.mark.parametrize("hostlist", ["n[1-99999999999]", "a[1-1000]b[1-1000]", f"n[1-{MAX_HOSTS}],m"])
def test_too_many_hosts_are_refused_before_they_are_made(hostlist: str) -> None:
    with pytest.raises(HostlistError, match=str(MAX_HOSTS)):
        expand(hostlist)


def test_the_most_hosts() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS


@pytest.mark.parametrize("name", ["", "a,b", "a[1]", "a b"])
def test_names_that_cannot_be_compressed(name: str) -> None:
    with pytest.raises(HostlistError):
        compress(["n1", name])
