"""Configurations from variables: presets, defaults, merging, and that every valid input gives a clean configuration."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._hardware.instance_types import has_efa
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.actions import (
    iam_section,
    script_buckets,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import merge, without_nothing
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import (
    NEEDS,
    PRESETS,
    with_preset,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.render import render
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.storage import render_storage
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.types import partition
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.pcluster.pcluster_samples import (
    ACCOUNT,
    ALL_PRESETS,
    GROUP,
    IMAGE,
    MORE,
    OTHER,
    PRIVATE,
    RESERVATION,
    SCRIPT,
    configuration_of,
    findings_of,
    variables_of,
)


def queues_of(configuration: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = configuration["Scheduling"]["SlurmQueues"]
    return found


def resource_of(configuration: dict[str, Any], queue: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = queues_of(configuration)[queue]["ComputeResources"][0]
    return found


def storage_of(configuration: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["MountDir"]: item for item in configuration["SharedStorage"]}


# --- presets ---


@pytest.mark.parametrize("preset", ALL_PRESETS)
def test_a_preset_is_clean(preset: str) -> None:
    assert not findings_of(configuration_of(preset), variables=variables_of(preset))


@pytest.mark.parametrize("preset", ALL_PRESETS)
def test_a_preset_is_secure(preset: str) -> None:
    configuration = configuration_of(preset)
    assert configuration["Imds"] == {"ImdsSupport": "v2.0"}
    assert configuration["HeadNode"]["Ssh"]["AllowedIps"] == ACCOUNT["allowed_ips"]
    for pool in configuration.get("LoginNodes", {}).get("Pools", []):
        assert pool["Ssh"]["AllowedIps"] == ACCOUNT["allowed_ips"]
    for queue in queues_of(configuration):
        assert queue["ComputeSettings"]["LocalStorage"]["RootVolume"]["Encrypted"] is True
    for item in configuration["SharedStorage"]:
        if item["StorageType"] != "FsxLustre":
            assert item[f"{item['StorageType']}Settings"]["Encrypted"] is True


@pytest.mark.parametrize("preset", sorted(NEEDS))
def test_a_preset_names_the_variable_that_it_lacks(preset: str) -> None:
    with pytest.raises(TrainiumError, match=f"{next(iter(NEEDS[preset]))} is missing; preset {preset} needs"):
        with_preset(preset, ACCOUNT)


def test_a_preset_that_there_is_not() -> None:
    with pytest.raises(TrainiumError, match="choose one of accounting, capacity_block"):
        with_preset("trn9", ACCOUNT)


def test_rendering_leaves_the_presets_alone() -> None:
    before = copy.deepcopy(PRESETS)
    for preset in ALL_PRESETS:
        render(variables_of(preset, overrides={"HeadNode": {"InstanceType": "m5.large"}}, max_count=2, min_count=2))
    assert before == PRESETS


def test_two_trn1_with_efs() -> None:
    configuration = configuration_of("trn1")
    assert configuration["HeadNode"]["InstanceType"] == "c5.4xlarge"
    assert resource_of(configuration)["InstanceType"] == "trn1.32xlarge"
    assert (resource_of(configuration)["MinCount"], resource_of(configuration)["MaxCount"]) == (0, 2)
    assert resource_of(configuration)["Efa"] == {"Enabled": True}
    efs = storage_of(configuration)["/neuron_shared"]["EfsSettings"]
    assert (efs["ThroughputMode"], efs["ProvisionedThroughput"]) == ("provisioned", 1024)
    local = queues_of(configuration)[0]["ComputeSettings"]["LocalStorage"]
    assert local["EphemeralVolume"] == {"MountDir": "/scratch"}
    assert local["RootVolume"]["Size"] == 800
    assert configuration["HeadNode"]["Networking"]["SubnetId"] != queues_of(configuration)[0]["Networking"]["SubnetIds"]


def test_sixteen_dynamic_trn1_set_themselves_up() -> None:
    configuration = configuration_of("trn1_dynamic")
    assert (resource_of(configuration)["MinCount"], resource_of(configuration)["MaxCount"]) == (0, 16)
    queue = queues_of(configuration)[0]
    assert queue["CustomActions"]["OnNodeConfigured"] == {"Script": SCRIPT, "Args": ["compute"]}
    assert queue["Iam"]["S3Access"] == [{"BucketName": "example-bucket", "KeyName": "scripts/*"}]
    assert configuration["HeadNode"]["Iam"]["S3Access"] == queue["Iam"]["S3Access"]


@pytest.mark.parametrize(
    "preset", ["gpu", "p4de_custom_ami", "p4de_postinstall", "p4de_g5_inference", "trn1_custom_ami"]
)
def test_the_training_clusters_share_their_storage(preset: str) -> None:
    configuration = configuration_of(preset)
    storage = storage_of(configuration)
    assert storage["/apps"]["StorageType"] == "Ebs"
    lustre = storage["/fsx"]["FsxLustreSettings"]
    assert (lustre["StorageCapacity"], lustre["DeploymentType"]) == (4800, "PERSISTENT_2")
    for queue in queues_of(configuration):
        assert queue["ComputeSettings"]["LocalStorage"]["EphemeralVolume"] == {"MountDir": "/local_scratch"}
    assert configuration["HeadNode"]["InstanceType"] == "m5.8xlarge"


def test_nodes_read_the_parameters_of_the_account_only_where_that_is_wanted() -> None:
    assert "AmazonSSMManagedInstanceCore" not in json.dumps([configuration_of(preset) for preset in ALL_PRESETS])
    configuration = configuration_of("gpu", ssm_access=True)
    for node in (configuration["HeadNode"], *queues_of(configuration)):
        policies = [item["Policy"] for item in node["Iam"]["AdditionalIamPolicies"]]
        assert policies == ["arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"]


def test_trn1_with_a_reservation_by_id_or_by_group() -> None:
    by_id, by_group = (
        configuration_of("trn1_custom_ami"),
        configuration_of("trn1_custom_ami", capacity_reservation={"resource_group_arn": GROUP}),
    )
    assert by_id["Image"] == {"Os": "ubuntu2404", "CustomAmi": IMAGE}
    assert resource_of(by_id)["CapacityReservationTarget"] == {"CapacityReservationId": RESERVATION}
    assert resource_of(by_group)["CapacityReservationTarget"] == {"CapacityReservationResourceGroupArn": GROUP}


def test_inference_has_a_queue_without_efa_and_placement() -> None:
    configuration = configuration_of("p4de_g5_inference")
    assert [queue["Name"] for queue in queues_of(configuration)] == ["compute-gpu", "inference-gpu"]
    assert "Efa" not in resource_of(configuration, 1)
    assert "PlacementGroup" not in queues_of(configuration)[1]["Networking"]


# --- placement groups ---


@pytest.mark.parametrize(
    ("preset", "variables", "group"),
    [
        ("gpu", {}, {"Enabled": True}),
        ("trn1", {}, {"Enabled": True}),
        ("trn1", {"capacity_reservation": {"id": RESERVATION}}, {"Enabled": True}),
        ("trn1", {"capacity_reservation": {"id": RESERVATION, "owner": "aws"}}, {"Enabled": False}),
        ("p4de_custom_ami", {}, {"Enabled": False}),
        ("p4de_postinstall", {}, {"Enabled": False}),
        ("p4de_custom_ami", {"capacity_reservation": {"id": RESERVATION, "owner": "self"}}, {"Enabled": True}),
        ("capacity_block", {}, {"Enabled": False}),
        ("trn1", {"placement_group": "False"}, {"Enabled": False}),
        ("trn1", {"placement_group": True}, {"Enabled": True}),
        ("trn1", {"placement_group": "mine"}, {"Name": "mine"}),
    ],
)
def test_a_placement_group_where_it_helps(preset: str, variables: dict[str, Any], group: dict[str, Any]) -> None:
    assert queues_of(configuration_of(preset, **variables))[0]["Networking"]["PlacementGroup"] == group


# --- EFA ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *[("trn1.32xlarge", True), ("trn1.2xlarge", False), ("trn1n.32xlarge", True), ("trn2.48xlarge", True)],
        *[("p4de.24xlarge", True), ("p5.4xlarge", True), ("g5.12xlarge", True), ("g5.4xlarge", False)],
        *[("inf2.48xlarge", False), ("m5.8xlarge", False), ("c5n.18xlarge", None), ("c6i.xlarge", False)],
    ],
)
def test_which_types_have_efa(kind: str, expected: bool | None) -> None:
    assert has_efa(kind) is expected


def test_nodes_with_efa_have_a_queue_for_each_subnet() -> None:
    zones = {"compute_subnet_ids": [PRIVATE, OTHER]}
    configuration = configuration_of("trn1", min_count=1, **zones)
    found = [
        (queue["Name"], queue["Networking"]["SubnetIds"], one["MinCount"], one["MaxCount"], one["Efa"])
        for queue in queues_of(configuration)
        for one in queue["ComputeResources"]
    ]
    on = {"Enabled": True}
    assert found == [("compute1", [PRIVATE], 1, 2, on), ("compute1-z2", [OTHER], 0, 2, on)]
    assert not findings_of(configuration)
    # What has no EFA goes wherever there is room, what is reserved is where it is.
    names = [queue["Name"] for queue in queues_of(configuration_of("multi_queue", **zones))]
    assert names == ["compute1", "compute1-z2", "compile", "debug"]
    (reserved,) = queues_of(configuration_of("trn1", capacity_reservation={"id": RESERVATION}, **zones))
    assert reserved["Networking"]["SubnetIds"] == [PRIVATE, OTHER]


def test_reservation_by_id_and_group_at_once() -> None:
    with pytest.raises(TrainiumError, match="has an id and a resource_group_arn; give one of them"):
        configuration_of("trn1", capacity_reservation={"id": RESERVATION, "resource_group_arn": GROUP})


# --- storage, scripts, rights ---


@pytest.mark.parametrize(
    ("item", "settings_"),
    [
        ({"type": "efs", "file_system_id": "fs-0a1b2c3d4e5f60001"}, {"FileSystemId": "fs-0a1b2c3d4e5f60001"}),
        ({"type": "fsx_lustre", "file_system_id": "fs-0a1b2c3d4e5f60001"}, {"FileSystemId": "fs-0a1b2c3d4e5f60001"}),
        ({"type": "fsx_openzfs", "volume_id": "fsvol-0a1b2c3d4e5f60001"}, {"VolumeId": "fsvol-0a1b2c3d4e5f60001"}),
        ({"type": "ebs", "volume_id": "vol-0a1b2c3d4e5f60001"}, {"VolumeId": "vol-0a1b2c3d4e5f60001"}),
        ({"type": "ebs", "size": 50}, {"Size": 50, "Encrypted": True, "VolumeType": "gp3"}),
    ],
)
def test_storage_that_exists_takes_no_defaults(item: dict[str, Any], settings_: dict[str, Any]) -> None:
    section = render_storage([{**item, "mount_dir": "/data/a_b"}])[0]
    assert section["Name"] == "data-a-b"
    assert section[f"{section['StorageType']}Settings"] == settings_


def test_storage_of_an_unknown_type() -> None:
    with pytest.raises(TrainiumError, match=r"shared_storage\[0\].type is 'zfs'; use one of efs"):
        render_storage([{"type": "zfs", "mount_dir": "/a"}])


def test_nfs_is_mounted_by_a_script_before_the_others() -> None:
    nfs = {"type": "nfs", "server": "nfs.example.com", "path": "/home", "mount_dir": "/homes", "script": SCRIPT}
    configuration = configuration_of("trn1_dynamic", shared_storage=[nfs])
    sequence = queues_of(configuration)[0]["CustomActions"]["OnNodeConfigured"]["Sequence"]
    assert sequence[0]["Args"][:2] == ["nfs.example.com:/home", "/homes"]
    assert len(sequence) == 2
    assert "SharedStorage" not in configuration
    with pytest.raises(TrainiumError, match=r"shared_storage\[0\] of type nfs lacks server, path, script"):
        configuration_of("trn1_dynamic", shared_storage=[{"type": "nfs", "mount_dir": "/homes"}])


def test_the_order_of_scripts() -> None:
    def script(name: str) -> dict[str, str]:
        return {"script": f"s3://b/{name}.sh"}

    def events(*names: str) -> dict[str, Any]:
        return {"on_node_configured": [script(name) for name in names]}

    nfs = {"type": "nfs", "server": "nfs.example.com", "path": "/home", "mount_dir": "/homes", **script("mount")}
    kinds = {"head": events("kind-1", "kind-2"), "compute": {**events("kind"), "on_node_start": [script("start")]}}
    configuration = configuration_of(
        "multi_queue",
        shared_storage=[nfs],
        setup_actions={"head": events("setup"), "compute": events("setup")},
        custom_actions=kinds,
        queues=[{"name": "debug", "custom_actions": events("own")}],
    )

    def order(node: dict[str, Any]) -> list[str]:
        return [one["Script"][7:-3] for one in node["CustomActions"]["OnNodeConfigured"]["Sequence"]]

    compute, _compile, debug = queues_of(configuration)
    assert order(configuration["HeadNode"]) == ["mount", "setup", "kind-1", "kind-2"]
    assert order(compute) == ["mount", "setup", "kind"]
    assert order(debug) == ["mount", "setup", "own"]
    assert debug["CustomActions"]["OnNodeStart"] == {"Script": "s3://b/start.sh"}


def test_a_preset_that_nodes_are_set_up_for_needs_no_scripts_of_ones_own() -> None:
    setup = {"setup_actions": MORE["trn1_dynamic"]["custom_actions"]}
    for preset in ("trn1_dynamic", "p4de_postinstall"):
        assert "CustomActions" in queues_of(render(with_preset(preset, {**ACCOUNT, **setup})))[0]
    with pytest.raises(TrainiumError, match="preset p4de_postinstall needs the scripts for Docker, Pyxis and Enroot"):
        with_preset("p4de_postinstall", ACCOUNT)


def test_scripts_in_two_folders_need_the_whole_bucket() -> None:
    actions = {"on_node_configured": [{"script": "s3://b/x/1.sh"}, {"script": "s3://b/y/2.sh"}]}
    assert script_buckets(actions) == [{"BucketName": "b"}]


def test_scripts_and_a_folder_to_write_in_one_bucket() -> None:
    folder = {"bucket": "b", "key": "cache/*", "write": True}
    scripts = [{"BucketName": "b", "KeyName": "node/*"}]
    written = {"BucketName": "b", "KeyName": "cache/*", "EnableWriteAccess": True}
    assert iam_section({}, {"s3_access": [folder]}, scripts)["S3Access"] == [written, *scripts]
    assert iam_section({}, {"s3_access": [{"bucket": "b"}, folder]}, scripts)["S3Access"] == [
        {"BucketName": "b"},
        written,
    ]


def test_a_role_replaces_the_other_rights() -> None:
    role = "arn:aws:iam::123456789012:role/nodes"
    assert iam_section(ACCOUNT, {"instance_role": role}, [{"BucketName": "b"}]) == {"InstanceRole": role}


@pytest.mark.parametrize(
    ("region", "expected"), [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_partitions(region: str, expected: str) -> None:
    assert partition(region) == expected


# --- merging ---


def test_any_key_can_be_added_overridden_and_removed() -> None:
    overrides = {
        "HeadNode": {"InstanceType": "m6i.4xlarge", "Imds": None},
        "Scheduling": {
            "SlurmQueues": [
                {"Name": "compute1", "ComputeResources": [{"Name": "trn1", "MaxCount": 8}]},
                {"Name": "new", "ComputeResources": []},
            ]
        },
        "DevSettings": {"Timeouts": {"ComputeNodeBootstrapTimeout": 3600}},
    }
    configuration = configuration_of("trn1", overrides=overrides)
    assert configuration["HeadNode"]["InstanceType"] == "m6i.4xlarge"
    assert "Imds" not in configuration["HeadNode"]
    assert resource_of(configuration)["MaxCount"] == 8
    assert resource_of(configuration)["InstanceType"] == "trn1.32xlarge"
    assert [queue["Name"] for queue in queues_of(configuration)] == ["compute1", "new"]
    assert configuration["DevSettings"] == overrides["DevSettings"]


def test_a_name_given_twice_stays_visible() -> None:
    twice = [{"Name": "a", "X": 1}, {"Name": "a", "X": 2}]
    assert merge([{"Name": "a"}], twice) == twice


json_like = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["Name", "a", "b"]), inner, max_size=3),
    max_leaves=8,
)


@example(base={"a": [{"Name": []}]}, over={"a": []})
@example(base={"a": []}, over={"a": [{"Name": []}]})
@given(base=st.dictionaries(st.sampled_from("abc"), json_like), over=st.dictionaries(st.sampled_from("abc"), json_like))
def test_merging_changes_nothing_it_is_given_and_the_second_wins(base: dict[str, Any], over: dict[str, Any]) -> None:
    copies = copy.deepcopy(base), copy.deepcopy(over)
    merged = merge(base, over)
    assert (base, over) == copies
    assert set(merged) == set(base) | set(over)
    for key, value in over.items():
        if not isinstance(value, (dict, list)):
            assert merged[key] == value
    assert merge(merged, {}) == merged


def test_what_was_not_given_is_left_out() -> None:
    assert without_nothing({"a": None, "b": [{"c": None, "d": 1}]}) == {"b": [{"d": 1}]}


# --- every valid input gives a clean configuration ---

name = st.from_regex(r"[a-z][a-z0-9-]{0,7}", fullmatch=True).filter(lambda text: text != "default")
kinds = st.sampled_from(
    ["trn1.32xlarge", "trn1.2xlarge", "trn1n.32xlarge", "trn2.48xlarge", "p4de.24xlarge", "g5.12xlarge", "m5.8xlarge"]
)
reservation = st.none() | st.sampled_from(
    [{"id": RESERVATION}, {"resource_group_arn": GROUP}, {"id": RESERVATION, "owner": "self"}]
)


@st.composite
def compute_resources(draw: st.DrawFn) -> dict[str, Any]:
    minimum = draw(st.integers(0, 4))
    return {
        "name": draw(name),
        "instance_type": draw(kinds),
        "min_count": minimum,
        "max_count": draw(st.integers(max(1, minimum), 64)),
    }


@st.composite
def queues(draw: st.DrawFn) -> dict[str, Any]:
    resources = draw(st.lists(compute_resources(), min_size=1, max_size=2, unique_by=lambda item: item["name"]))
    queue: dict[str, Any] = {"name": draw(name), "compute_resources": resources}
    kind = draw(st.sampled_from(["ONDEMAND", "SPOT", "CAPACITY_BLOCK", None]))
    if kind == "CAPACITY_BLOCK":
        for resource in resources:
            resource["min_count"] = resource["max_count"]
            resource["capacity_reservation"] = {"id": RESERVATION}
    elif kind != "SPOT":
        for resource in resources:
            resource["capacity_reservation"] = draw(reservation)
    queue["capacity_type"] = kind
    queue["subnet_ids"] = draw(st.sampled_from([None, [PRIVATE]]))
    return without_none(queue)


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = without_nothing(value)
    return found


storage: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.sampled_from(
        [
            {"type": "efs", "mount_dir": "/shared"},
            {"type": "efs", "mount_dir": "/home", "file_system_id": "fs-0a1b2c3d4e5f60001"},
            {"type": "fsx_lustre", "mount_dir": "/fsx"},
            {"type": "fsx_lustre", "mount_dir": "/old", "deployment_type": "SCRATCH_2", "storage_capacity": 2400},
            {"type": "fsx_openzfs", "mount_dir": "/zfs", "volume_id": "fsvol-0a1b2c3d4e5f60001"},
            {"type": "ebs", "mount_dir": "/apps", "size": 100},
        ]
    ),
    max_size=4,
    unique_by=lambda item: (dict(item)["type"], "file_system_id" in dict(item)),
)


@given(
    cluster=st.from_regex(r"[a-zA-Z][a-zA-Z0-9-]{0,11}", fullmatch=True),
    given_queues=st.lists(queues(), min_size=1, max_size=4, unique_by=lambda item: item["name"]),
    shared_storage=storage,
    actions=st.sampled_from([{}, {"custom_actions": MORE["trn1_dynamic"]["custom_actions"]}]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "ephemeral_dir": st.just("/local_scratch"),
            "ssm_access": st.booleans(),
            "accounting": st.just(MORE["accounting"]["accounting"] | {"user_name": "slurm"}),
            "login_nodes": st.just([{"count": 2}]),
            "monitoring": st.fixed_dictionaries({"dashboard": st.booleans(), "alarms": st.booleans()}),
            "tags": st.dictionaries(st.sampled_from(["team", "cost"]), st.text("abc", max_size=5)),
            "scaledown_idletime": st.integers(-1, 60),
            "custom_slurm_settings": st.just({"MessageTimeout": 60}),
        },
    ),
)
@settings(max_examples=40, deadline=None)
def test_every_configuration_from_valid_variables_is_clean(
    cluster: str,
    given_queues: list[dict[str, Any]],
    shared_storage: list[dict[str, Any]],
    actions: dict[str, Any],
    options: dict[str, Any],
) -> None:
    variables = {**ACCOUNT, "queues": given_queues, "shared_storage": shared_storage, **actions, **options}
    assert not findings_of(render(variables), cluster, variables)
