"""Read-only questions to a node: where its tools are looked for, how they are asked, and what files are shown as."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.process import get_bin_path
from ansible_collections.trainium.cluster.plugins.module_utils._node import tools as node

from tests.unit.node.programs import program


class Module:
    """What of a module is used, as Ansible does it."""

    def get_bin_path(self, name: str, opt_dirs: list[str] | None = None) -> str | None:
        try:
            return str(get_bin_path(name, opt_dirs=opt_dirs))
        except ValueError:
            return None

    def run_command(self, command: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        environment = {**os.environ, **environ_update}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


MODULE: Any = Module()


def test_tools_are_where_neuron_and_efa_install_them_though_no_path_leads_there(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert node.TOOL_FOLDERS == ["/opt/aws/neuron/bin", "/opt/amazon/efa/bin"]
    monkeypatch.setattr(node, "TOOL_FOLDERS", [str(tmp_path)])
    program(tmp_path, "fi_info", "theirs")
    assert node.find_tool(MODULE, "fi_info") == f"{tmp_path}/fi_info"
    # Before whatever else has the name.
    program(tools, "fi_info", "another")
    assert node.ask(MODULE, "fi_info") == "theirs\n"
    assert node.find_tool(MODULE, "no-such-tool") is None


def test_a_tool_answers_in_english_and_by_its_code(tools: Path) -> None:
    (tools / "tool").write_text('#!/bin/sh\necho "$LC_ALL $*"; exit ${1:-0}\n')
    (tools / "tool").chmod(0o755)
    assert node.ask(MODULE, "tool", "0", "b c") == "C 0 b c\n"
    assert node.ask(MODULE, "tool", "1") is None
    assert node.ask(MODULE, "tool", "1", codes=(0, 1)) == "C 1\n"
    assert node.ask(MODULE, "no-such-tool") is None


def test_packages_of_dpkg_are_known_though_one_is_not(tools: Path) -> None:
    program(tools, "rpm", "b\tunknown\tinstalled\t2-1")
    program(tools, "dpkg-query", "a\thold\tinstalled\t1", 1)
    assert node.packages(MODULE, ["a", "b"]) == {"a": {"version": "1", "held": True}}
    # Where it does not answer there is rpm, which counts those that it does not know.
    program(tools, "dpkg-query", "a\thold\tinstalled\t1", 2)
    program(tools, "rpm", "b\tunknown\tinstalled\t2-1", 5)
    assert node.packages(MODULE, ["a", "b"], ["b-0:2-1.*"]) == {"b": {"version": "2-1", "held": True}}
    assert node.packages(MODULE, []) == {}
    program(tools, "rpm", "", 100)
    assert node.packages(MODULE, ["a"]) == {}


def test_a_service_is_stale_by_the_newest_of_its_files(tools: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for file, age in ((old, 1000), (new, 10)):
        file.touch()
        os.utime(file, (time.time() - age,) * 2)
    shown = "Id=a.service\nActiveState=active\nUnitFileState=enabled\nExecMainStartTimestamp=@{}"
    for started, stale in ((500, True), (5, False)):
        program(tools, "systemctl", shown.format(int(time.time() - started)))
        found = node.services(MODULE, {"a": [str(old), str(new), str(tmp_path / "none")]})
        assert found == {"a": {"enabled": True, "active": True, "stale": stale}}
    assert node.services(MODULE, {"a": []}) == {"a": {"enabled": True, "active": True, "stale": False}}
    assert node.services(MODULE, {}) == {}
    program(tools, "systemctl", "no bus", 1)
    assert node.services(MODULE, {"a": []}) is None


def test_systemctl_is_asked_once_for_what_is_read(tools: Path) -> None:
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$*" >> {tools}/asked\n')
    (tools / "systemctl").chmod(0o755)
    node.services(MODULE, {"a": [], "b": []})
    properties = "--property=Id,UnitFileState,ActiveState,SubState,ExecMainStartTimestamp"
    assert (tools / "asked").read_text() == f"show --timestamp=unix {properties} a.service b.service\n"


@pytest.mark.parametrize(("text", "cores"), [('[{"nc_count": 2}]', [2]), ("[]", []), ("usage", [])])
def test_cores_of_devices(tools: Path, text: str, cores: list[int]) -> None:
    program(tools, "neuron-ls", text)
    assert node.ask_neuron_ls(MODULE) == cores


def test_a_newer_neuron_ls_is_asked_in_its_way(tools: Path) -> None:
    (tools / "neuron-ls").write_text('#!/bin/sh\n[ "$*" = "--output-format json" ] && echo \'[{"nc_count": 8}]\'\n')
    (tools / "neuron-ls").chmod(0o755)
    assert node.ask_neuron_ls(MODULE) == [8]
    (tools / "neuron-ls").unlink()
    assert node.ask_neuron_ls(MODULE) == []


def test_files_are_shown_with_their_owner_and_digest(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"text\n")
    file.chmod(0o640)
    owner, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(file.stat().st_gid).gr_name
    assert node.owner_of(file.stat()) == f"{owner}:{group} 0640"
    assert node.file_line(file) == f"{owner}:{group} 0640 {sha256(file.read_bytes()).hexdigest()} {file}"
    file.chmod(0o4755)
    assert node.owner_of(file.stat()).endswith(" 4755")
    # Of whom nobody knows the name there is the number.
    assert node.name_of(pwd.getpwuid, 4_000_000_001) == "4000000001"


def test_who_has_a_device_open_is_named(tmp_path: Path) -> None:
    prefix = f"{tmp_path}/neuron"
    (tmp_path / "neuron0").touch()
    (tmp_path / "other").touch()
    assert node.users_of(prefix) == []
    with subprocess.Popen(["sleep", "60"], stdin=(tmp_path / "neuron0").open()) as mine:
        try:
            assert node.users_of(prefix) == [f"sleep ({mine.pid})"]
            assert node.users_of(f"{tmp_path}/other") == []
            assert node.users_of(f"{tmp_path}/none") == []
        finally:
            mine.kill()
