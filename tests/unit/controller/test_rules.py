"""What the tables of roles let pass and what they refuse, and names of variables that nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible_collections.trainium.cluster.plugins.action.internal.validate import ActionModule, _plainly, _templated
from ansible_collections.trainium.cluster.plugins.plugin_utils._refusals import refusal

UBUNTU = {"distribution": "Ubuntu", "distribution_version": "24.04"}
SYSTEMS: dict[str, list[Any]] = {"Ubuntu": ["22.04", 24.04], "Amazon": ["2023"]}
SHA = 64 * "a"


@pytest.mark.parametrize(
    ("kind", "value", "more"),
    [
        ("lustre_capacity", 1200, {}),
        ("lustre_capacity", "2400", {}),
        ("lustre_capacity", 7200, {}),
        ("lustre_throughput", "125", {"deployment_type": "PERSISTENT_2"}),
        ("lustre_throughput", 0, {"deployment_type": "SCRATCH_2"}),
        ("scripts", {"10-a.b_c": "#!/bin/sh\n"}, {}),
        ("scripts", {}, {}),
        ("system", UBUNTU, {"systems": SYSTEMS}),
        ("system", {"distribution": "Amazon", "version": "2023.6"}, {"systems": SYSTEMS}),
        # Of a node that nobody has seen nothing is known.
        ("system", {}, {"systems": SYSTEMS}),
        ("system", "x", {"systems": SYSTEMS}),
        ("system", {"distribution": "Ubuntu"}, {"systems": SYSTEMS}),
        ("system", {**UBUNTU, "distribution_version": "26.04"}, {"systems": SYSTEMS, "newer": True}),
        ("dataset", "s3://bucket/a.tar", {}),
        ("dataset_name", "wiki-1", {}),
        ("checksums", {"a/b.tar": f"sha256:{SHA}", "c": SHA}, {}),
        ("file", __file__, {}),
        ("programs", "x", {"programs": ["sh"]}),
        ("programs", "x", {}),
        # Another type is refused by the check of types.
        ("scripts", "x", {}),
    ],
)
def test_what_fits_is_let_pass(kind: str, value: Any, more: dict[str, Any]) -> None:
    assert refusal({"variable": "v", "kind": kind, **more}, value) == ""


@pytest.mark.parametrize(
    ("kind", "value", "more", "words"),
    [
        ("lustre_capacity", 2401, {}, "v is no size of FSx for Lustre; give 1200 or a multiple of 2400, in GiB."),
        ("lustre_capacity", "x", {}, "v is no size of FSx for Lustre"),
        ("lustre_throughput", 250, {"deployment_type": "SCRATCH_2"}, "v is '250', and SCRATCH_2 has one throughput"),
        ("lustre_throughput", 7, {"deployment_type": "PERSISTENT_2"}, "with PERSISTENT_2 give one of 125, 250, "),
        ("scripts", {"b": "x", "a": 1, "c": "#!/bin/sh"}, {}, "but a, b is not like that; correct it."),
        ("system", {**UBUNTU, "distribution_version": "20.04"}, {"systems": SYSTEMS}, "Ubuntu 20.04"),
        ("system", {**UBUNTU, "distribution_version": "24.041"}, {"systems": SYSTEMS}, "Ubuntu 24.041"),
        ("system", {**UBUNTU, "distribution_version": "26.04"}, {"systems": SYSTEMS}, "Ubuntu 26.04"),
        ("system", {**UBUNTU, "distribution_version": "20.04"}, {"systems": SYSTEMS, "newer": True}, "Ubuntu 20.04"),
        ("system", {"distribution": "Debian"}, {"systems": SYSTEMS}, "Debian"),
        ("checksums", [], {}, "v is '[]'; use paths with their SHA-256."),
        ("checksums", {"a": "md5:1"}, {}, "v has 'md5:1' for a; give sha256: and 64 hexadecimal digits."),
        ("checksums", {"a": ""}, {}, "v has no checksum for a; give its SHA-256."),
        ("file", "~/no/such", {}, "v is '~/no/such', which is no file that can be read here; name another."),
        ("file", "/", {}, "which is no file that can be read here"),
        ("programs", "x", {"programs": ["no-a", "sh", "no-b"]}, "v needs no-a and no-b on this machine, which is not"),
    ],
)
def test_what_does_not_fit_is_refused(kind: str, value: Any, more: dict[str, Any], words: str) -> None:
    sentence = {"sentence": "{value} is none."} if kind == "system" else {}
    said = refusal({"variable": "v", "kind": kind, **sentence, **more}, value)
    assert words in said


@pytest.mark.parametrize(
    ("there", "least", "missing"),
    [("1.2.3", "1.2.3", False), ("1.10", "1.9", False), ("1.2", "1.2.1", True), ("2", "1.9", False), ("x", "1", True)],
)
def test_a_program_may_be_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, least: str, missing: bool
) -> None:
    program = tmp_path / "tool"
    program.write_text(f"#!/bin/sh\necho tool {there}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    said = refusal({"variable": "v", "kind": "programs", "programs": ["tool"], "least": {"tool": least}}, "x")
    assert bool(said) is missing
    assert (f"v needs tool {least} or newer on this machine" in said) is missing


@pytest.fixture
def role(tmp_path: Path) -> Path:
    for name in ("efa", "efa_nodes"):
        (tmp_path / name).mkdir()
    return tmp_path / "efa"


@pytest.mark.parametrize(
    ("names", "beside", "reserved", "said"),
    [
        (["efa_installer", "other_installer", "efa"], [], True, []),
        (["efa_instaler"], [], False, ["perhaps efa_installer is meant"]),
        # A result that a play registers.
        (["efa_result"], [], False, []),
        (["efa_result"], [], True, ["name one of your own without efa_ at its beginning"]),
        (["efa_result"], ["efa_result"], True, []),
        # Of another role, whose name is longer.
        (["efa_nodes_instaler"], [], True, []),
        (["efa_b", "efa_a"], [], True, ["efa_a is no variable", "efa_b is no variable"]),
    ],
)
def test_a_variable_that_nobody_knows(
    role: Path, names: list[str], beside: list[str], reserved: bool, said: list[str]
) -> None:
    found = ActionModule._unknown(role, names, {"efa_installer", "efa_version"}, beside, reserved)
    assert len(found) == len(said)
    for sentence, words in zip(found, said):
        assert words in sentence
        assert " is no variable of this collection; " in sentence
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        (
            "argument 'a' is of type <class 'ansible.x.AnsibleUnicode'> and we were unable to convert to int: bad\nx",
            "a is of type AnsibleUnicode and has to be of type int",
        ),
        ("Elements value for option 'b' is of type <class 'dict'>", "an element of b is of type dict"),
        ("a\x1b[2J", "a?[2J"),
    ],
)
def test_the_words_of_the_validator_are_made_plain(message: str, plain: str) -> None:
    assert _plainly(message) == plain


def test_a_rule_that_falls_over_a_value_keeps_its_variable() -> None:
    class Templar:
        def template(self, rule: dict[str, Any]) -> dict[str, Any]:
            if rule.get("kind") == "bad":
                raise AnsibleError("it\n  fell")
            return {**rule, "done": True}

    assert _templated(Templar(), [{"kind": "good"}, {"kind": "bad", "variable": "v"}]) == [
        {"kind": "good", "done": True},
        {"variable": "v", "broken": "it fell"},
    ]
