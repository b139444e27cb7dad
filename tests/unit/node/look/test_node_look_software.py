"""What the module node_look tells of software, with small programs in the place of the tools that it asks."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node import software
from ansible_collections.trainium.cluster.plugins.module_utils._node.tools import users_of
from ansible_collections.trainium.cluster.plugins.modules.internal import node_look

from tests.in_process import ended
from tests.unit.node.programs import program


def run(capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """The module's answer, of which nothing is a change."""
    result, code = ended(node_look.main, {"software": {"node": arguments}}, capsys)
    assert not code and not result["changed"]
    found: dict[str, Any] = result["found"]["node"]
    return found


def test_nothing_installed_is_no_error(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, packages=["no-such-package-anywhere"], files=["/no/such/file"], environment="/no/such/folder")
    assert found["packages"] == {}
    assert found["files"] == {"/no/such/file": ""}
    assert found["environment"] == {"python": "", "digest": "", "note": "", "owner": ""}
    assert found["kernel"]["release"] == platform.release()


def test_the_tools_are_asked_and_their_answers_counted(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "neuron-ls", json.dumps([{"neuron_device": 0, "nc_count": 8}, {"neuron_device": 1, "nc_count": 8}]))
    program(tools, "fi_info", "provider: efa\n    domain: rdmap0s6-rdm\nprovider: efa\n    domain: rdmap1s6-rdm")
    program(tools, "modinfo", "2.29.0.0")
    program(tools, "dpkg-query", "aws-neuronx-tools\thold\tinstalled\t2.31.15.0", code=1)
    program(tools, "python9", "Python 9.1.2")
    found = run(capsys, packages=["aws-neuronx-tools", "aws-neuronx-dkms"], python="python9")
    assert (found["neuron"]["devices"], found["neuron"]["cores"], found["neuron"]["built"]) == (2, 16, "2.29.0.0")
    assert (found["efa"]["interfaces"], found["efa"]["fi_info"]) == (2, str(tools / "fi_info"))
    assert found["packages"] == {"aws-neuronx-tools": {"version": "2.31.15.0", "held": True}}
    assert found["python"] == "9.1"


def test_a_release_without_the_older_option_is_asked_by_the_newer(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = json.dumps({"devices": [{"nc_count": 8}]})
    (tools / "neuron-ls").write_text(f"#!/bin/sh\n[ \"$*\" = '--output-format json' ] && echo '{listing}'\n")
    (tools / "neuron-ls").chmod(0o755)
    assert run(capsys)["neuron"]["cores"] == 8


def test_a_tool_that_fails_says_nothing(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tools, "neuron-ls", "no neuron device found", code=1)
    program(tools, "fi_info", "fi_getinfo: -61", code=61)
    found = run(capsys)
    assert (found["neuron"]["devices"], found["efa"]["interfaces"]) == (0, 0)


def test_entries_of_a_repository_in_apts_sources(
    tmp_path: Path, tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(software, "APT", str(tmp_path))
    (tmp_path / "sources.list.d").mkdir()
    dlami = tmp_path / "sources.list.d" / "neuron.list"
    dlami.write_text("deb [signed-by=/etc/apt/keyrings/neuron.gpg] https://neuron noble main\n")
    (tmp_path / "sources.list.d" / "neuron.list.save").write_text(dlami.read_text())
    (tmp_path / "sources.list").write_text("deb http://ubuntu noble main\n")
    found = run(capsys, apt_repositories=["https://neuron/"])
    assert found["apt_sources"] == {str(dlami): {"text": dlami.read_text(), "without": ""}}
    assert run(capsys)["apt_sources"] == {}


def test_processes_that_use_a_device_are_named(tmp_path: Path) -> None:
    prefix = str(tmp_path / "uverbs")
    assert users_of(prefix) == []
    with (tmp_path / "uverbs0").open("w"), (tmp_path / "other").open("w"):
        assert [user.split()[-1] for user in users_of(prefix)] == [f"({os.getpid()})"]
    assert users_of(prefix) == users_of(str(tmp_path / "missing" / "uverbs")) == []


@pytest.mark.parametrize(
    "unit, file, router",
    [
        # That the helper of DLAMIs runs says nothing of what it has made.
        ("enabled", False, ""),
        ("masked", False, ""),
        ("masked", True, "ParallelCluster"),
        ("enabled", True, "ParallelCluster"),
    ],
)
def test_who_routes_the_interfaces(
    unit: str,
    file: bool,
    router: str,
    tmp_path: Path,
    tools: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program(tools, "systemctl", unit, code=0 if unit == "enabled" else 1)
    monkeypatch.setattr(software, "ROUTERS", {"ParallelCluster": str(tmp_path / "cfnconfig")})
    if file:
        (tmp_path / "cfnconfig").touch()
    assert run(capsys)["efa"]["policy_routing"] == router


def test_files_and_space(tmp_path: Path, tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    below = str(tmp_path / "not" / "there")
    found = run(capsys, files=[str(file)], space=[str(tmp_path), below])
    assert found["files"] == {str(file): "372ea08cab33e71c02c651dbc83a474d32c676ea"}
    assert found["space"][below] == found["space"][str(tmp_path)] > 0


def test_an_environment_is_told_by_what_is_installed(
    tmp_path: Path, tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "venv"
    site = root / "lib" / "python3.12" / "site-packages"
    (site / "numpy-2.4.6.dist-info").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").touch()
    (root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    (root / ".trainium").write_text("wanted digest\n")
    before = run(capsys, environment=str(root))["environment"]
    assert (before["python"], before["note"]) == ("3.12", "wanted digest")
    (site / "torch-2.9.0.dist-info").mkdir()
    assert run(capsys, environment=str(root))["environment"]["digest"] != before["digest"]
    (root / "bin" / "python").unlink()
    assert run(capsys, environment=str(root))["environment"]["python"] == ""


def test_addresses_are_those_of_interfaces_that_others_reach(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words, lines in (
        (
            *("ip", "-4 -oneline address show scope global"),
            r"2: ens5  inet 10.0.0.4/20 scope global\n3: ens6  inet 10.0.0.5/20\n3: ens6  inet 10.0.0.6/32\nodd\n",
        ),
        # Otherwise it shows several endpoints of each interface.
        ("fi_info", "-p efa -t FI_EP_RDM", r"    domain: rdmap0s6-rdm\n"),
    ):
        (tools / name).write_text(f"#!/bin/sh\n[ \"$*\" = '{words}' ] && printf '{lines}'\n")
        (tools / name).chmod(0o755)
    found = run(capsys)["efa"]
    # An interface with two addresses is one.
    assert (found["addresses"], found["interfaces"]) == (2, 1)
    (tools / "ip").write_text("#!/bin/sh\nexit 1\n")
    assert run(capsys)["efa"]["addresses"] == 0
