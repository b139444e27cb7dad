"""What a proof says of each row of docs/fidelity.md, and how its report reads."""

from __future__ import annotations

import json

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import evidence, versions
from ansible_collections.trainium.cluster.plugins.module_utils._prove.report import make, markdown, sentence
from ansible_collections.trainium.cluster.plugins.module_utils._prove.rows import _REASONS, JUDGES, judged, rows
from ansible_collections.trainium.cluster.plugins.module_utils._prove.shown import public

from tests.unit.prove.proof import ACCEPTED, BOOT, PAGE, READY, RUN, Item, seen, steps, verdict


def test_every_judge_has_its_row_and_every_row_a_verdict() -> None:
    parts = [row.part for row in rows(PAGE)]
    assert len(parts) > 40
    assert set(JUDGES) <= set(parts)
    assert set(_REASONS) <= {*parts, *(row.section for row in rows(PAGE))}
    nothing = judged(PAGE, evidence([], {}, {}, "", "", {}))
    assert [row["part"] for row in nothing] == parts
    assert {row["verdict"] for row in nothing} == {"not looked at"}
    assert all(row["evidence"] for row in nothing)


def test_what_a_whole_proof_sees() -> None:
    found = [row for row in judged(PAGE, seen()) if row["verdict"] != "not looked at"]
    assert {row["verdict"] for row in found} == {"seen"}
    assert len(found) >= 18


@pytest.mark.parametrize(
    ("part", "changes", "expected", "words"),
    [
        ("`images.json`", {}, "seen", "is described as 'Neuron SDK 2.29.1'"),
        ("`ec2/addresses.py`, podman's networks", {"boot": "== name\nhost-1\n"}, "refuted", "calls itself host-1"),
        ("`neuron.list` with a keyring of its own", {"boot": "== name\nip-1\n"}, "refuted", "no source of Neuron's"),
        ("`sandbox/image.py`, `hosts.py`", {"boot": "== apt_lists\n7\n"}, "refuted", "7 lists of apt"),
        ("`sandbox-init`", {"boot": "== cloud_init\nstatus: running\n"}, "not looked at", "had not ended"),
        ("`sandbox-init`", {"boot": "== cloud_init\nstatus: error\n"}, "refuted", "status: error"),
        ("`sandbox/network/resolver.py`", {"boot": "== resolver\nip-1: 10.77.0.9\n"}, "refuted", "10.77.0.9"),
        ("`sandbox/network/resolver.py`", {"boot": "== resolver\nip-1: not found\n"}, "refuted", "not found"),
        ("`sandbox/network/resolver.py`", {"boot": "== name\nip-1\n"}, "not looked at", "nothing answered"),
        ("`devices.py`", {"ready": "== devices\n0\n"}, "refuted", "0 of /dev/neuron*, and 1 are in the table"),
        ("`standins/tools`", {"ready": "== neuron_ls\nno such device\n"}, "refuted", "not understood: no such device"),
        ("`standins/wheels.py`, `pip`", {"done": steps(training="x")}, "not looked at", "no training has ended well"),
        ("—", {"boot": "== metadata\n000\n"}, "not looked at", "did not answer"),
        (
            "`services/sessions.py`, `server/streams.py`, `standins/controller`",
            {"connection": "ssm"},
            "seen",
            "reached",
        ),
    ],
)
def test_a_row_goes_by_its_evidence(part: str, changes: Item, expected: str, words: str) -> None:
    found, text = verdict(part, seen(**changes))
    assert found == expected
    assert words in text


DRY_RUNS = "`launch/run_instances.py`, `launch/checks.py`, `ec2/interfaces.py`"


@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        # The words of a refusal tell nothing: "the type is offered in" may stand in any.
        (True, "InvalidParameterCombination", "refuted"),
        (True, "UnsupportedOperation", "refuted"),
        (True, "UnauthorizedOperation", "not looked at"),
        (True, "PendingVerification", "not looked at"),
        (False, "", "not looked at"),
    ],
)
def test_only_a_refusal_of_the_request_itself_refutes(asked: bool, code: str, expected: str) -> None:
    refused = {**ACCEPTED, "accepted": False, "asked": asked, "code": code, "said": "no capacity is offered, quota"}
    assert verdict(DRY_RUNS, seen(dry_runs=[refused]))[0] == expected


@pytest.mark.parametrize(
    ("run", "control", "expected", "words"),
    [
        ({}, {"asked": True, "code": "InvalidInterface"}, "seen", "refused two interfaces in one place"),
        # DryRun promises to look at permissions, and at nothing else.
        ({}, {"asked": True, "code": ""}, "not looked at", "accepted two interfaces in one place as well"),
        ({}, {"asked": True, "code": "UnauthorizedOperation"}, "not looked at", "was not tried"),
        ({}, {"asked": False, "code": ""}, "not looked at", "was not tried"),
        ({"asked": False}, {"asked": True, "code": "InvalidInterface"}, "not looked at", "EC2 was not asked"),
    ],
)
def test_what_dry_run_accepts_counts_if_it_looks_at_interfaces(
    run: Item, control: Item, expected: str, words: str
) -> None:
    found, text = verdict(DRY_RUNS, seen(dry_runs=[{**ACCEPTED, **run}], control=control))
    assert found == expected
    assert words in text


