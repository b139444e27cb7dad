"""What a node's tools print, as data."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node import state as node_state
from hypothesis import given
from hypothesis import strategies as st

DPKG = (
    "aws-neuronx-dkms\thold\tinstalled\t2.29.0.0\n"
    "aws-neuronx-tools\tinstall\tinstalled\t2.31.15.0\n"
    "aws-neuronx-collectives\tdeinstall\tconfig-files\t2.33.10.0-1d7e9c4b0\n"
    "aws-neuronx-runtime-lib\tunknown\tnot-installed\t\n"
)
SYSTEMCTL = """\
ExecMainStartTimestamp=@1000
Id=slurmd.service
ActiveState=active
UnitFileState=enabled

ExecMainStartTimestamp=
Id=slurmdbd.service
ActiveState=inactive
UnitFileState=
"""


def test_only_installed_packages_count_and_holds_are_seen() -> None:
    assert node_state.parse_packages(DPKG) == {
        "aws-neuronx-dkms": {"version": "2.29.0.0", "held": True},
        "aws-neuronx-tools": {"version": "2.31.15.0", "held": False},
    }


@pytest.mark.parametrize(
    ("written", "now", "stale"),
    [
        (999.0, 2000.0, False),
        (1000.9, 2000.0, False),  # systemd counts seconds: the file may be the older one
        (1001.0, 2000.0, True),
        (9999.0, 2000.0, False),  # from a time when the clock was wrong
    ],
)
def test_a_service_is_stale_if_a_file_is_newer(written: float, now: float, stale: bool) -> None:
    services = node_state.services_of(SYSTEMCTL, {"slurmd": written, "slurmdbd": 1500.0}, now)
    assert services == {
        "slurmd": {"enabled": True, "active": True, "stale": stale},
        "slurmdbd": {"enabled": False, "active": False, "stale": False},
    }


@pytest.mark.parametrize(("state", "active"), [("start", True), ("auto-restart", False)])
def test_a_service_that_waits_for_its_next_start_has_failed(state: str, active: bool) -> None:
    shown = f"Id=slurmctld.service\nActiveState=activating\nSubState={state}\nUnitFileState=enabled\n"
    assert node_state.services_of(shown, {}, 0.0)["slurmctld"]["active"] is active


@given(st.text())
def test_no_output_breaks_services(text: str) -> None:
    node_state.services_of(text, {}, 0.0)


def test_rpm_packages_are_held_by_their_lock() -> None:
    text = "aws-neuronx-dkms\tunknown\tinstalled\t2.29.0.0-dkms\npackage aws-neuronx-tools is not installed\n"
    assert node_state.parse_packages(text, ["aws-neuronx-dkms-0:2.29.0.0-dkms.*"])["aws-neuronx-dkms"]["held"]
    assert not node_state.parse_packages(text, ["aws-neuronx-dkms-extra-1.0"])["aws-neuronx-dkms"]["held"]


def test_the_installer_says_its_version() -> None:
    text = "# EFA installer version: 1.51.0\n# Debug packages installed: no\n# Packages installed:\nefa_2.17\n"
    assert node_state.parse_efa_packages(text) == "1.51.0"
    assert node_state.parse_efa_packages("") == ""


@given(st.text())
def test_no_output_is_an_error(text: str) -> None:
    assert isinstance(node_state.parse_packages(text), dict)


def test_versions_of_interpreters() -> None:
    assert node_state.parse_python_version("Python 3.12.3\n") == "3.12"
    assert node_state.parse_python_version("home = /usr/bin\nversion = 3.11.2\n") == "3.11"
    assert node_state.parse_python_version("") == ""


def test_a_build_mark_does_not_make_another_version() -> None:
    wanted = {"a": "2.33.10.0", "b": "2.33.10.0", "c": "2.33.1", "d": "1.0"}
    installed = {
        "a": {"version": "2.33.10.0-1d7e9c4b0", "held": True},
        "b": {"version": "2.33.10.0", "held": False},
        "c": {"version": "2.33.10.0", "held": True},
    }
    assert node_state.package_changes(wanted, installed, True) == {"install": ["c", "d"], "hold": ["b", "d"]}
    assert node_state.package_changes(wanted, installed, False)["hold"] == ["a", "c"]
