"""What an update would take, as predicted offline, against the real dry run of the update of a real cluster.

The rows are those of the update matrix, each with its changes; the columns are the states of the fleet and the queue
update strategies.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import worker as pcluster_worker
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.impact import (
    plan_impact,
    situation,
)
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.merge import merge

from tests.contract.pcluster.rehearsals import ACCEPTED, REFUSED, rehearse
from tests.unit.pcluster.pcluster_samples import IMAGE, configuration_of

Item = dict[str, Any]
# This one and IMAGE stand for those that the account has.
RESERVATION = {"CapacityReservationId": "cr-0a1b2c3d4e5f60005"}
YES, NO = True, False


def queue(name: str = "compute1", **section: Any) -> Item:
    return {"Scheduling": {"SlurmQueues": [{"Name": name, **section}]}}


def resource(**section: Any) -> Item:
    return queue(ComputeResources=[{"Name": "trn1", **section}])


def root_volume(size: int) -> Item:
    return queue(ComputeSettings={"LocalStorage": {"RootVolume": {"Size": size}}})


# What merging cannot say.


def without_queue(configuration: Item) -> Item:
    kept = [item for item in configuration["Scheduling"]["SlurmQueues"] if item["Name"] != "compile"]
    return {**configuration, "Scheduling": {**configuration["Scheduling"], "SlurmQueues": kept}}


def renamed_queue(configuration: Item) -> Item:
    named = [
        {**item, "Name": "other"} if item["Name"] == "compile" else item
        for item in configuration["Scheduling"]["SlurmQueues"]
    ]
    return {**configuration, "Scheduling": {**configuration["Scheduling"], "SlurmQueues": named}}


def without_lustre(configuration: Item) -> Item:
    kept = [item for item in configuration["SharedStorage"] if item["StorageType"] != "FsxLustre"]
    return {**configuration, "SharedStorage": kept}


NEW_QUEUE = queue(
    "extra",
    ComputeResources=[{"Name": "cpu", "InstanceType": "m5.xlarge", "MinCount": 0, "MaxCount": 1}],
)
POOL = {"Name": "login", "InstanceType": "m5.large", "Count": 1}

# The change, then whether it is allowed with the fleet running (DRAIN, TERMINATE, COMPUTE_FLEET_STOP), and stopped.
MATRIX: dict[str, tuple[Any, tuple[bool, bool, bool, bool]]] = {
    "MaxCount down": (resource(MaxCount=1), (NO, YES, NO, YES)),
    "MinCount up": (resource(MinCount=1), (NO, YES, NO, YES)),
    "queue removed": (without_queue, (NO, YES, NO, YES)),
    "queue renamed": (renamed_queue, (NO, YES, NO, YES)),
    "Efa": (resource(Efa={"Enabled": False}), (YES, YES, NO, YES)),
    "capacity reservation": (resource(CapacityReservationTarget=RESERVATION), (YES, YES, NO, YES)),
    "CustomActions": (
        queue(CustomActions={"OnNodeConfigured": {"Script": "https://example.com/a.sh"}}),
        (YES, YES, NO, YES),
    ),
    "root volume": (root_volume(900), (YES, YES, NO, YES)),
    "queue AMI": (queue(Image={"CustomAmi": IMAGE}), (YES, YES, NO, YES)),
    "FSx removed": (without_lustre, (YES, YES, NO, YES)),
    "compute InstanceType": (resource(InstanceType="trn1.2xlarge"), (NO, NO, NO, YES)),
    "placement group off": (queue(Networking={"PlacementGroup": {"Enabled": False}}), (NO, NO, NO, YES)),
    "ScaledownIdletime": ({"Scheduling": {"SlurmSettings": {"ScaledownIdletime": 3}}}, (NO, NO, NO, YES)),
    "head InstanceType": ({"HeadNode": {"InstanceType": "m5.large"}}, (NO, NO, NO, NO)),
    "Image.CustomAmi": ({"Image": {"CustomAmi": IMAGE}}, (NO, NO, NO, NO)),
    "queue added": (NEW_QUEUE, (YES, YES, YES, YES)),
    "S3Access": ({"HeadNode": {"Iam": {"S3Access": [{"BucketName": "example"}]}}}, (YES, YES, YES, YES)),
    "Tags": ({"Tags": [{"Key": "team", "Value": "a"}]}, (YES, YES, YES, YES)),
    "Alarms": ({"Monitoring": {"Alarms": {"Enabled": False}}}, (YES, YES, YES, YES)),
    "AllowedIps": ({"HeadNode": {"Ssh": {"AllowedIps": "198.51.100.8/32"}}}, (YES, YES, YES, YES)),
    "LoginNodes": ({"LoginNodes": {"Pools": [POOL]}}, (YES, YES, YES, YES)),
    "CustomSlurmSettings": (
        {"Scheduling": {"SlurmSettings": {"CustomSlurmSettings": [{"MessageTimeout": 60}]}}},
        (YES, YES, YES, YES),
    ),
}


@pytest.fixture(scope="module")
def current(site: Any) -> Item:
    """A cluster that runs, and its configuration."""
    configuration = configuration_of(
        "multi_queue",
        key_name="lab",
        head_node={"subnet_id": site.subnets[0], "instance_type": "m5.xlarge"},
        compute_subnet_ids=[site.subnets[0]],
        shared_storage=[{"type": "fsx_lustre", "mount_dir": "/fsx"}, {"type": "efs", "mount_dir": "/shared"}],
    )
    given = ("--cluster-configuration", site.written(configuration), "--suppress-validators", "ALL")
    site.pcluster("create-cluster", "--cluster-name", "demo", *given)
    site.wait("demo", "CREATE_COMPLETE")
    fleet(site, "RUNNING")
    return configuration


def fleet(site: Any, status: str) -> None:
    """Wait until the fleet has a status."""

    def look() -> bool:
        found = site.pcluster("describe-compute-fleet", "--cluster-name", "demo")
        return bool(found.get("status") == status)

    site.until(look)


@pytest.fixture(scope="module")
def reservation(site: Any) -> str:
    made = site.ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=site.zones[0],
        InstanceCount=2,
        InstanceMatchCriteria="targeted",
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def changed_by(site: Any, current: Item, change: Any, reservation: str) -> Item:
    """The changed configuration; new nodes are in the subnet of the others."""
    changed: Item = change(current) if callable(change) else merge(current, change)
    text = json.dumps(changed).replace(RESERVATION["CapacityReservationId"], reservation)
    changed = json.loads(text.replace(IMAGE, site.image))
    subnet = {"SubnetIds": [site.subnets[0]]}
    for item in changed["Scheduling"]["SlurmQueues"]:
        item.setdefault("Networking", subnet)
    for pool in changed.get("LoginNodes", {}).get("Pools", []):
        pool.setdefault("Networking", subnet)
    return changed


def with_strategy(configuration: Item, strategy: str) -> Item:
    return dict(merge(configuration, {"Scheduling": {"SlurmSettings": {"QueueUpdateStrategy": strategy}}}))


def compare(site: Any, current: Item, reservation: str, status: str, columns: dict[str, int]) -> None:
    """Every row: what the matrix says, what is predicted and what the real dry run says are the same.

    ``columns``: the queue update strategies and their columns in the matrix.
    """
    wanted = {what: changed_by(site, current, change, reservation) for what, (change, _allowed) in MATRIX.items()}
    cases = [
        (what, strategy, with_strategy(wanted[what], strategy))
        for what, (_change, allowed) in MATRIX.items()
        for strategy, column in columns.items()
        # Where the strategy makes no difference, one is asked: the strictest if allowed, else the mildest.
        if len({allowed[each] for each in columns.values()}) > 1
        or len(columns) == 1
        or strategy == ("COMPUTE_FLEET_STOP" if allowed[column] else "TERMINATE")
    ]
    common = {"cluster_name": "demo", "region": "us-west-2", "suppress_validators": ["ALL"]}
    requests = [("update_cluster", {**common, "cluster_configuration": changed}) for *_case, changed in cases]
    answers = rehearse(site, requests)
    policies = {
        what: pcluster_worker.update_policies({"current": current, "wanted": changed, "cluster_name": "demo"})
        for what, changed in wanted.items()
    }
    expected, seen = {}, {}
    for (what, strategy, changed), answer in zip(cases, answers):
        assert answer["code"] in (ACCEPTED, REFUSED), (what, answer)
        impact = plan_impact(policies[what], situation(status, current, changed))
        refused = answer["content"].get("update_validation_errors") or []
        real = {item["parameter"].replace(".", "/") for item in refused}
        assert real == {item["key"] for item in impact["changes"] if not item["allowed"]}, (what, strategy, answer)
        allowed = MATRIX[what][1][columns[strategy]]
        expected[what, strategy] = (allowed, allowed)
        seen[what, strategy] = (impact["allowed"], answer["code"] == ACCEPTED)
    assert seen == expected


def test_with_a_running_fleet(site: Any, current: Item, reservation: str) -> None:
    compare(site, current, reservation, "RUNNING", {"DRAIN": 0, "TERMINATE": 1, "COMPUTE_FLEET_STOP": 2})


def test_with_a_stopped_fleet(site: Any, current: Item, reservation: str) -> None:
    site.pcluster("update-compute-fleet", "--cluster-name", "demo", "--status", "STOP_REQUESTED")
    fleet(site, "STOPPED")
    compare(site, current, reservation, "STOPPED", {"COMPUTE_FLEET_STOP": 3})
