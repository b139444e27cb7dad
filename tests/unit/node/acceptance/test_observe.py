"""What a node is asked for the acceptance checks, with programs in the place of its own."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node import observe as node
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import CHECKS

from tests.unit.node.programs import program


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What files of the kernel hold, where a test has laid any; the rest are empty."""
    files: dict[str, str] = {}
    monkeypatch.setattr(node, "read_text", lambda path: files.get(str(path), ""))
    return files


def test_packages_are_those_of_dpkg_or_where_there_is_none_of_rpm(tools: Path) -> None:
    lines = "aws-neuronx-dkms\tinstall\tinstalled\t2.29.0.0\nlibfabric-aws\tinstall\tconfig-files\t2.1.0"
    program(tools, "dpkg-query", lines, 1)
    program(tools, "rpm", "aws-neuronx-tools\tunknown\tinstalled\t2.1-1")
    assert node.packages(5) == {"aws-neuronx-dkms": "2.29.0.0"}


def test_rpm_is_asked_where_there_is_no_dpkg(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = r"aws-neuronx-tools\tunknown\tinstalled\t2.1-1\n"
    script(tools, "rpm", f'printf "{line}"; echo "$*" > "${{0%/*}}/asked"')
    monkeypatch.setenv("PATH", str(tools))
    if node.commands.find("dpkg-query"):
        pytest.skip("this machine has dpkg where root's programs are")
    assert list(node.packages(5)) == ["aws-neuronx-tools"]
    asked = (tools / "asked").read_text()
    assert asked.startswith("--query --queryformat=%{NAME}") and asked.split()[-6:] == list(node.PACKAGES)


@pytest.mark.parametrize(
    ("loaded", "file", "code", "version"),
    [
        ("2.29.0.0\n", "2.28.0.0", 0, "2.29.0.0"),
        ("", "2.28.0.0", 0, "2.28.0.0"),
        # modinfo fails where no module has the name.
        ("", "2.28.0.0", 1, ""),
        ("", "", 0, ""),
    ],
)
def test_the_driver_is_the_one_that_runs_or_else_the_one_that_would_be_loaded(
    tools: Path, kernel: dict[str, str], loaded: str, file: str, code: int, version: str
) -> None:
    kernel["/sys/module/neuron/version"] = loaded
    script(tools, "modinfo", f'[ "$*" = "-F version neuron" ] && echo "{file}"; exit {code}')
    assert node.driver_version(5) == version


@pytest.mark.parametrize(
    ("systemd", "chrony", "known"),
    [
        (("NTPSynchronized=yes", 0), ("", 1), True),
        (("NTPSynchronized=no", 0), ("", 1), False),
        # chrony keeps the clock, and systemd has not heard of it.
        (("NTPSynchronized=no", 0), ("Stratum : 3\nLeap status     : Normal", 0), True),
        (("", 1), ("Leap status     : Not synchronised", 0), False),
        (("", 1), ("Leap status     : Insert second", 0), True),
        (("", 1), ("Stratum : 3", 0), False),
        (("", 1), ("Leap status     : Normal", 1), None),
        # Without a bus it answers nothing that counts.
        (("NTPSynchronized=yes", 1), ("", 1), None),
        (("NTPSynchronized=no", 1), ("", 1), None),
    ],
)
def test_whether_the_clock_is_kept(
    tools: Path, systemd: tuple[str, int], chrony: tuple[str, int], known: bool | None
) -> None:
    for name, words, (out, code) in (
        ("timedatectl", "show --property=NTPSynchronized", systemd),
        ("chronyc", "tracking", chrony),
    ):
        script(tools, name, f'[ "$*" = "{words}" ] || exit 9\nprintf %s\\\\n "{out}"\nexit {code}')
    assert node.clock_synchronised(5) is known


@pytest.mark.parametrize(
    ("shown", "limits"), [("MainPID=4711", "of 4711"), ("MainPID=0", ""), ("MainPID=", ""), ("", ""), ("MainPID=x", "")]
)
def test_the_limits_are_those_of_the_slurmd_that_runs(
    tools: Path, kernel: dict[str, str], shown: str, limits: str
) -> None:
    kernel.update({"/proc/4711/limits": "of 4711", "/proc/0/limits": "of none", "/proc//limits": "of none"})
    script(tools, "systemctl", f'[ "$*" = "show slurmd --property=MainPID" ] && echo "{shown}"')
    assert node.slurmd_limits(5) == limits


def test_names_and_addresses_are_looked_up_as_programs_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {"a": "192.0.2.1", "b": "192.0.2.2"}

    def by_name(name: str) -> str:
        if name not in hosts:
            raise socket.gaierror(name)
        return hosts[name]

    def by_address(address: str) -> tuple[str, list[str], list[str]]:
        if address != "192.0.2.1":
            raise socket.herror(address)
        return "a.example.com", ["a"], [address]

    monkeypatch.setattr(socket, "gethostbyname", by_name)
    monkeypatch.setattr(socket, "gethostbyaddr", by_address)
    peers = [{"name": name, "address": f"192.0.2.{number}"} for number, name in enumerate("abc", start=1)]
    assert node.lookups(peers) == {
        **hosts,
        "c": "",
        "192.0.2.1": "a.example.com",
        "192.0.2.2": "",
        "192.0.2.3": "",
    }


def test_space_is_what_all_users_may_use(tmp_path: Path) -> None:
    figures = os.statvfs(tmp_path)
    found = node.free_space([str(tmp_path), "/nowhere"])
    assert found["/nowhere"] is None
    there = found[str(tmp_path)]
    assert there is not None and abs(there - figures.f_bavail * figures.f_frsize) < 1 << 28


def test_mount_points_are_those_that_the_kernel_tells(kernel: dict[str, str]) -> None:
    kernel["/proc/self/mountinfo"] = (
        "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n30 22 0:50 / /fs\\040x rw - nfs4 a:/ rw\n"
    )
    assert node.mount_points() == ["/", "/fs x"]


def wanted(folder: Path, **changes: Any) -> dict[str, Any]:
    common = {"skip": [], "timeout": 5, "folders": [str(folder)], "venv_path": str(folder / "venv"), "mounts": ["/x"]}
    return {**common, "disk": {"/": 1}, "names": [{"name": "localhost", "address": "127.0.0.1"}], **changes}


LIST = json.dumps([{"nc_count": 2}])


@pytest.mark.parametrize(
    ("older", "newer", "out"),
    [
        (f"echo '{LIST}'", "echo none", LIST),
        ("echo usage; exit 2", f"echo '{LIST}'", LIST),
        # Where neither is understood, the first answer says more.
        ("echo no driver; exit 1", "echo usage; exit 2", "no driver"),
    ],
)
def test_neuron_ls_is_asked_in_the_older_way_first(tools: Path, older: str, newer: str, out: str) -> None:
    cases = f'-j) {older} ;; "--output-format json") {newer} ;; *) echo what ;;'
    script(tools, "neuron-ls", f'case "$*" in {cases} esac')
    seen = node.observe(wanted(tools, skip=sorted(set(CHECKS) - {"devices"})))["neuron_ls"]
    assert (seen["found"], seen["out"].strip()) == (True, out)


def test_what_is_switched_off_is_not_asked_for(tools: Path) -> None:
    asked = tools / "asked"
    for name in ("neuron-ls", "fi_info", "modinfo", "timedatectl", "chronyc", "systemctl"):
        script(tools, name, f'echo "${{0##*/}}" >> {asked}')
    seen = node.observe(wanted(tools, skip=list(CHECKS)))
    assert not asked.exists()
    nothing: dict[str, Any] = {"neuron_ls": None, "fi_info": None, "driver_version": "", "clock_synchronised": None}
    nothing.update(disk={}, mounts=[], slurmd_limits="", lookups={})
    assert {name: seen[name] for name in nothing} == nothing


@pytest.mark.parametrize(
    ("checks", "tool"),
    [
        (["devices"], "neuron-ls"),
        (["cores"], "neuron-ls"),
        (["efa"], "fi_info"),
        (["clock"], "timedatectl"),
        (["nofile"], "systemctl"),
        (["memlock"], "systemctl"),
    ],
)
def test_one_check_is_enough_for_its_tool_to_be_asked(tools: Path, checks: list[str], tool: str) -> None:
    asked = tools / "asked"
    for name in ("neuron-ls", "fi_info", "timedatectl", "chronyc", "systemctl"):
        script(tools, name, f'echo "${{0##*/}}" >> {asked}')
    node.observe(wanted(tools, skip=sorted(set(CHECKS) - set(checks))))
    assert set(asked.read_text().split()) - {"chronyc"} == {tool}


def test_mounts_are_only_looked_at_where_some_are_wanted(tools: Path) -> None:
    skip = sorted(set(CHECKS) - {"mounts", "disk", "names"})
    seen = node.observe(wanted(tools, skip=skip))
    assert "/" in seen["mounts"] and seen["disk"]["/"] > 0
    assert set(seen["lookups"]) == {"localhost", "127.0.0.1"}
    assert node.observe(wanted(tools, skip=skip, mounts=[]))["mounts"] == []


def test_what_the_collective_test_needs_is_looked_for(tools: Path) -> None:
    before = node.observe(wanted(tools, skip=list(CHECKS)))
    assert (before["nccom"], before["torchrun"], before["environment"]) == (False, False, [])
    packages = tools / "venv/lib/python3.12/site-packages"
    for name in ("torch-2.9.0", "torch_neuronx-2.9.0.2", "neuronx_cc-2.24", "numpy-2.0", "torchvision-0.24"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    (tools / "venv/bin").mkdir()
    (tools / "venv/bin/torchrun").touch()
    assert not node.observe(wanted(tools, skip=list(CHECKS)))["torchrun"]
    script(tools, "nccom-test", "")
    script(tools / "venv/bin", "torchrun", "")
    seen = node.observe(wanted(tools, skip=list(CHECKS)))
    assert (seen["nccom"], seen["torchrun"]) == (True, True)
    # By what another version would make another test.
    names = ["neuronx_cc-2.24", "torch-2.9.0", "torch_neuronx-2.9.0.2"]
    assert seen["environment"] == [f"{name}.dist-info" for name in names]
    assert seen["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert seen["kernel"] == os.uname().release
    assert abs(seen["time"] - time.time()) < 60
