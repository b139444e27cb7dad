"""The plan for /etc/hosts: every broken file that was seen on real nodes, and what holds for any file."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.entries import (
    check_length,
    parse_entries,
    read_line,
)
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.faults import find_faults
from ansible_collections.trainium.cluster.plugins.module_utils._node.etc_hosts.plan import (
    changed_lines,
    plan_etc_hosts,
    plan_strip_alias,
)
from hypothesis import given
from hypothesis import strategies as st

MARKER = "trainium.cluster"
WANTED = """\
192.0.2.10 ip-192-0-2-10.us-west-2.compute.internal ip-192-0-2-10
192.0.2.11 ip-192-0-2-11.us-west-2.compute.internal ip-192-0-2-11
"""
FIRST, SECOND = WANTED.splitlines()
OWN = "ip-192-0-2-10"
BLOCK = f"# BEGIN {MARKER}\n{WANTED}# END {MARKER}\n"
LOCALHOST = "127.0.0.1 localhost\n"


def plan(current: str, wanted: str = WANTED) -> str:
    return plan_etc_hosts(current, parse_entries(wanted), MARKER).content


def faults(current: str, wanted: str = WANTED, own: str = OWN) -> dict[str, int]:
    """How often each kind of fault occurs."""
    found = find_faults([read_line(line) for line in current.splitlines()], parse_entries(wanted), own)
    return {fault.kind: fault.count for fault in found}


def resolve(content: str, name: str) -> list[str]:
    """Every address that the file gives to a name, in order, as getent would read it."""
    found = []
    for line in content.splitlines():
        words = line.partition("#")[0].split()
        if name in [word.lower() for word in words[1:]] and words[0] != "junk":
            found.append(words[0])
    return found


@pytest.mark.parametrize(
    ("broken", "left"),
    [
        pytest.param("", "", id="empty file"),
        pytest.param(
            "127.0.1.1 ip-192-0-2-10.us-west-2.compute.internal ip-192-0-2-10\n", "", id="loopback for itself"
        ),
        pytest.param("127.0.1.1 ip-192-0-2-10.example.com ip-192-0-2-10\n", "", id="loopback under another domain"),
        pytest.param("::1 ip-192-0-2-10 ip6-localhost\n", "::1 ip6-localhost\n", id="loopback of IPv6"),
        pytest.param("127.0.0.1 localhost ip-192-0-2-10\n", "127.0.0.1 localhost\n", id="beside localhost"),
        pytest.param("198.51.100.9 ip-192-0-2-11\n", "", id="stale address"),
        pytest.param(
            "198.51.100.9\tIP-192-0-2-11\tstore # old\n", "198.51.100.9 store # old\n", id="stale, with others"
        ),
        pytest.param("192.0.2.77 ip-192-0-2-10.demo.pcluster ip-192-0-2-10\n", "", id="alias of ParallelCluster"),
        pytest.param(f"198.51.100.9 ip-192-0-2-10\n{WANTED}", "", id="stale line, then the right line"),
        pytest.param("# BEGIN trainium.cluster\n203.0.113.5 store\n", "203.0.113.5 store\n", id="block without an end"),
        pytest.param("203.0.113.5 store\n# END trainium.cluster\n", "203.0.113.5 store\n", id="block without a begin"),
        pytest.param(f"# BEGIN {MARKER}\n203.0.113.9 old-node\n# END {MARKER}\n", "", id="block of an older cluster"),
    ],
)
def test_broken_files_become_sound(broken: str, left: str) -> None:
    content = plan(broken)
    assert content.replace(BLOCK, "") == left
    assert content.count(BLOCK) == 1
    assert plan(content) == content


@pytest.mark.parametrize(
    "line",
    [
        "203.0.113.5 ip-192-0-2-10.example.com",
        "203.0.113.5 store  # ip-192-0-2-10",
        "# 127.0.1.1 ip-192-0-2-10",
        "not an address ip-192-0-2-10",
        "127.0.1.1 debian",
        "",
    ],
)
def test_lines_of_others_stay_as_they_are(line: str) -> None:
    result = plan_etc_hosts(f"{line}\n", parse_entries(WANTED), MARKER)
    assert result.content == f"{line}\n{BLOCK}"
    assert result.repaired == []


def test_sound_file_keeps_the_place_of_the_block() -> None:
    sound = f"{LOCALHOST}{BLOCK}203.0.113.5 store\n"
    assert plan(sound) == sound


def test_block_comes_before_an_alias_for_an_address_of_the_cluster() -> None:
    alias = "192.0.2.11 store\n"
    assert plan(LOCALHOST + alias) == LOCALHOST + BLOCK + alias
    assert plan(LOCALHOST + alias + BLOCK) == LOCALHOST + BLOCK + alias


def test_several_blocks_become_one_at_the_first_place() -> None:
    assert plan(f"{BLOCK}{LOCALHOST}{BLOCK}") == BLOCK + LOCALHOST


def test_repaired_names_the_lines_that_were_wrong() -> None:
    wrong = "127.0.1.1 ip-192-0-2-10"
    assert plan_etc_hosts(f"{LOCALHOST}{wrong}\n", parse_entries(WANTED), MARKER).repaired == [wrong]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("", "no nodes"),
        ("192.0.2.10", "has no name"),
        ("head 192.0.2.10", "head is not an IP address"),
        ("127.0.1.1 head", "only the node itself"),
        ("192.0.2.10 localhost", "cannot be the name of a node"),
        ("192.0.2.10 he;ad", "cannot be the name of a node"),
        ("192.0.2.10 a\n192.0.2.11 A", "name a is given to 192.0.2.10 and to 192.0.2.11"),
        ("192.0.2.10 a\n192.0.2.10 b", "given to two nodes"),
        (f"192.0.2.10 a.{'b' * 62}", "has 64 characters"),
        (f"192.0.2.10 a {'b' * 64}", "has 64 characters"),
        (f"192.0.2.10 a.{'b' * 64} a", "cannot be the name of a node"),
        (f"192.0.2.10 {'a.' * 127}b a", "cannot be the name of a node"),
    ],
)
def test_wrong_entries_are_refused_in_one_sentence(wanted: str, message: str) -> None:
    with pytest.raises(TrainiumError, match=message):
        parse_entries(wanted)


def test_a_name_of_63_characters_is_taken() -> None:
    assert parse_entries(f"192.0.2.10 a.{'b' * 61}")[0].names == (f"a.{'b' * 61}",)


NAMES = [
    *FIRST.split()[1:],
    *SECOND.split()[1:],
    "ip-192-0-2-10.x.pcluster",
    "queue-1.x.pcluster",
    "localhost",
    "store",
]
PEER = "ip-192-0-2-11"
LONG = f"{OWN}.{'x' * 30}.{'y' * 34}"
LINES = st.one_of(
    st.builds(
        lambda address, names, comment: f"{address} {' '.join(names)}{comment}",
        st.sampled_from(["127.0.0.1", "127.0.1.1", "::1", "192.0.2.10", "192.0.2.11", "198.51.100.9"]),
        st.lists(st.sampled_from(NAMES), max_size=4),
        st.sampled_from(["", " # note"]),
    ),
    st.sampled_from(["", "# comment", "junk ip-192-0-2-10", f"# BEGIN {MARKER}", f"# END {MARKER}"]),
)


@given(st.lists(LINES, max_size=12))
def test_any_file_gives_every_name_its_one_address_and_is_then_left_alone(lines: list[str]) -> None:
    content = plan("\n".join(lines))
    for entry in parse_entries(WANTED):
        for name in entry.names:
            assert set(resolve(content, name)) == {entry.address}
        first = next(line for line in content.splitlines() if line.split()[:1] == [entry.address])
        assert first.split()[1] in entry.names
    assert plan(content) == content
    assert faults(content) == {}


@given(st.lists(LINES, max_size=12))
def test_only_a_sound_file_without_a_block_may_stay_without_one(lines: list[str]) -> None:
    current = "\n".join(lines)
    content = plan(current)
    assert BLOCK in content or (content == current and faults(current) == {})


@given(st.lists(LINES, max_size=12))
def test_stripped_aliases_are_all_that_goes_and_they_go_once(lines: list[str]) -> None:
    current = "".join(f"{line}\n" for line in lines)
    stripped = plan_strip_alias(current)
    assert plan_strip_alias(stripped.content).content == stripped.content
    for name in NAMES:
        assert resolve(stripped.content, name) == ([] if name.endswith(".pcluster") else resolve(current, name))
    assert (stripped.content == current) == (stripped.faults == [])


def test_cost_grows_with_the_number_of_nodes_and_not_with_its_square() -> None:
    """20,000 nodes against 20,000 stale lines: 400 million comparisons would never end within the test run."""
    base = int(ipaddress.ip_address("10.0.0.1"))
    wanted = "".join(f"{ipaddress.ip_address(base + n)} node-{n}.example.com node-{n}\n" for n in range(20_000))
    stale = "".join(f"127.0.1.1 node-{n}\n" for n in range(20_000))
    assert plan(stale, wanted).count("\n") == 20_002


@pytest.mark.parametrize(
    ("current", "found"),
    [
        pytest.param(WANTED, {}, id="sound, of somebody else's making"),
        pytest.param(f"{LOCALHOST}{BLOCK}192.0.2.10 store\n", {}, id="sound"),
        pytest.param(f"{FIRST}\n192.0.2.11 {PEER}\n", {"full_name_unknown": 1}, id="fqdn known on its own node only"),
        pytest.param(f"127.0.1.1 {OWN}\n{WANTED}", {"loopback": 1}, id="own name on loopback"),
        pytest.param(f"127.0.1.1 {OWN}.example.com\n{WANTED}", {"loopback": 1}, id="loopback under another domain"),
        pytest.param(f"198.51.100.9 {' '.join(SECOND.split()[1:])}\n{FIRST}\n", {"stale_address": 1}, id="stale"),
        pytest.param(f"{SECOND}\n", {"no_own_entry": 1}, id="no entry for itself"),
        pytest.param(f"{FIRST}\n", {"no_entry": 1}, id="no entry for another"),
        pytest.param(f"198.51.100.9 {PEER}\n{WANTED}", {"stale_line": 1}, id="stale line, then the right line"),
        pytest.param(f"{WANTED}198.51.100.9 {PEER}\n", {"stale_line": 1}, id="right line, then the stale line"),
        pytest.param(f"198.51.100.9 {PEER}.demo.pcluster\n{WANTED}", {"pcluster_alias": 1}, id="pcluster alias"),
        pytest.param(f"192.0.2.10 {LONG} {OWN}\n{WANTED}", {"long_name": 1}, id="long name"),
        pytest.param(f"192.0.2.10 store\n{WANTED}", {"other_name_first": 1}, id="another name first"),
        pytest.param("", {"no_own_entry": 1, "no_entry": 1}, id="nothing"),
    ],
)
def test_every_fault_is_told_by_its_kind(current: str, found: dict[str, int]) -> None:
    assert faults(current) == found
    assert plan_etc_hosts(current, parse_entries(WANTED), MARKER, OWN).faults == find_faults(
        [read_line(line) for line in current.splitlines()], parse_entries(WANTED), OWN
    )


def test_sound_entries_of_somebody_else_stay_until_a_node_comes_that_they_lack() -> None:
    assert plan(LOCALHOST + WANTED) == LOCALHOST + WANTED
    more = f"{WANTED}192.0.2.12 ip-192-0-2-12\n"
    assert plan(LOCALHOST + WANTED, more) == LOCALHOST + BLOCK.replace(WANTED, more)


def test_a_name_that_is_too_long_comes_behind_the_short_one() -> None:
    """The first line for an address is what getfqdn answers with, and with it torchrun's MASTER_ADDR."""
    wanted = f"192.0.2.10 {LONG} {OWN}\n"
    content = plan(f"{LOCALHOST}{wanted}", wanted)
    assert content == f"{LOCALHOST}# BEGIN {MARKER}\n192.0.2.10 {OWN}\n192.0.2.10 {LONG}\n# END {MARKER}\n"
    assert faults(content, wanted) == {}
    assert plan(content, wanted) == content


