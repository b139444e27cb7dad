"""Where a verdict on a node turns: the last value that is good and the first that is not, and what is shown of it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node import health
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import (
    FROM_HEAD,
    NAMES,
    Check,
    certain_offset,
    gate_record,
    judge,
    limit,
    parse_limits,
    parse_properties,
    with_clock,
)

from tests.unit.node.acceptance.test_health import LIMITS, devices, domains, observed, reply, wanted


def check(name: str, seen: dict[str, Any] | None = None, **asked: Any) -> Check:
    (found,) = (one for one in judge(observed(**(seen or {})), wanted(**asked)) if one.name == name)
    return found


@pytest.mark.parametrize(
    ("name", "seen", "asked", "result"),
    [
        ("devices", {"neuron_ls": devices(*[2] * 17)}, {}, "ok"),
        ("devices", {"neuron_ls": None}, {}, "failed"),
        ("devices", {}, {"devices": 0}, "skipped"),
        ("devices", {"neuron_ls": devices(2)}, {"devices": 1, "instance_type": ""}, "ok"),
        ("cores", {"neuron_ls": None}, {}, "skipped"),
        ("cores", {"neuron_ls": devices()}, {}, "skipped"),
        ("cores", {}, {"instance_type": "p5.48xlarge"}, "skipped"),
        ("cores", {"neuron_ls": devices(3, 3)}, {}, "failed"),
        ("efa", {"fi_info": domains(9)}, {}, "ok"),
        ("efa", {"fi_info": None}, {}, "failed"),
        ("efa", {"fi_info": domains(2)}, {"efa_interfaces": 2, "instance_type": ""}, "ok"),
        ("efa", {}, {"instance_type": ""}, "skipped"),
        ("driver", {"packages": None}, {}, "skipped"),
        ("driver", {"packages": {"aws-neuronx-dkms": "2.29.0.0-1", "aws-neuronx-runtime-lib": "1"}}, {}, "ok"),
        ("clock", {"clock_offset": 2.0}, {}, "ok"),
        ("clock", {"clock_offset": -2.0}, {}, "ok"),
        ("clock", {"clock_offset": 2.01}, {}, "failed"),
        ("clock", {"clock_offset": None}, {}, "ok"),
        ("clock", {"clock_synchronised": None}, {"clock_synchronised": False}, "ok"),
        ("clock", {"clock_synchronised": False}, {"clock_synchronised": False}, "ok"),
        ("clock", {"clock_offset": 9.0}, {"clock_synchronised": False}, "failed"),
        ("disk", {"disk": {"/": 10 << 30}}, {}, "ok"),
        ("disk", {"disk": {"/": (10 << 30) - 1}}, {}, "failed"),
        ("disk", {"disk": None}, {}, "failed"),
        ("mounts", {"mounts": ["/neuron_shared"]}, {"mounts": ["/neuron_shared/"]}, "ok"),
        ("mounts", {"mounts": ["/"]}, {"mounts": ["/"]}, "ok"),
        ("mounts", {"mounts": None}, {}, "failed"),
        ("mounts", {}, {"mounts": None}, "skipped"),
        ("nofile", {"slurmd_limits": LIMITS.format(nofile="65535", memlock="unlimited")}, {}, "failed"),
        ("nofile", {"slurmd_limits": LIMITS.format(nofile="unlimited", memlock="unlimited")}, {}, "ok"),
        ("nofile", {"slurmd_limits": None}, {}, "skipped"),
        ("memlock", {"slurmd_limits": LIMITS.format(nofile="1", memlock="infinity")}, {}, "ok"),
        ("memlock", {"slurmd_limits": LIMITS.format(nofile="1", memlock="18446744073709551615")}, {}, "ok"),
        ("names", {"lookups": None}, {}, "failed"),
    ],
)
def test_where_a_verdict_turns(name: str, seen: dict[str, Any], asked: dict[str, Any], result: str) -> None:
    assert check(name, seen, **asked).result == result


def test_what_is_shown_of_a_good_node() -> None:
    found = {one.name: (one.found, one.wanted, one.message) for one in judge(observed(), wanted())}
    assert found == {
        "devices": (16, 16, ""),
        "cores": (32, 32, ""),
        "efa": (8, 8, ""),
        "driver": ("2.29.0.0", "2.29.0.0", ""),
        "clock": ("synchronised", 2.0, ""),
        "disk": ({"/": 20.0}, {"/": 10}, ""),
        "mounts": (["/neuron_shared"], ["/neuron_shared"], ""),
        "nofile": ("131072", 65536, ""),
        "memlock": ("unlimited", "unlimited", ""),
        "names": (2, 2, ""),
    }
    assert check("clock", {"clock_synchronised": None}, clock_synchronised=False).found == "near the controller's"


@pytest.mark.parametrize(
    ("name", "seen", "asked", "found", "least", "words"),
    [
        ("devices", {"neuron_ls": devices(2)}, {}, 1, 16, "neuron-ls shows 1 of 16 Neuron devices; reload the driver"),
        ("devices", {"neuron_ls": reply("", found=False)}, {}, 0, 16, "; install aws-neuronx-tools on the node."),
        ("devices", {"neuron_ls": reply("", ended=False)}, {}, 0, 16, "neuron-ls hangs; reload the driver"),
        (
            *("cores", {"neuron_ls": devices(2, 1, 2, 0)}, {}, 5, 8),
            "Neuron device 1, 3 shows other than 2 NeuronCores (5 of 8 NeuronCores); stop and start the instance.",
        ),
        ("efa", {"fi_info": domains(1)}, {}, 1, 8, "fi_info shows 1 of 8 EFA interfaces; see whether the efa driver"),
        ("efa", {"fi_info": reply("", found=False)}, {}, 0, 8, "; install EFA on the node."),
        ("efa", {"fi_info": reply("", ended=False)}, {}, 0, 8, "fi_info hangs; reload the EFA driver"),
        ("driver", {"driver_version": ""}, {}, "not loaded", "2.29.0.0", "; run modprobe neuron."),
        ("driver", {"driver_version": "1"}, {}, "1", "2.29.0.0", "; reload the module neuron or reboot the node."),
        ("driver", {"packages": {"aws-neuronx-dkms": "1"}}, {}, "absent", "installed", "install the Neuron SDK anew."),
        ("clock", {"clock_offset": 7.4}, {}, 7, 2.0, "; start chrony on the node, and see to the controller's clock."),
        ("clock", {"clock_synchronised": None}, {}, "unknown", "synchronised", "; install chrony, or set acceptance_"),
        ("clock", {"clock_synchronised": False}, {}, "not synchronised", "synchronised", "; start chrony."),
        ("disk", {"disk": {"/": 3521873183}}, {}, {"/": 3.3}, {"/": 10}, "3.3 of 10 GiB free in /; make room or take"),
        (
            *("disk", {"disk": {"/": 1 << 30}}, {"disk": {"/": 2.5, "/x": 1}}, {"/": 1.0, "/x": None}),
            *({"/": 2.5, "/x": 1}, "1.0 of 2.5 GiB free in /, /x is not there; make room"),
        ),
        (
            *("mounts", {"mounts": ["/"]}, {"mounts": ["/a/", "/", "/b"]}, ["/"], ["/a/", "/", "/b"]),
            "/a, /b is not mounted; read why with systemctl status on the node, and run nodes.yml.",
        ),
        (
            *("nofile", {"slurmd_limits": "Max open files   10   20  files\n"}, {}, "10 (hard 20)", 65536),
            "nofile limit of jobs is 10 (hard 20), not 65536; raise it in the unit of slurmd.",
        ),
    ],
)
def test_what_is_said_of_a_fault(
    name: str, seen: dict[str, Any], asked: dict[str, Any], found: Any, least: Any, words: str
) -> None:
    made = check(name, seen, **asked)
    assert (made.result, made.found, made.wanted) == ("failed", found, least)
    assert words in made.message


def test_names_are_said_one_by_one_and_one_is_the_reason() -> None:
    lookups = {"a": "", "b": "192.0.2.11", "192.0.2.11": ""}
    made = check("names", {"lookups": lookups})
    wrong = ["a is unknown here, not 192.0.2.10", "192.0.2.11 is unknown here, not b"]
    assert (made.found, made.wanted, made.reason) == (wrong, 2, wrong[0])
    assert made.message == f"{', '.join(wrong)}; run the role cluster_hosts."


@pytest.mark.parametrize("back", ["a", "A", "a.example.com", "A.Example.Com"])
def test_an_address_has_one_of_its_node_s_names(back: str) -> None:
    lookups = {"a": "192.0.2.10", "192.0.2.10": back}
    assert check("names", {"lookups": lookups}, names=[wanted()["names"][0]]).result == "ok"


@pytest.mark.parametrize(
    ("name", "seen", "asked", "note"),
    [
        ("devices", {}, {"instance_type": ""}, "no Neuron devices are known of for the instance type"),
        ("devices", {}, {"instance_type": "m5.large"}, "no Neuron devices are known of for m5.large"),
        ("cores", {"neuron_ls": None}, {}, "neuron-ls shows no device"),
        ("nofile", {"slurmd_limits": ""}, {}, "slurmd does not run here"),
    ],
)
def test_why_a_check_was_skipped(name: str, seen: dict[str, Any], asked: dict[str, Any], note: str) -> None:
    assert check(name, seen, **asked).message == note


def test_one_check_that_is_switched_off_says_so_and_the_others_are_made() -> None:
    made = judge(observed(), wanted(), ["efa"])
    assert [(one.name, one.message) for one in made if one.result == "skipped"] == [
        ("efa", "switched off by acceptance_skip")
    ]
    assert (*(one.name for one in made), *FROM_HEAD) == NAMES
    assert FROM_HEAD == ("ssh", "slurm")


@pytest.mark.parametrize(
    ("node", "offset"), [(9.0, -1.0), (10.0, 0.0), (11.0, 0.0), (12.0, 0.0), (12.5, 0.5), (0.0, -10.0)]
)
def test_the_clock_was_read_between_two_looks(node: float, offset: float) -> None:
    assert certain_offset(10.0, node, 12.0) == offset


def test_the_head_is_told_of_failures_and_of_cores_that_are_all_there() -> None:
    poor = [one._asdict() for one in judge(observed(neuron_ls=devices(2, 1)), wanted(devices=2))]
    record = gate_record("a", poor, {"address": "192.0.2.1"})
    assert record == {"address": "192.0.2.1", "name": "a", "failures": ["3 of 4 NeuronCores"], "cores": 0}
    none = [one._asdict() for one in judge(observed(), wanted(instance_type="m5.large"))]
    assert gate_record("a", none, {}) == {"name": "a", "failures": [], "cores": 0}


def test_only_the_clock_is_judged_anew() -> None:
    before = [one._asdict() for one in judge(observed(), wanted())]
    after = with_clock(before, None, 0.0, wanted())
    assert [one["name"] for one in after] == [one["name"] for one in before]
    assert [one for one in after if one not in before] == [one for one in after if one["name"] == "clock"]
    assert [one["found"] for one in after if one["name"] == "clock"] == ["unknown"]


def test_what_systemd_and_the_kernel_print() -> None:
    assert parse_properties("  A=b=c\nnothing\nD=\n") == {"A": "b=c", "D": ""}
    assert parse_limits(LIMITS.format(nofile="1024", memlock="64")) == {
        "Max cpu time": ("unlimited", "unlimited"),
        "Max open files": ("1024", "1024"),
        "Max locked memory": ("64", "64"),
        "Max address space": ("unlimited", "unlimited"),
    }
    assert [limit(text) for text in ("unlimited", "infinity", 5, "6")] == [float("inf"), float("inf"), 5.0, 6.0]
    assert health.GIB == 2**30
