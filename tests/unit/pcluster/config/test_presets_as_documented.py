"""Each preset has the nodes, the head node, the storage and the needs that docs/parallelcluster.md says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import INSTEAD, NEEDS, PRESETS

from tests.sandbox_driver import REPOSITORY
from tests.unit.pcluster.pcluster_samples import configuration_of

Item = dict[str, Any]
PAGE = (REPOSITORY / "docs/parallelcluster.md").read_text(encoding="utf-8")
# Name of the preset -> nodes, the rest of the cluster, what it needs.
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"^\| `(\w+)`[^|]* \| ([^|]*) \| ([^|]*) \|([^|]*)\|$", PAGE, re.MULTILINE)
    if row[0] in PRESETS
}


def nodes_of(configuration: Item) -> list[str]:
    """Each queue's first resource as the page writes it: ``0 to 16 trn1.32xlarge``, ``2 trn2.48xlarge``."""
    found = [queue["ComputeResources"][0] for queue in configuration["Scheduling"]["SlurmQueues"]]
    return [
        f"{'' if one['MinCount'] == one['MaxCount'] else str(one['MinCount']) + ' to '}{one['MaxCount']} "
        + one["InstanceType"]
        for one in found
    ]


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_is_as_documented(name: str) -> None:
    told, about, needs = ROWS[name]
    configuration = configuration_of(name)
    (queue, *_more) = nodes_of(configuration)
    assert queue in told
    head = configuration["HeadNode"]["InstanceType"]
    if "head " in about:
        assert f"head {head}" in about
    # What the role itself brings nobody must set.
    for wanted in [one for one in NEEDS.get(name, {}) if (name, one) not in INSTEAD]:
        assert wanted in needs
    if "(A)" in about:
        assert f"(A): head node {head}, 4,800 GiB of FSx for Lustre at `/fsx`, 200 GiB of EBS at `/apps`" in PAGE
        apps, lustre = configuration["SharedStorage"]
        assert (apps["MountDir"], apps["EbsSettings"]["Size"]) == ("/apps", 200)
        assert (lustre["MountDir"], lustre["FsxLustreSettings"]["StorageCapacity"]) == ("/fsx", 4800)
        assert configuration["Monitoring"]["Dashboards"]["CloudWatch"] == {"Enabled": True}
    for item in configuration["SharedStorage"]:
        if "(A)" not in about and "EFS at" in about:
            assert f"`{item['MountDir']}`" in about


def test_the_page_has_all_presets() -> None:
    assert set(ROWS) == set(PRESETS)


def test_other_queues_and_pools_beside_the_one_that_trains() -> None:
    assert nodes_of(configuration_of("multi_queue")) == [
        "0 to 2 trn1.32xlarge",
        "0 to 4 m5.8xlarge",
        "0 to 2 trn1.2xlarge",
    ]
    assert nodes_of(configuration_of("p4de_g5_inference")) == ["0 to 4 p4de.24xlarge", "0 to 4 g5.12xlarge"]
    (pool,) = configuration_of("login_nodes")["LoginNodes"]["Pools"]
    assert (pool["InstanceType"], pool["Count"], pool["GracetimePeriod"]) == ("m5.xlarge", 2, 10)
    names = [queue["Name"] for queue in configuration_of("multi_queue")["Scheduling"]["SlurmQueues"]]
    assert names == ["compute1", "compile", "debug"]


@pytest.mark.parametrize("name", PRESETS)
def test_where_nodes_have_their_disks_and_who_has_them(name: str) -> None:
    configuration = configuration_of(name)
    assert configuration["HeadNode"]["LocalStorage"]["RootVolume"]["Size"] == (800 if name == "trn1" else 200)
    for queue in configuration["Scheduling"]["SlurmQueues"]:
        kind = queue["ComputeResources"][0]["InstanceType"]
        size = 800 if name == "trn1" else 512 if kind.startswith(("trn", "inf")) else 200
        assert queue["ComputeSettings"]["LocalStorage"]["RootVolume"]["Size"] == size
        # Two jobs on a node of the training clusters would take each other's devices.
        alone = kind.startswith(("trn", "p4"))
        assert queue.get("JobExclusiveAllocation", False) is alone


def test_a_capacity_block_and_accounting() -> None:
    (queue,) = configuration_of("capacity_block")["Scheduling"]["SlurmQueues"]
    assert (queue["CapacityType"], queue["Networking"]["PlacementGroup"]) == ("CAPACITY_BLOCK", {"Enabled": False})
    database = configuration_of("accounting")["Scheduling"]["SlurmSettings"]["Database"]
    assert (database["UserName"], database["Uri"]) == ("slurm", "db.example.com:3306")
    assert configuration_of("gpu")["Monitoring"]["Dashboards"]["CloudWatch"] == {"Enabled": True}