def test_aliases_of_parallelcluster_go_and_their_lines_with_them() -> None:
    current = f"{LOCALHOST}192.0.2.77 queue-1.x.pcluster queue-1 # node\n192.0.2.78 queue-2.x.pcluster\n"
    stripped = plan_strip_alias(current)
    assert stripped.content == f"{LOCALHOST}192.0.2.77 queue-1 # node\n"
    assert stripped.repaired == current.splitlines()[1:]
    assert stripped.faults[0].count == 2
    assert plan_strip_alias(LOCALHOST.strip()).content == LOCALHOST.strip()


def test_a_fault_of_many_lines_is_told_by_five_of_them() -> None:
    lines = "".join(f"198.51.100.{n} ip-192-0-2-11\n" for n in range(9))
    fault = plan_etc_hosts(FIRST + "\n" + lines, parse_entries(WANTED), MARKER, OWN).faults[0]
    assert (fault.kind, fault.count, len(fault.examples)) == ("stale_address", 9, 5)
    assert fault.message.endswith("; 198.51.100.4 ip-192-0-2-11 and 4 more")


def test_changed_lines_are_those_that_differ_and_not_more_than_can_be_read() -> None:
    assert changed_lines("a\nb\nb\n", "b\nc\n") == (["a", "b"], ["c"])
    many = "".join(f"{n}\n" for n in range(25))
    assert changed_lines("", many)[1][-2:] == ["19", "... and 5 more"]


def test_a_host_name_of_64_characters_is_refused() -> None:
    check_length("a" * 63)
    with pytest.raises(TrainiumError, match=r"^The host name a+ has 64 characters, .* shorter one\.$"):
        check_length("a" * 64)
