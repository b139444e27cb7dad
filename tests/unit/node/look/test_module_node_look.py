"""The module node_look: its answers are those of etc_hosts, and of itself where it is asked for one thing alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import etc_hosts, node_look

from tests.in_process import ended

ENTRIES = "192.0.2.10 one.example.com one\n192.0.2.11 two.example.com two\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that are searched before all others, each of which notes that it was run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, output in (("fi_info", "    domain: rdmap0s6-rdm"), ("python9", "Python 9.1.2"), ("modinfo", "2.29.0.0")):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/run\necho '{output}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def run(module: Any, capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = ended(module.main, arguments, capsys)[0]
    result.pop("invocation", None)
    return result


def test_the_answers_to_several_questions_are_those_to_each_alone(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = {"entries": ENTRIES, "node": "one", "path": str(tmp_path / "hosts")}
    (tmp_path / "hosts").write_text("127.0.1.1 one\n")
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").touch()
    first = {"files": [str(tmp_path / "hosts")], "space": [str(tmp_path)], "python": "python9"}
    second = {"environment": str(tmp_path / "environment")}
    services = {"files": [str(tmp_path / "hosts"), "/no/such"], "programs": ["/no/such"], "slurm": ["configuration"]}
    found = run(node_look, capsys, hosts={"h": hosts}, software={"a": first, "b": second}, services={"s": services})[
        "found"
    ]
    alone = {
        "h": run(etc_hosts, capsys, **hosts, _ansible_check_mode=True),
        "a": run(node_look, capsys, software={"a": first}),
        "b": run(node_look, capsys, software={"b": second}),
        "s": run(node_look, capsys, services={"s": services}),
    }
    assert (tmp_path / "hosts").read_text() == "127.0.1.1 one\n"
    assert found["h"] == alone["h"]
    assert found["h"]["changed"] and found["h"]["faults"]
    for name in ("a", "b", "s"):
        assert alone[name]["changed"] is False
        alone[name] = alone[name]["found"][name]
        # What is free may change meanwhile.
        spaces = [one.pop("space", {}).keys() for one in (found[name], alone[name])]
        assert spaces[0] == spaces[1]
        assert found[name] == alone[name]


def test_what_several_want_is_asked_once(tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(node_look, capsys, software={"a": {"python": "python9"}, "b": {}})["found"]
    assert [found[name]["efa"]["interfaces"] for name in ("a", "b")] == [1, 1]
    assert (tmp_path / "run").read_text().split().count("fi_info") == 1


def test_an_option_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(node_look, capsys, software={"a": {"pakages": []}})
    assert said["failed"] and "software has for a what cannot be asked for" in said["msg"]