def test_the_report_names_versions_and_outcome() -> None:
    report = make(PAGE, seen(), RUN)
    assert report["proved"]
    assert sentence(report).startswith("All 9 steps succeeded and nothing is left; of the rows")
    assert report["versions"]["torch-neuronx"] == "2.9.0"
    assert report["versions"]["aws-neuronx-dkms"] == "2.29.0.0"
    page = markdown(report)
    assert "| trn1.32xlarge | efa | 8 | accepted |  |" in page
    assert "says nothing about AWS" not in page
    json.dumps(report)


@pytest.mark.parametrize(
    ("done", "left", "words"),
    [
        (steps(nodes="no answer"), {}, "Step nodes failed."),
        (steps()[:2], {}, "Steps did not run: account, compute"),
        (steps(teardown="x"), {"VPCs": ["vpc-1"]}, "Step teardown failed; of the cluster is left: VPCs."),
        (steps(), {"VPCs": ["vpc-1"]}, "of the cluster is left: VPCs."),
    ],
)
def test_a_proof_with_a_gap_is_none(done: list[Item], left: Item, words: str) -> None:
    report = make(PAGE, seen(done=done), {**RUN, "left": left})
    assert not report["proved"]
    assert words in sentence(report)


SECRETS = {
    "an ARN": ("arn:aws:iam::123456789012:user/ann", "ann"),
    "an account": ("bucket_123456789012_a", "123456789012"),
    "an address": ("203.0.113.9", "203.0.113.9"),
    "a name with an address": ("ec2-203-0-113-9.us-west-2.compute.amazonaws.com", "203-0-113-9"),
    "an address of IPv6": ("2001:db8::17", "2001:db8"),
    "a key": ("The AWS Access Key Id AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "a temporary key": ("ASIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"),
    "what decodes to them": ("Encoded authorization failure message: kx8j_J-q1Z", "kx8j"),
    "a password": ("https://ann:hunter2@pip.example.com/simple", "hunter2"),
    "a home": ("/home/ann/.ssh/id", "/home/ann"),
    "the place of a log": ("all of its words are in /srv/secret/prove/nodes.log.", "/srv/secret"),
}


@pytest.mark.parametrize("what", SECRETS)
def test_the_report_can_be_shown_to_everybody(what: str) -> None:
    told, secret = SECRETS[what]
    told = f"No: {told} and 10.0.0.5"
    node = {"name": told, "description": told}
    answers: Item = {
        "capacity": {"notes": [told], "regions": [], "options": []},
        "dry_runs": [{**ACCEPTED, "accepted": False, "code": "Invalid", "said": told}],
    }
    found = seen(BOOT.replace("deb ", f"deb {told} "), READY + f"== slurm\n{told}\n", steps(nodes=told), **answers)
    report = make(PAGE, found._replace(launched={**found.launched, "image": node}), RUN)
    for text in (json.dumps(report), markdown(report)):
        assert secret not in text
        assert "10.0.0.5" in text


def test_a_node_writes_no_markdown_into_the_report() -> None:
    told = "`x` | @somebody [a](http://b.aws) <img>"
    page = markdown(make(PAGE, seen(done=steps(nodes=told)), RUN))
    assert "| `'x' \\| @somebody [a](http://b.aws) <img>` |" in page


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:4566", "http://127.0.0.1:4566"),
        ("https://ec2.us-west-2.amazonaws.com", "https://ec2.us-west-2.amazonaws.com"),
        ("https://ann:hunter2@gateway.corp.example:8443/x", "https://(another host)"),
        ("https://amazonaws.com.corp.example", "https://(another host)"),
    ],
)
def test_hosts_of_ones_own_are_nobodys_business(address: str, shown: str) -> None:
    report = make(PAGE, seen(BOOT.replace("https://apt.repos.neuron.amazonaws.com", address), endpoint=address), RUN)
    assert report["endpoint"] == shown
    (source,) = [row for row in report["rows"] if row["part"] == "`neuron.list` with a keyring of its own"]
    assert f"keyrings/neuron.gpg] {shown} noble main" in source["evidence"]
    assert "hunter2" not in json.dumps(report)


def test_another_api_than_AWS_is_told() -> None:  # noqa: N802
    page = markdown(make(PAGE, seen(endpoint="http://127.0.0.1:4566"), RUN))
    assert "The API was `http://127.0.0.1:4566`, not AWS's own: this says nothing about AWS." in page


def test_versions_of_what_was_not_reached_are_left_out() -> None:
    assert versions(evidence([], {}, {}, "", "", {})) == {}


def test_what_a_tool_said_names_no_host_and_nobody() -> None:
    said = (
        "ann@corp.example: https://mirror.corp.example/simple answers 403, https://sts.us-west-2.amazonaws.com does not"
    )
    assert public(said) == (
        "(address): https://(another host) answers 403, https://sts.us-west-2.amazonaws.com does not"
    )
    assert public(public(said)) == public(said)
