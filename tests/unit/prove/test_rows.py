"""What each row of docs/fidelity.md goes by: the sentence that stands in the report as its evidence."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import (
    evidence,
    first_line,
    sections,
    versions,
)
from ansible_collections.trainium.cluster.plugins.module_utils._prove.rows import Row, judged, outcome, rows

from tests.unit.prove.proof import ACCEPTED, BOOT, NODE, PAGE, READY, Item, seen, steps, verdict

SEEN, REFUTED, NOT_LOOKED = "seen", "refuted", "not looked at"
APIS, DRY_RUNS = "`sandbox/emulator` over moto", "`launch/run_instances.py`, `launch/checks.py`, `ec2/interfaces.py`"
TIMES, QUOTAS, PRICE = "`launch/lifecycle.py`", "`ec2/quotas.py`", "`market/prices.py`"
SPOT, BLOCKS, NAMES = "`market/spot.py`", "`market/blocks.py`", "`ec2/addresses.py`, podman's networks"
CONSOLE, ADDRESS = "`ec2/console.py`, the console of hosts", "`/sandbox-api/address` in `server/control.py`"
SESSIONS = "`services/sessions.py`, `server/streams.py`, `standins/controller`"
RESOLVER, HOST, INIT = "`sandbox/network/resolver.py`", "`sandbox/image.py`, `hosts.py`", "`sandbox-init`"
METADATA, HELPER, SOURCE = "—", "`aws-ubuntu-eni-helper`", "`neuron.list` with a keyring of its own"
MODULES, DEVICES, PACKAGES = "`modprobe`, `modinfo`, `dkms`", "`devices.py`", "`standins/neuron.py`"
TOOLS, WHEELS, INSTALLER = "`standins/tools`", "`standins/wheels.py`, `pip`", "`standins/efa`"


def took(**seconds: float) -> list[Item]:
    return [{**step, "seconds": seconds.get(step["name"], 10)} for step in steps()]


def spot(zone: str, price: float | None) -> Item:
    return {"market": "spot", "availability_zone": zone, "price_per_hour": price, "placement_score": 7}


def block(start: str) -> Item:
    return {"market": "capacity-block", "starts_at": start}


QUOTA = {"name": "All DL Spot", "used": 8, "vcpus": 64}
REGION = {"region": "us-west-2", "price_per_hour": 1.34, "quotas": [QUOTA, {**QUOTA, "name": "Running DL"}]}


@pytest.mark.parametrize(
    ("part", "changes", "expected", "words"),
    [
        (APIS, {}, SEEN, "as validate, network, compute, teardown use them"),
        (APIS, {"done": steps(network="x", teardown="x")}, SEEN, "as validate, compute use them"),
        (APIS, {"done": steps(validate="x", network="x", compute="x", teardown="x")}, NOT_LOOKED, "has succeeded"),
        (TIMES, {"done": took(compute=41.6, teardown=95.4)}, SEEN, "an instance ran 42 s after compute.yml began"),
        (TIMES, {"done": took(compute=41.6, teardown=95.4)}, SEEN, ", teardown.yml took 95 s"),
        (TIMES, {"done": steps(teardown="x")}, SEEN, "10 s after compute.yml began"),
        (TIMES, {"done": steps(compute="x")}, NOT_LOOKED, "no instance was launched"),
        (TIMES, {"done": []}, NOT_LOOKED, "no instance was launched"),
        (
            "`images.json`",
            {"launched": {"image": {"name": "a", "description": "b"}}},
            REFUTED,
            "'a' is described as 'b'",
        ),
        ("`images.json`", {"launched": {"image": {"name": "a"}}}, REFUTED, "'a'"),
        ("`images.json`", {"launched": {"image": None}}, NOT_LOOKED, "no instance was launched"),
        (NAMES, {}, SEEN, "the node of 10.77.0.4 calls itself ip-10-77-0-4"),
        (NAMES, {"boot": ""}, NOT_LOOKED, "no node was logged in to"),
        (NAMES, {"launched": {"instances": []}}, NOT_LOOKED, "no node was logged in to"),
        (CONSOLE, {}, SEEN, "the host keys stood in the console"),
        (CONSOLE, {"launched": {"console": {"known": [], "unknown": ["i-1"]}}}, REFUTED, "showed no host keys in time"),
        (CONSOLE, {"launched": {"console": None}}, NOT_LOOKED, "no instance was at its first boot"),
        (SESSIONS, {"connection": "ssm", "done": steps(nodes="x")}, NOT_LOOKED, "no node was reached"),
        (SESSIONS, {}, NOT_LOOKED, "trainium_connection was ssh"),
        (ADDRESS, {}, SEEN, "ssh was opened for the address that it told"),
        (ADDRESS, {"public_ip": "none"}, NOT_LOOKED, "the network did not need it"),
        (ADDRESS, {"cidrs": 1}, NOT_LOOKED, "the network did not need it"),
        (ADDRESS, {"done": steps(network="x")}, NOT_LOOKED, "no network"),
        (RESOLVER, {}, SEEN, "the node's own name in the VPC is found as 10.77.0.4"),
        (RESOLVER, {"boot": "== resolver\nx: 10.77.0.4 10.77.0.4 10.77.0.5\n"}, SEEN, "as 10.77.0.4, 10.77.0.5"),
        (RESOLVER, {"boot": "== resolver\nx: 10.77.0.44\n"}, REFUTED, "is found as 10.77.0.44"),
        (RESOLVER, {"boot": "== resolver\nx: version 1.10.77.0.4\n"}, REFUTED, "version"),
        (RESOLVER, {"boot": "== resolver\nunrecognized option '--no'\n"}, NOT_LOOKED, "nothing answered"),
        (RESOLVER, {"boot": ""}, NOT_LOOKED, "no node was logged in to"),
        (RESOLVER, {"launched": {"instances": []}}, REFUTED, "10.77.0.4"),
        (METADATA, {}, SEEN, "a session with HTTP 200, and no role asks it"),
        (METADATA, {"boot": ""}, NOT_LOOKED, "no node was logged in to"),
        (HOST, {"boot": "== apt_lists\n0\n== kernel\n6.8.0-aws\n"}, SEEN, "0 lists of apt from before the first boot"),
        (HOST, {"boot": "== apt_lists\n0\n== kernel\n6.8.0-aws\n"}, SEEN, "kernel 6.8.0-aws"),
        (HOST, {"boot": "== name\nx\n"}, NOT_LOOKED, "no node was logged in to"),
        (INIT, {}, SEEN, "cloud-init says 'status: done'"),
        (INIT, {"boot": "== cloud_init\nstatus: not run\n"}, NOT_LOOKED, "does not run: 'status: not run'"),
        (INIT, {"boot": "== cloud_init\nstatus: not started\n"}, NOT_LOOKED, "had not ended"),
        (INIT, {"boot": "== cloud_init\nstatus: disabled\n"}, NOT_LOOKED, "had not ended"),
        (INIT, {"boot": "== name\nx\n"}, NOT_LOOKED, "cloud-init did not answer"),
        (SOURCE, {}, SEEN, "signed-by=/etc/apt/keyrings/neuron.gpg"),
        (SOURCE, {"boot": "== neuron_source\ndeb https://x.amazonaws.com noble\n"}, REFUTED, "deb https://x.amazonaws"),
        (SOURCE, {"boot": ""}, NOT_LOOKED, "no node was logged in to"),
        (HELPER, {}, SEEN, "its service is enabled"),
        (HELPER, {"boot": "== eni_helper\ndisabled\n"}, REFUTED, "its service is disabled"),
        (HELPER, {"boot": "== name\nx\n"}, REFUTED, "the image does not have it"),
        (HELPER, {"boot": ""}, NOT_LOOKED, "no node was logged in to"),
        (
            MODULES,
            {"ready": READY + "== dkms\naws-neuron, 2.29.0.0\nzfs\n"},
            SEEN,
            "2.29.0.0; dkms: aws-neuron, 2.29.0.0",
        ),
        (MODULES, {"done": steps(nodes="x")}, NOT_LOOKED, "no driver was built"),
        (MODULES, {"ready": "== devices\n1\n"}, NOT_LOOKED, "no driver was built"),
        (DEVICES, {}, SEEN, "1 of /dev/neuron*, and 1 are in the table"),
        (DEVICES, {"ready": "== name\nx\n"}, REFUTED, "0 of /dev/neuron*, and 1 are in the table"),
        (DEVICES, {"ready": ""}, NOT_LOOKED, "no node was made ready"),
        (DEVICES, {"launched": {"instances": []}}, NOT_LOOKED, "no node was made ready"),
        (DEVICES, {"launched": {"instances": [{**NODE, "instance_type": "t3.micro"}]}}, NOT_LOOKED, "made ready"),
        (PACKAGES, {"ready": "== neuron_packages\na\t1.2.3.4\nb\t2\n"}, SEEN, "a\t1.2.3.4, b\t2"),
        (PACKAGES, {"done": steps(nodes="x")}, NOT_LOOKED, "nothing was installed from it"),
        (PACKAGES, {"ready": "== name\nx\n"}, NOT_LOOKED, "nothing was installed from it"),
        (TOOLS, {}, SEEN, "NeuronCores of each device: [2]"),
        (TOOLS, {"ready": "== name\nx\n"}, NOT_LOOKED, "no node was made ready"),
        (WHEELS, {}, SEEN, "compiled, and 10 steps trained, with torch-neuronx==2.9.0"),
        (WHEELS, {"ready": "== wheels\na==1.2.3.4\nb==2\n"}, SEEN, "with a==1.2.3.4, b==2"),
        (INSTALLER, {}, SEEN, "EFA installer version: 1.51.0"),
        (INSTALLER, {"done": steps(nodes="x")}, NOT_LOOKED, "it did not run"),
        (INSTALLER, {"ready": "== name\nx\n"}, NOT_LOOKED, "it did not run"),
    ],
)
def test_the_evidence_of_a_row(part: str, changes: Item, expected: str, words: str) -> None:
    found, text = verdict(part, seen(**changes))
    assert (found, words in text) == (expected, True), text


@pytest.mark.parametrize(
    ("part", "capacity", "expected", "words"),
    [
        (QUOTAS, {"regions": [REGION]}, SEEN, "All DL Spot: 8 of 64 vCPUs in use; Running DL: 8 of 64 vCPUs in use"),
        (QUOTAS, {"regions": [{**REGION, "quotas": []}]}, NOT_LOOKED, "Service Quotas did not tell"),
        (QUOTAS, None, NOT_LOOKED, "Service Quotas did not tell"),
        (PRICE, {"regions": [REGION]}, SEEN, "trn1.2xlarge in us-west-2: 1.34 USD an hour"),
        (PRICE, {"regions": [{**REGION, "price_per_hour": None}]}, NOT_LOOKED, "the price list did not tell"),
        (PRICE, None, NOT_LOOKED, "the price list did not tell"),
        (
            SPOT,
            {"options": [block("x"), spot("a", 0.5), spot("b", None), spot("c", 0.6)]},
            SEEN,
            "a: 0.5 USD, score 7; c:",
        ),
        (SPOT, {"options": [spot("b", None)]}, NOT_LOOKED, "EC2 told no spot price"),
        (SPOT, None, NOT_LOOKED, "EC2 told no spot price"),
        (BLOCKS, {"options": [spot("a", 1), block("2026"), block("2027")]}, SEEN, "only: 2, the first from 2026"),
        (BLOCKS, {"options": [spot("a", 1)]}, NOT_LOOKED, "EC2 offered no Capacity Block"),
    ],
)
def test_what_the_account_answers(part: str, capacity: Item | None, expected: str, words: str) -> None:
    found, text = verdict(part, seen(capacity=capacity, type="trn1.2xlarge"))
    assert (found, words in text) == (expected, True), text


def test_a_row_does_not_list_all_zones() -> None:
    _seen, text = verdict(SPOT, seen(capacity={"options": [spot(zone, 0.5) for zone in "abcdef"]}))
    assert [part[0] for part in text.split("; ")] == ["a", "b", "c", "d"]


def test_what_took_time_is_told_of_a_teardown_that_ended_well_alone() -> None:
    assert "teardown.yml" not in verdict(TIMES, seen(done=steps(teardown="x")))[1]
    assert "teardown.yml" not in verdict(TIMES, seen(done=steps()[:-1]))[1]


@pytest.mark.parametrize(
    ("runs", "control", "expected", "words"),
    [
        ([], {}, NOT_LOOKED, "no launch was tried"),
        (None, None, NOT_LOOKED, "no launch was tried"),
        ([{**ACCEPTED, "asked": False, "said": "no subnet"}], {}, NOT_LOOKED, "not of the request: no subnet"),
        ([{**ACCEPTED, "accepted": False, "code": ""}], {}, NOT_LOOKED, "EC2 was not asked"),
        (
            [ACCEPTED, {**ACCEPTED, "accepted": False, "code": "Bad", "said": "no"}],
            {},
            REFUTED,
            "trn1.32xlarge: Bad: no",
        ),
        (
            [ACCEPTED, {**ACCEPTED, "instance_type": "trn2.48xlarge", "interfaces": 16}],
            None,
            NOT_LOOKED,
            "by DryRun: trn1.32xlarge with 8 interfaces, trn2.48xlarge with 16 interfaces; whether it looks",
        ),
    ],
)
def test_dry_runs_refute_or_leave_open_what_a_request_asks_for(
    runs: list[Item] | None, control: Item | None, expected: str, words: str
) -> None:
    found, text = verdict(DRY_RUNS, seen(dry_runs=runs, control=control))
    assert (found, words in text) == (expected, True), text


@pytest.mark.parametrize(
    "code",
    [
        *("AuthFailure", "OptInRequired", "Blocked", "InsufficientInstanceCapacity", "InstanceLimitExceeded"),
        *("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "Unsupported", "RequestLimitExceeded"),
        *("InternalError", "ServiceUnavailable", "Unavailable"),
    ],
)
def test_what_the_account_or_the_moment_refuses_refutes_no_request(code: str) -> None:
    """Codes that EC2's reference explains by permissions, limits, capacity, zones or AWS's own state."""
    assert verdict(DRY_RUNS, seen(dry_runs=[{**ACCEPTED, "accepted": False, "code": code}]))[0] == NOT_LOOKED


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"asked": False, "accepted": False}, "not asked"),
        ({}, "accepted"),
        ({"accepted": False, "code": "Bad"}, "refused (Bad)"),
        ({"accepted": False, "code": ""}, "refused (without a code)"),
    ],
)
def test_the_outcome_of_a_dry_run(changes: Item, told: str) -> None:
    assert outcome({**ACCEPTED, **changes}) == told


def test_a_page_has_the_rows_of_its_tables_and_nothing_else() -> None:
    page = "# Title\n| lost |\n## One\n\n| part | stands for |\n|---|---|\n| a | b | c |\n text\n## Two\n| d | |\n"
    assert list(rows(page)) == [Row("One", "a", "b"), Row("Two", "d", "")]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("`services/fsx.py`", "no file system is made"),
        ("`standins/libfabric`", "the type has no EFA"),
        ("`access/regions.py`", "nothing in a proof shows it"),
    ],
)
def test_why_a_row_was_not_looked_at(part: str, reason: str) -> None:
    assert verdict(part, seen()) == (NOT_LOOKED, reason)


def test_rows_of_eks_are_not_looked_at_since_none_is_made() -> None:
    page = "## EKS\n| any | thing |\n"
    (row,) = judged(page, seen())
    assert row == {"part": "any", "stands_for": "thing", "verdict": NOT_LOOKED, "evidence": "no cluster of EKS is made"}


@pytest.mark.parametrize("part", [MODULES, PACKAGES, WHEELS, INSTALLER])
def test_a_version_of_four_numbers_is_no_address(part: str) -> None:
    ready = (
        "== neuron_module\n2.29.0.0\n== neuron_packages\naws\t2.29.0.0\n== wheels\na==2.29.0.0\n"
        "== efa_installer\n2.29.0.0\n"
    )
    assert "2.29.0.0" in verdict(part, seen(ready=ready))[1]


def test_sections_of_one_name_are_one_and_what_comes_before_is_none() -> None:
    assert sections("lost\n== a\n1\n\n2\n\n== b\n== a \n3\n") == {"a": "1\n\n2\n\n3", "b": ""}


def test_the_first_line_is_one_with_words_and_ends_at_a_word() -> None:
    assert first_line("\n  \n  a b \nc") == "a b"
    assert first_line("") == ""
    assert first_line("x" * 160) == "x" * 160
    assert first_line("a " * 100) == ("a " * 80).strip() + " ..."


def test_versions_are_those_of_the_node_that_was_made_ready() -> None:
    ready = (
        READY + "== system\nUbuntu 24.04\n== slurm\nslurm 24.11.5\nmore\n== wheels\n torch==2.9.0 \n\nlost\na|b==1\n"
    )
    job: Any = {"steps": 10, "versions": {"torch": 2.9}}
    known = seen(BOOT + "== kernel\n6.0\n== system\nold\n", ready)._replace(job=job)
    assert versions(known) == {
        "operating system": "Ubuntu 24.04",
        "kernel": "6.8.0-1021-aws",
        "image": "Deep Learning Base Neuron AMI",
        "EFA installer": "# EFA installer version: 1.51.0",
        "Slurm": "slurm 24.11.5",
        "Neuron driver": "2.29.0.0",
        "aws-neuronx-dkms": "2.29.0.0",
        "torch-neuronx": "2.9.0",
        "torch": "2.9.0",
        "torch in the training": "2.9",
    }


def test_versions_of_a_node_that_was_not_made_ready_are_those_of_its_first_boot() -> None:
    found = versions(seen(BOOT + "== kernel\n6.0\n== system\nold\n", "", launched={"image": None}))
    assert found == {"operating system": "old", "kernel": "6.0"}


def test_evidence_is_of_the_types_that_the_report_counts_with() -> None:
    found = evidence([{"name": "a", "ok": 1, "seconds": "2.5"}], {}, {}, "== a\nb", "== c\nd", {})
    assert found.steps[0] == ("a", True, 2.5, "")
    assert (found.boot, found.ready) == ({"a": "b"}, {"c": "d"})
    assert found.ok("a")
    assert not found.ok("a", "b")
    assert PAGE.count("\n## EKS") == 1
