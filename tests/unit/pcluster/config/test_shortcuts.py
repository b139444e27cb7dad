"""Which of preset, shortcut and own key wins, and what roles take from a preset where nobody asked for anything."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.pcluster_summary import pcluster_summary
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.arguments import SYSTEMS
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import PRESETS, with_preset
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.render import render

from tests.sandbox_driver import REPOSITORY
from tests.unit.pcluster.pcluster_samples import ACCOUNT, GROUP, MORE, RESERVATION, configuration_of

Item = dict[str, Any]


def resource(configuration: Item, queue: int = 0) -> Item:
    found: Item = configuration["Scheduling"]["SlurmQueues"][queue]["ComputeResources"][0]
    return found


def own(**keys: Any) -> Item:
    """The queue of the preset trn1 with keys for its resource."""
    return {"queues": [{"name": "compute1", "compute_resources": [{"name": "trn1", **keys}]}]}


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        ("trn1", {}, ("trn1.32xlarge", 0, 2)),
        ("trn1", {"instance_type": "trn1n.32xlarge", "max_count": 5}, ("trn1n.32xlarge", 0, 5)),
        ("trn1", {"max_count": 5, **own(max_count=7)}, ("trn1.32xlarge", 0, 7)),
        ("trn1", {"instance_type": "trn1n.32xlarge", **own(min_count=1)}, ("trn1n.32xlarge", 1, 2)),
        ("capacity_block", {"max_count": 5}, ("trn2.48xlarge", 5, 5)),
        ("capacity_block", {"min_count": 1, "max_count": 5}, ("trn2.48xlarge", 1, 5)),
        ("p4de_g5_inference", {"max_count": 9}, ("p4de.24xlarge", 0, 9)),
    ],
)
def test_own_keys_win_over_shortcuts_and_these_over_presets(
    preset: str, variables: Item, expected: tuple[str, int, int]
) -> None:
    one = resource(configuration_of(preset, **variables))
    assert (one["InstanceType"], one["MinCount"], one["MaxCount"]) == expected


def test_a_queue_after_the_first_takes_no_shortcut() -> None:
    one = resource(configuration_of("p4de_g5_inference", instance_type="p4d.24xlarge", max_count=9), 1)
    assert (one["InstanceType"], one["MaxCount"]) == ("g5.12xlarge", 4)


def test_several_types_take_the_place_of_one() -> None:
    kinds = ["trn1.32xlarge", "trn1n.32xlarge"]
    for preset, variables in (("trn1", own(instance_types=kinds)), (None, own(instance_types=kinds))):
        one = resource(render(with_preset(preset, {**ACCOUNT, "instance_type": kinds[0], **variables})))
        assert "InstanceType" not in one
        assert [item["InstanceType"] for item in one["Instances"]] == kinds


@pytest.mark.parametrize("preset", ["trn1", None])
def test_the_reservation_of_a_queue_wins_over_the_shortcut(preset: str | None) -> None:
    queues = [{**own(instance_type="trn1.32xlarge")["queues"][0], "capacity_reservation": {"id": RESERVATION}}]
    given = {**ACCOUNT, "queues": queues, "capacity_reservation": {"resource_group_arn": GROUP}}
    configuration = render(with_preset(preset, given))
    (queue,) = configuration["Scheduling"]["SlurmQueues"]
    assert queue["CapacityReservationTarget"] == {"CapacityReservationId": RESERVATION}
    assert "CapacityReservationTarget" not in resource(configuration)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_summary_is_what_the_configuration_has(preset: str) -> None:
    found = pcluster_summary(preset, MORE.get(preset, {}))
    configuration = configuration_of(preset)
    one = resource(configuration)
    assert (found["instance_type"], found["node_count"]) == (one["InstanceType"], one["MaxCount"])
    kinds = {item["MountDir"]: item["StorageType"] for item in configuration["SharedStorage"]}
    assert kinds[found["shared_dir"]] in ("Efs", "FsxLustre")


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        ("trn1", {"max_count": 8, "shared_storage": [{"type": "efs", "mount_dir": "data"}]},
         ("trn1.32xlarge", 8, "/data")),
        ("trn1", {"shared_storage": [{"type": "ebs", "mount_dir": "/apps"}]}, ("trn1.32xlarge", 2, "/home")),
        ("", {}, ("trn1.32xlarge", 2, "/home")),
        ("", {"queues": [{"compute_resources": [{"instance_types": ["trn2.48xlarge"], "max_count": 3}]}]},
         ("trn2.48xlarge", 3, "/home")),
        ("", {"queues": [{"name": "empty"}]}, ("trn1.32xlarge", 2, "/home")),
        ("trn9", {}, ("trn1.32xlarge", 2, "/home")),
        ("trn1", {"queues": "none"}, ("trn1.32xlarge", 2, "/home")),
        ("trn1", own(max_count="many"), ("trn1.32xlarge", 2, "/home")),
    ],
)  # fmt: skip
def test_the_summary_of_variables(preset: str, variables: Item, expected: tuple[str, int, str]) -> None:
    assert tuple(pcluster_summary(preset, variables).values())[:3] == expected


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        ("trn1_dynamic", {}, (0, "on-demand", [])),
        ("capacity_block", {"max_count": 4}, (4, "capacity-block", [])),
        ("login_nodes", {"min_count": 1}, (1, "on-demand", ["the login nodes"])),
        ("multi_queue", {}, (0, "on-demand", ["other queues"])),
        ("", {"queues": [{**own(instance_types=["trn1.2xlarge", "trn1.32xlarge"])["queues"][0],
                          "capacity_type": "SPOT"}]},
         (0, "spot", ["other nodes of the queue"])),
        ("", {"queues": [{"name": "a", "compute_resources": [
            {"name": kind, "instance_type": f"{kind}.32xlarge"} for kind in ("trn1", "trn1n")]}]},
         (0, "on-demand", ["other nodes of the queue"])),
        ("trn9", {}, (0, "on-demand", ())),
    ],
)  # fmt: skip
def test_what_of_a_cluster_costs_always_and_how_it_is_had(preset: str, variables: Item, expected: Item) -> None:
    found = pcluster_summary(preset, variables)
    assert (found["least"], found["market"], found["beside"]) == expected


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        *[("trn1_dynamic", {}, True), ("multi_queue", {}, True)],
        *[("trn1", {}, False), ("gpu", {}, False), ("", {}, False), ("trn9", {}, False)],
        ("gpu", {"shared_storage": [{"type": "efs", "mount_dir": "/shared"}]}, True),
        ("gpu", {"shared_storage": [{"type": "efs", "mount_dir": "/shared", "file_system_id": "fs-1"}]}, False),
    ],
)
def test_which_clusters_share_an_efs_that_bursts(preset: str, variables: Item, expected: bool) -> None:
    assert pcluster_summary(preset, variables)["bursting"] is expected


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        *[("gpu", {}, False), ("p4de_g5_inference", {}, False), ("trn1", {}, True), ("multi_queue", {}, True)],
        *[("trn1", {"instance_type": kind}, True) for kind in ("trn2.3xlarge", "inf2.48xlarge")],
        ("trn1", {"instance_type": "p5.48xlarge"}, False),
        ("gpu", {"queues": [{"name": "more", "compute_resources": [{"instance_types": ["inf2.xlarge"]}]}]}, True),
        *[("", {}, True), ("trn9", {}, True)],
    ],
)
def test_which_clusters_have_neuron_devices(preset: str, variables: Item, expected: bool) -> None:
    assert pcluster_summary(preset, variables)["neuron"] is expected


@pytest.mark.parametrize(
    ("system", "user"),
    [
        *[("ubuntu2204", "ubuntu"), ("alinux2023", "ec2-user"), ("rhel9", "ec2-user"), ("rocky9", "rocky")],
        *[("", "ubuntu"), (None, "ubuntu")],
    ],
)
def test_who_logs_in_to_an_operating_system(system: str | None, user: str) -> None:
    assert pcluster_summary("trn1", {"os": system})["user"] == user


@pytest.mark.parametrize("system", SYSTEMS)
def test_that_is_whom_the_library_names(system: str) -> None:
    from pcluster.constants import OS_MAPPING

    assert pcluster_summary("trn1", {"os": system})["user"] == OS_MAPPING[system]["user"]


BLOCK = {"capacity_reservation": {"id": "cr-0a1b2c3d4e5f60001"}}


@pytest.mark.parametrize(
    ("preset", "variables", "expected"),
    [
        ("trn1", {}, {}),
        ("trn1", BLOCK, {"": "cr-0a1b2c3d4e5f60001", "compute1": "cr-0a1b2c3d4e5f60001"}),
        ("trn1", own(**BLOCK), {"": "cr-0a1b2c3d4e5f60001", "compute1": "cr-0a1b2c3d4e5f60001"}),
        ("trn1", {"capacity_reservation": {"id": RESERVATION}, "queues": [{"name": "compute1", **BLOCK}]},
         {"": "cr-0a1b2c3d4e5f60001", "compute1": "cr-0a1b2c3d4e5f60001"}),
        ("multi_queue", {"queues": [{"name": "debug", **BLOCK}]}, {"debug": "cr-0a1b2c3d4e5f60001"}),
        ("trn1", {"capacity_reservation": {"resource_group_arn": GROUP}}, {}),
    ],
)  # fmt: skip
def test_which_reservation_a_queue_has(preset: str, variables: Item, expected: Item) -> None:
    assert pcluster_summary(preset, variables)["reservations"] == expected


def test_timeouts_are_what_was_given() -> None:
    assert "DevSettings" not in configuration_of("trn1")
    timeouts = configuration_of("trn1", head_bootstrap_timeout=7000, compute_bootstrap_timeout=4000)["DevSettings"]
    assert timeouts == {"Timeouts": {"HeadNodeBootstrapTimeout": 7000, "ComputeNodeBootstrapTimeout": 4000}}


@pytest.mark.parametrize(("preset", "variables"), [(None, {}), ("trn1", ["max_count"])])
def test_a_summary_of_something_else(preset: Any, variables: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="pcluster_summary"):
        pcluster_summary(preset, variables)


def test_both_roles_have_the_same_preset_by_default() -> None:
    roles = REPOSITORY / "roles"
    preset = yaml.safe_load((roles / "parallelcluster/defaults/main.yml").read_text())["parallelcluster_preset"]
    text = yaml.safe_load((roles / "trainium/vars/main.yml").read_text())["__trainium_pcluster"]
    assert f"parallelcluster_preset | default('{preset}')" in text
