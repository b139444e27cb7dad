"""The verdicts on a node: what its tools print, sound and broken, and what holds for any output."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import (
    CHECKS,
    certain_offset,
    gate_record,
    judge,
    parse_limits,
    with_clock,
)
from hypothesis import given
from hypothesis import strategies as st

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max open files            {nofile}                {nofile}               files
Max locked memory         {memlock}                {memlock}              bytes
Max address space         unlimited            unlimited            bytes
"""
PEERS = [
    {"name": "a", "full_name": "a.example.com", "address": "192.0.2.10"},
    {"name": "b", "full_name": None, "address": "192.0.2.11"},
]


def reply(out: str, **other: Any) -> dict[str, Any]:
    return {"found": True, "ended": True, "code": 0, "out": out, "err": "", **other}


def devices(*cores: int) -> dict[str, Any]:
    return reply(json.dumps([{"neuron_device": i, "nc_count": n} for i, n in enumerate(cores)]))


def domains(count: int) -> dict[str, Any]:
    return reply("".join(f"provider: efa\n    domain: rdmap{i}s27-rdm\n    version: 122.0\n" for i in range(count)))


def observed(**changes: Any) -> dict[str, Any]:
    sound = {
        "neuron_ls": devices(*[2] * 16),
        "fi_info": domains(8),
        "packages": {"aws-neuronx-dkms": "2.29.0.0", "aws-neuronx-runtime-lib": "2.33.10.0-52a6f80d3"},
        "driver_version": "2.29.0.0",
        "clock_synchronised": True,
        "clock_offset": 0.0,
        "disk": {"/": 20 << 30},
        "mounts": ["/", "/neuron_shared"],
        "slurmd_limits": LIMITS.format(nofile="131072", memlock="unlimited"),
        "lookups": {"a": "192.0.2.10", "192.0.2.10": "a.example.com", "b": "192.0.2.11", "192.0.2.11": "B"},
    }
    return {**sound, **changes}


def wanted(**changes: Any) -> dict[str, Any]:
    return {
        "instance_type": "trn1.32xlarge",
        "devices": None,
        "efa_interfaces": None,
        "clock_offset": 2.0,
        "clock_synchronised": True,
        "disk": {"/": 10},
        "mounts": ["/neuron_shared"],
        "nofile": 65536,
        "memlock": "unlimited",
        "names": PEERS,
        **changes,
    }


def verdicts(seen: dict[str, Any], asked: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
    """Result and reason, or the note of a skipped check, by name."""
    made = {check.name: check for check in judge(seen, asked or wanted())}
    return {name: (check.result, check.reason or check.message) for name, check in made.items()}


def test_a_sound_node_passes_every_check() -> None:
    assert verdicts(observed()) == dict.fromkeys(CHECKS, ("ok", ""))


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("devices", {"neuron_ls": devices(*[2] * 15)}, "15 of 16 Neuron devices"),
        ("devices", {"neuron_ls": reply("no device", code=1)}, "0 of 16 Neuron devices"),
        ("devices", {"neuron_ls": reply("", found=False)}, "no neuron-ls to see 16 Neuron devices"),
        ("devices", {"neuron_ls": reply("", ended=False)}, "neuron-ls hangs"),
        ("cores", {"neuron_ls": devices(*[2] * 15, 1)}, "31 of 32 NeuronCores"),
        ("efa", {"fi_info": domains(7)}, "7 of 8 EFA interfaces"),
        ("efa", {"fi_info": reply("", found=False)}, "no fi_info to see 8 EFA interfaces"),
        ("efa", {"fi_info": reply("", ended=False)}, "fi_info hangs"),
        ("driver", {"packages": {"aws-neuronx-dkms": "2.29.0.0"}}, "aws-neuronx-runtime-lib is not installed"),
        ("driver", {"packages": {"aws-neuronx-runtime-lib": "2.33.10.0"}}, "aws-neuronx-dkms is not installed"),
        ("driver", {"driver_version": "2.28.0.0"}, "Neuron driver 2.28.0.0 runs, 2.29.0.0 is installed"),
        ("driver", {"driver_version": ""}, "Neuron driver 2.29.0.0 is not loaded"),
        ("clock", {"clock_synchronised": False}, "clock is not synchronised"),
        ("clock", {"clock_synchronised": None}, "nothing tells whether the clock is synchronised"),
        ("clock", {"clock_offset": -40.2}, "clock is 40 s behind the controller's"),
        ("clock", {"clock_offset": 7.0}, "clock is 7 s ahead of the controller's"),
        ("disk", {"disk": {"/": 3 << 30}}, "3.0 of 10 GiB free in /"),
        ("disk", {"disk": {"/": None}}, "/ is not there"),
        ("mounts", {"mounts": ["/"]}, "/neuron_shared is not mounted"),
        (
            "nofile",
            {"slurmd_limits": LIMITS.format(nofile="1024", memlock="unlimited")},
            "nofile limit of jobs is 1024, not 65536",
        ),
        (
            "memlock",
            {"slurmd_limits": LIMITS.format(nofile="131072", memlock="8388608")},
            "memlock limit of jobs is 8388608, not unlimited",
        ),
        ("names", {"lookups": {"a": "127.0.1.1"}}, "a is 127.0.1.1 here, not 192.0.2.10"),
        (
            "names",
            {"lookups": {"a": "192.0.2.10", "192.0.2.10": "c", "b": "192.0.2.11", "192.0.2.11": "b"}},
            "192.0.2.10 is c here, not a",
        ),
    ],
)
def test_one_fault_fails_one_check(name: str, changes: dict[str, Any], reason: str) -> None:
    found = verdicts(observed(**changes))
    assert found.pop(name) == ("failed", reason)
    assert "failed" not in {result for result, _reason in found.values()}


