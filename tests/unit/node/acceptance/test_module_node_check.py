"""The module node_check on this machine with programs that play Neuron's and EFA's tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import node_check

from tests.in_process import ended


def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, **arguments: Any) -> dict[str, Any]:
    arguments = {
        "name": "a",
        "address": "192.0.2.1",
        "instance_type": "trn1.32xlarge",
        "folders": [str(tmp_path)],
        "_ansible_remote_tmp": str(tmp_path),
        "skip": ["driver", "clock"],
        **arguments,
    }
    return ended(node_check.main, arguments, capsys)[0]


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def results(found: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["result"] for check in found["checks"]}


def test_tools_are_asked_where_they_are_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listing = json.dumps([{"neuron_device": index, "nc_count": 2} for index in range(15)])
    program(tmp_path / "neuron-ls", f"echo '{listing}'")
    # Eight interfaces, of which it shows further endpoints where it is not told which.
    program(
        tmp_path / "fi_info",
        'for i in 1 2 3 4 5 6 7 8; do echo "    domain: rdmap${i}s0-rdm"; done\n'
        '[ "$*" = "-p efa -t FI_EP_RDM" ] || echo "    domain: rdmap1s0-dgrm"',
    )
    found = run(capsys, tmp_path, disk={str(tmp_path): 0.001, "/nowhere": 1}, nofile="1")
    shown = results(found)
    assert (shown["devices"], shown["cores"], shown["efa"], shown["disk"]) == ("failed", "ok", "ok", "failed")
    assert found["gate"]["failures"] == ["15 of 16 Neuron devices", "/nowhere is not there"]
    assert {check["name"]: check["found"] for check in found["checks"]}["efa"] == 8
    assert (found["changed"], found["gate"]["cores"], found["gate"]["torchrun"]) == (False, 30, False)


def test_a_release_without_the_older_option_is_asked_by_the_newer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = json.dumps({"devices": [{"nc_count": 2} for _number in range(16)]})
    program(tmp_path / "neuron-ls", f"[ \"$*\" = '--output-format json' ] && echo '{listing}'")
    shown = results(run(capsys, tmp_path, skip=["efa", "driver", "clock"]))
    assert (shown["devices"], shown["cores"]) == ("ok", "ok")


def test_a_tool_that_hangs_is_a_failed_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "neuron-ls", "sleep 30; true")
    found = run(capsys, tmp_path, timeout=1, skip=["efa", "driver", "clock"])
    assert found["gate"]["failures"] == ["neuron-ls hangs"]


def test_a_folder_that_nothing_is_mounted_on_is_a_failed_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skip = ["devices", "cores", "efa", "driver", "clock", "nofile", "memlock"]
    found = run(capsys, tmp_path, mounts=["/proc", f"{tmp_path}/"], skip=skip)
    assert found["gate"]["failures"] == [f"{tmp_path} is not mounted"]


def test_numbers_have_no_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give no units" in run(capsys, tmp_path, nofile="64k")["msg"]
    assert "give no units" in run(capsys, tmp_path, disk={"/": "10G"})["msg"]


def test_in_check_mode_a_node_is_looked_at_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, tmp_path, skip=["devices", "cores", "efa", "driver", "clock"], _ansible_check_mode=True)
    assert results(found)["disk"] == "skipped"
    assert found["changed"] is False


def test_what_makes_an_instance_another_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = ["devices", "cores", "efa", "driver", "clock", "nofile", "memlock"]
    first = run(capsys, tmp_path, skip=quiet, instance_id="i-1")
    again = run(capsys, tmp_path, skip=quiet, instance_id="i-1", nofile="1", address="192.0.2.9")
    other = run(capsys, tmp_path, skip=quiet, instance_id="i-2")
    assert first["gate"]["identity"] == again["gate"]["identity"] != other["gate"]["identity"]
    assert (first["name"], first["instance_id"], first["instance_type"]) == ("a", "i-1", "trn1.32xlarge")
    assert (first["gate"]["name"], first["gate"]["address"]) == ("a", "192.0.2.1")
    assert first["clock"]["synchronised"] is None and first["clock"]["time"] > 1e9


@pytest.mark.parametrize("missing", ["name", "address"])
def test_a_node_has_a_name_and_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str], missing: str) -> None:
    given = {"name": "a", "address": "192.0.2.1", "_ansible_remote_tmp": str(tmp_path)}
    del given[missing]
    assert ended(node_check.main, given, capsys)[0]["msg"] == f"missing required arguments: {missing}"
    peer = {"name": "b", "address": "192.0.2.2"}
    del peer[missing]
    said = run(capsys, tmp_path, names=[peer])["msg"]
    assert said.startswith(f"missing required arguments: {missing} found in names")


def test_only_known_checks_are_switched_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "value of skip must be one or more of: devices, cores, efa" in run(capsys, tmp_path, skip=["ssh"])["msg"]


def test_what_was_not_asked_for_is_what_a_cluster_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {check["name"]: check for check in run(capsys, tmp_path, skip=["driver", "clock", "efa"])["checks"]}
    assert {name: found[name]["result"] for name in ("disk", "mounts", "names")} == dict.fromkeys(
        ("disk", "mounts", "names"), "skipped"
    )
    assert found["devices"]["message"].startswith("no neuron-ls to see 16 Neuron devices")
    few = {check["name"]: check for check in run(capsys, tmp_path, devices=1, efa_interfaces=3, skip=[])["checks"]}
    assert (few["devices"]["wanted"], few["efa"]["wanted"]) == (1, 3)
