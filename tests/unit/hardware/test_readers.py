"""What a node's tools print about its hardware is read in one place, for everybody the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.filter.hardware import instance_hardware
from ansible_collections.trainium.cluster.plugins.module_utils._hardware import neuron_ls
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.fi_info import domains_of
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import TYPES
from ansible_collections.trainium.cluster.plugins.module_utils._node.health import check_cores, check_devices
from hypothesis import given
from hypothesis import strategies as st

FI_INFO = """\
provider: efa
    fabric: efa
    domain: rdmap0s6-rdm
    type: FI_EP_RDM
provider: efa
    fabric: efa
    domain: rdmap16s27-rdm
    type: FI_EP_RDM
provider: efa
    fabric: efa
    domain: rdmap0s6-rdm
    type: FI_EP_RDM
"""


def printed(devices: int, cores: int, form: str) -> str:
    """What neuron-ls -j prints: a list in older releases, a dictionary that holds the list in newer ones."""
    records = [{"neuron_device": number, "nc_count": cores, "memory_size": 1} for number in range(devices)]
    beside: dict[str, Any] = {"instance_type": "x", "others": [], "nodes": [{"id": 1}]}
    return json.dumps(records if form == "list" else {**beside, "mlas": records})


def counted_by_the_job_script(text: str) -> int:
    """The file runs alone on a node, where there is no collection."""
    ended = subprocess.run(
        [sys.executable, "-I", str(Path(neuron_ls.__file__))], input=text, capture_output=True, text=True, check=True
    )
    return int(ended.stdout)


@pytest.mark.parametrize("form", ["list", "dictionary"])
@pytest.mark.parametrize("name", sorted(name for name, kind in TYPES.items() if kind.devices))
def test_everybody_counts_the_same(name: str, form: str) -> None:
    """Acceptance, Slurm's gres, the roles' looks, the job script and ParallelCluster's node play."""
    known = TYPES[name]
    for cores in known.cores:
        text = printed(known.devices, cores, form)
        read = neuron_ls.devices_of(text)
        assert read == [cores] * known.devices
        observed = {"neuron_ls": {"found": True, "ended": True, "code": 0, "out": text, "err": ""}}
        devices, seen = (check(observed, {"instance_type": name}) for check in (check_devices, check_cores))
        assert (devices.result, devices.found, seen.result) == ("ok", known.devices, "ok")
        assert seen.found == sum(read) == known.devices * cores
    hardware = instance_hardware(name)
    assert hardware["neuron_devices"] == known.devices
    assert hardware["neuron_cores"] == known.devices * known.cores[0]
    assert hardware["efa_interfaces"] == known.efa


@pytest.mark.parametrize("form", ["list", "dictionary"])
def test_the_job_script_counts_both_forms(form: str) -> None:
    assert counted_by_the_job_script(printed(16, 2, form)) == 32


@pytest.mark.parametrize("text", ["no device", "[]", '[{"nc_count": 0}]'])
def test_the_job_script_does_not_go_on_with_nothing(text: str) -> None:
    ended = subprocess.run(
        [sys.executable, str(Path(neuron_ls.__file__))], input=text, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "neuron-ls shows no NeuronCore on this node" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "text",
    ["", "no device", "{}", '{"a": 1}', '{"a": ""}', '{"a": {}}', '""', "0", '[{"neuron_device": 0}]', "[1]", "null"],
)
def test_what_is_no_answer(text: str) -> None:
    assert neuron_ls.devices_of(text) is None


def test_a_list_without_an_entry_is_an_answer() -> None:
    """A node whose driver found no device."""
    assert neuron_ls.devices_of("[]") == []
    assert neuron_ls.devices_of('{"mlas": [], "instance_type": ""}') == []
    # Beside one that has some, it is of something else.
    assert neuron_ls.devices_of('{"others": [], "mlas": [{"nc_count": "2"}], "more": []}') == [2]


def test_each_domain_is_one_interface() -> None:
    assert domains_of(FI_INFO * 2) == ["rdmap0s6-rdm", "rdmap16s27-rdm"]


@given(st.text())
def test_no_output_is_an_error(text: str) -> None:
    assert isinstance(domains_of(text), list)
    neuron_ls.devices_of(text)