def test_a_failure_is_one_sentence_with_advice() -> None:
    checks = judge({"lookups": {}, "disk": {}, "packages": {"aws-neuronx-dkms": "1"}}, wanted())
    failed = [check for check in checks if check.result == "failed"]
    assert len(failed) > 5
    for check in failed:
        assert check.message.endswith(".")
        assert "; " in check.message
        assert check.reason


@pytest.mark.parametrize(
    ("changes", "asked", "name"),
    [
        ({}, {"instance_type": "t3.micro"}, "devices"),
        ({}, {"instance_type": ""}, "cores"),
        ({}, {"efa_interfaces": 0}, "efa"),
        ({}, {"instance_type": "trn1.2xlarge"}, "efa"),
        ({"packages": {}}, {}, "driver"),
        ({"slurmd_limits": ""}, {}, "nofile"),
        ({"slurmd_limits": ""}, {}, "memlock"),
        ({}, {"disk": {}}, "disk"),
        ({}, {"mounts": []}, "mounts"),
        ({}, {"names": []}, "names"),
    ],
)
def test_a_check_that_cannot_say_anything_is_skipped_with_a_note(
    changes: dict[str, Any], asked: dict[str, Any], name: str
) -> None:
    result, note = verdicts(observed(**changes), wanted(**asked))[name]
    assert result == "skipped"
    assert note


def test_numbers_of_the_inventory_win_over_the_types() -> None:
    found = verdicts(observed(fi_info=domains(1), neuron_ls=devices(2, 2)), wanted(efa_interfaces=1, devices=2))
    assert found["efa"] == found["devices"] == found["cores"] == ("ok", "")


@pytest.mark.parametrize(("cores", "total"), [(8, 128), (4, 64)])
def test_trainium2_shows_physical_or_logical_cores(cores: int, total: int) -> None:
    seen = observed(neuron_ls=devices(*[cores] * 16), fi_info=domains(16))
    check = {check.name: check for check in judge(seen, wanted(instance_type="trn2.48xlarge"))}["cores"]
    assert (check.result, check.found, check.wanted) == ("ok", total, total)


def test_checks_that_are_switched_off_are_not_made() -> None:
    assert {check.result for check in judge({}, wanted(), skip=list(CHECKS))} == {"skipped"}


def test_a_limit_may_be_a_number_for_memlock() -> None:
    seen = observed(slurmd_limits=LIMITS.format(nofile="65536", memlock="8388608"))
    found = verdicts(seen, wanted(memlock="8388608"))
    assert found["nofile"] == found["memlock"] == ("ok", "")
    assert parse_limits(seen["slurmd_limits"])["Max cpu time"] == ("unlimited", "unlimited")


@given(st.floats(0, 1e6), st.floats(0, 100), st.floats(-1e5, 1e5))
def test_only_what_is_certain_of_an_offset_counts(before: float, took: float, shift: float) -> None:
    """The node read its clock at any moment between the two looks."""
    after = before + took
    offset = certain_offset(before, before + took / 2 + shift, after)
    assert abs(offset) <= abs(shift) + 1e-6
    assert offset == 0 or (offset > 0) == (shift > 0)


def test_the_clock_is_judged_anew_and_the_rest_stays() -> None:
    checks = [check._asdict() for check in judge(observed(), wanted())]
    again = with_clock(checks, True, 60.0, wanted())
    record = gate_record("a", again, {"address": "192.0.2.10"})
    assert record["failures"] == ["clock is 60 s ahead of the controller's"]
    assert record["cores"] == 32
    skipped = with_clock([check._asdict() for check in judge(observed(), wanted(), ["clock"])], True, 60.0, wanted())
    assert gate_record("a", skipped, {})["failures"] == []


@given(st.text(), st.text(), st.text(), st.sampled_from([*TYPES, "", "x"]))
def test_any_output_gives_a_verdict(listing: str, fabric: str, limits: str, kind: str) -> None:
    seen = observed(neuron_ls=reply(listing), fi_info=reply(fabric), slurmd_limits=limits)
    made = judge(seen, wanted(instance_type=kind))
    assert [check.name for check in made] == list(CHECKS)
    json.dumps([check._asdict() for check in made])
