"""What is just sound, and what just is not: the rules at their limits, and their exceptions."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.rules import lint
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.lint.view import View

from tests.unit.pcluster.lint.pcluster_broken import (
    BLOCK,
    DATABASE,
    QUEUE,
    RESERVED,
    RESOURCE,
    Break,
    add,
    efs,
    lustre,
    put,
    queue,
    resource,
    several,
)
from tests.unit.pcluster.pcluster_samples import GROUP, OTHER, PRIVATE, RESERVATION, SCRIPT, configuration_of

SETTINGS = "Scheduling/SlurmSettings"


def ebs(number: int, **settings: Any) -> dict[str, Any]:
    return {
        "Name": f"e{number}",
        "StorageType": "Ebs",
        "MountDir": f"/e{number}",
        "EbsSettings": settings or {"Size": 1},
    }


def access(**entry: Any) -> Break:
    return several(
        put("HeadNode/CustomActions", {"OnNodeStart": {"Script": SCRIPT}}),
        put("HeadNode/Iam", {"S3Access": [{"BucketName": "example-bucket", **entry}]}),
    )


def keys(change: Break, name: str = "bert", **view: Any) -> list[str]:
    configuration = configuration_of("trn1")
    change(configuration)
    return sorted({finding.key for finding in lint(View(configuration, name, **view))})


def capacity(size: int, kind: str = "PERSISTENT_2") -> Break:
    throughput = {"PERSISTENT_2": 250, "PERSISTENT_1": 50}.get(kind)
    return add("SharedStorage", lustre(StorageCapacity=size, DeploymentType=kind, PerUnitStorageThroughput=throughput))


SOUND: dict[str, Break] = {
    "names of 25 signs": several(put(f"{QUEUE}/Name", "q" * 25), put(f"{RESOURCE}/Name", "r")),
    "50 queues": add("Scheduling/SlurmQueues", *map(queue, range(49))),
    "50 compute resources": add(f"{QUEUE}/ComputeResources", *map(resource, range(49))),
    "40 tags": put("Tags", [{"Key": f"k{number}", "Value": "v"} for number in range(40)]),
    "tags that begin nearly so": put("Tags", [{"Key": "aws", "Value": "v"}, {"Key": "my-aws:x", "Value": "v"}]),
    "a cluster of one node": several(put(f"{RESOURCE}/MaxCount", 1), put(f"{RESOURCE}/MinCount", 1)),
    "one node without EFA": several(put(f"{RESOURCE}/MaxCount", 1), put(f"{RESOURCE}/Efa", None)),
    "two subnets without EFA": several(
        put(f"{QUEUE}/Networking", {"SubnetIds": [PRIVATE, OTHER]}),
        put(f"{RESOURCE}/InstanceType", "m5.xlarge"),
        put(f"{RESOURCE}/Efa", None),
    ),
    "a group of this region": put(f"{QUEUE}/CapacityReservationTarget", {"CapacityReservationResourceGroupArn": GROUP}),
    "a group where no region is known": several(
        put("Region", None), put(f"{QUEUE}/CapacityReservationTarget", {"CapacityReservationResourceGroupArn": GROUP})
    ),
    "on demand with a reservation": RESERVED,
    "spot without one": put(f"{QUEUE}/CapacityType", "SPOT"),
    "a Capacity Block": several(BLOCK, RESERVED),
    "a Capacity Block without a word on placement": several(
        BLOCK, RESERVED, put(f"{QUEUE}/Networking/PlacementGroup", None)
    ),
    "a placement group by its name": put(f"{QUEUE}/Networking/PlacementGroup", {"Name": "group"}),
    "a placement group of the resource": several(
        put(f"{QUEUE}/Networking/PlacementGroup", None),
        put(f"{RESOURCE}/Networking", {"PlacementGroup": {"Enabled": True}}),
    ),
    "a reserved type that nobody names": several(RESERVED, put(f"{RESOURCE}/InstanceType", None)),
    "a root volume of 512 GiB": put(f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size", 512),
    "a storage's name of 30 signs": put("SharedStorage/0/Name", "s" * 30),
    "five new volumes": several(*(add("SharedStorage", ebs(number)) for number in range(5))),
    "an EFS that is there beside a new one": add("SharedStorage", efs("/b")),
    "20 EFS that are there": add("SharedStorage", *(efs(f"/b{number}", f"b{number}") for number in range(20))),
    "directories side by side": add("SharedStorage", efs("/neuron_shared2")),
    "a directory below one of the system's": add("SharedStorage", efs("/opt/shared")),
    **{f"Lustre of {size} GiB": capacity(size) for size in (1200, 2400, 4800)},
    **{f"a SCRATCH_1 of {size} GiB": capacity(size, "SCRATCH_1") for size in (1200, 2400, 3600, 7200)},
    **{f"a PERSISTENT_1 of {size} GiB": capacity(size, "PERSISTENT_1") for size in (1200, 2400)},
    "Lustre on hard disks": add(
        "SharedStorage",
        lustre(StorageCapacity=6000, DeploymentType="PERSISTENT_1", StorageType="HDD", PerUnitStorageThroughput=12),
    ),
    "a Lustre that is there": several(
        add("SharedStorage", {**lustre(), "FsxLustreSettings": {"FileSystemId": "fs-0a1b2c3d4e5f60001"}}),
        add("Scheduling/SlurmQueues", {**queue(2), "Networking": {"SubnetIds": [OTHER]}}),
    ),
    "a Lustre of a backup": add("SharedStorage", lustre(BackupId="backup-1", StorageCapacity=None)),
    "a volume that says nothing of encryption": add("SharedStorage", ebs(1)),
    "an EFS that is there and in clear": add("SharedStorage", efs("/b")),
    "ssh from a private network": put("HeadNode/Ssh/AllowedIps", "10.0.0.0/8"),
    "ssh from a prefix list": put("HeadNode/Ssh/AllowedIps", "pl-0a1b2c3d4e5f60001"),
    "a desktop for some": put("HeadNode/Dcv", {"Enabled": True, "AllowedIps": "198.51.100.7/32"}),
    "no desktop": put("HeadNode/Dcv", {"Enabled": False}),
    "a script over https": put("HeadNode/CustomActions", {"OnNodeStart": {"Script": "https://example.com/a.sh"}}),
    "a script in the whole bucket": access(),
    "a script in its folder": access(KeyName="scripts/*"),
    "a script that a role may read": several(
        put("HeadNode/CustomActions", {"OnNodeStart": {"Script": SCRIPT}}),
        put("HeadNode/Iam", {"InstanceRole": "arn:aws:iam::123456789012:role/a"}),
    ),
    "a database": put(f"{SETTINGS}/Database", DATABASE),
    "accounting elsewhere": put(f"{SETTINGS}/ExternalSlurmdbd", {"Host": "db.example.com"}),
    "no key and Session Manager": several(
        put("HeadNode/Ssh/KeyName", None),
        put(
            "HeadNode/Iam",
            {"AdditionalIamPolicies": [{"Policy": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}]},
        ),
    ),
    "no key and a profile of one's own": several(
        put("HeadNode/Ssh/KeyName", None), put("HeadNode/Iam", {"InstanceProfile": "arn:aws:iam::1:instance-profile/a"})
    ),
    "an image of one's own without a system": put("Image/CustomAmi", "ami-0a1b2c3d4e5f60004"),
    "ten pools": put("LoginNodes", {"Pools": [{"Name": f"p{number}"} for number in range(10)]}),
    "long names where EC2 makes them": several(
        put(f"{QUEUE}/Name", "q" * 25),
        put(f"{RESOURCE}/Name", "r" * 25),
        put(f"{SETTINGS}/Dns", {"UseEc2Hostnames": True}),
    ),
}
UNSOUND: dict[str, tuple[Break, str]] = {
    "51 compute resources in two queues": (
        several(add(f"{QUEUE}/ComputeResources", *map(resource, range(49))), add("Scheduling/SlurmQueues", queue(2))),
        "Scheduling/SlurmQueues",
    ),
    "41 tags of a queue": (
        put(f"{QUEUE}/Tags", [{"Key": f"k{number}", "Value": "v"} for number in range(41)]),
        f"{QUEUE}/Tags",
    ),
    "a tag of ParallelCluster": (
        put(f"{QUEUE}/Tags", [{"Key": "ParallelCluster:x", "Value": "v"}]),
        f"{QUEUE}/Tags/0/Key",
    ),
    "a root volume of 511 GiB": (
        put(f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size", 511),
        f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size",
    ),
    "a root volume as large as the image": (
        put(f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size", None),
        f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size",
    ),
    "six new volumes": (
        several(*(add("SharedStorage", ebs(number)) for number in range(6))),
        "SharedStorage/6",
    ),
    "21 EFS that are there": (
        add("SharedStorage", *(efs(f"/b{number}", f"b{number}") for number in range(21))),
        "SharedStorage/21",
    ),
    "two new Lustre": (
        add("SharedStorage", lustre(), {**lustre("other"), "MountDir": "/other"}),
        "SharedStorage/2",
    ),
    "Lustre of no size": (capacity(0), "SharedStorage/1/FsxLustreSettings/StorageCapacity"),
    "a PERSISTENT_2 of 3600 GiB": (capacity(3600), "SharedStorage/1/FsxLustreSettings/StorageCapacity"),
    "a SCRATCH_1 of 4800 GiB": (capacity(4800, "SCRATCH_1"), "SharedStorage/1/FsxLustreSettings/StorageCapacity"),
    "Lustre with an export path": (
        add("SharedStorage", lustre(ExportPath="s3://example-bucket")),
        "SharedStorage/1/FsxLustreSettings/ExportPath",
    ),
    "hard disks as fast as others": (
        add("SharedStorage", lustre(DeploymentType="PERSISTENT_1", StorageType="HDD", PerUnitStorageThroughput=50)),
        "SharedStorage/1/FsxLustreSettings/PerUnitStorageThroughput",
    ),
    "a volume in clear": (add("SharedStorage", ebs(1, Encrypted=False)), "SharedStorage/1/EbsSettings/Encrypted"),
    "a queue's disk in clear": (
        put(f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Encrypted", False),
        f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Encrypted",
    ),
    "the name default": (put("SharedStorage/0/Name", "default"), "SharedStorage/0/Name"),
    "a compute resource called default": (put(f"{RESOURCE}/Name", "default"), f"{RESOURCE}/Name"),
    "a directory of ParallelCluster": (put("SharedStorage/0/MountDir", "/opt/slurm/"), "SharedStorage/0/MountDir"),
    "a directory around another": (add("SharedStorage", efs("/a/b"), efs("/a", "a")), "SharedStorage/2/MountDir"),
    "a script beside what may be read": (access(KeyName="other/*"), "HeadNode/CustomActions/OnNodeStart/Script"),
    "a script in another bucket": (access(BucketName="other"), "HeadNode/CustomActions/OnNodeStart/Script"),
    "a script of a pool over ftp": (
        put("LoginNodes", {"Pools": [{"Name": "a", "CustomActions": {"OnNodeStart": {"Script": "ftp://a/b"}}}]}),
        "LoginNodes/Pools/0/CustomActions/OnNodeStart/Script",
    ),
    "a pool open to all": (
        put("LoginNodes", {"Pools": [{"Name": "a", "Ssh": {"AllowedIps": "0.0.0.0/0"}}]}),
        "LoginNodes/Pools/0/Ssh/AllowedIps",
    ),
    "a desktop of a pool": (
        put("LoginNodes", {"Pools": [{"Name": "a", "Dcv": {"Enabled": True}}]}),
        "LoginNodes/Pools/0/Dcv/AllowedIps",
    ),
    "a pool twice": (put("LoginNodes", {"Pools": [{"Name": "a"}, {"Name": "a"}]}), "LoginNodes/Pools/1/Name"),
    "eleven pools": (
        put("LoginNodes", {"Pools": [{"Name": f"p{number}"} for number in range(11)]}),
        "LoginNodes/Pools",
    ),
    "a database with a slash": (
        put(f"{SETTINGS}/Database", {**DATABASE, "Uri": "/db.example.com"}),
        f"{SETTINGS}/Database/Uri",
    ),
    "a key of another kind beside Lustre's": (
        add("SharedStorage", {**efs("/b"), "EbsSettings": {"Size": 1}}),
        "SharedStorage/1/EbsSettings",
    ),
    "a placement group that has an id and is off": (
        put(f"{QUEUE}/Networking/PlacementGroup", {"Enabled": False, "Id": "pg"}),
        f"{QUEUE}/Networking/PlacementGroup/Enabled",
    ),
    "a Capacity Block beside a named placement group": (
        several(BLOCK, RESERVED, put(f"{QUEUE}/Networking/PlacementGroup", {"Name": "group"})),
        f"{QUEUE}/Networking/PlacementGroup/Name",
    ),
    "a Capacity Block of no node": (
        several(BLOCK, RESERVED, put(f"{RESOURCE}/MinCount", 0), put(f"{RESOURCE}/MaxCount", 0)),
        f"{RESOURCE}/MinCount",
    ),
    "a Capacity Block of the queue's group": (
        several(BLOCK, put(f"{QUEUE}/CapacityReservationTarget", {"CapacityReservationResourceGroupArn": GROUP})),
        f"{RESOURCE}/CapacityReservationTarget/CapacityReservationId",
    ),
    "an id with a capital": (
        put(f"{RESOURCE}/CapacityReservationTarget", {"CapacityReservationId": RESERVATION.upper()}),
        f"{RESOURCE}/CapacityReservationTarget/CapacityReservationId",
    ),
    "no head node's type": (put("HeadNode/InstanceType", None), "HeadNode/InstanceType"),
    "no scheduler": (put("Scheduling/Scheduler", None), "Scheduling/Scheduler"),
}


@pytest.mark.parametrize("what", SOUND)
def test_nothing_is_said_of_what_is_just_sound(what: str) -> None:
    assert keys(SOUND[what]) == []


@pytest.mark.parametrize("what", UNSOUND)
def test_what_just_is_not_is_named_by_its_key(what: str) -> None:
    change, key = UNSOUND[what]
    assert key in keys(change)


@pytest.mark.parametrize(("length", "change", "good"), [
    (60, several(), True), (61, several(), False),
    (40, SOUND["a database"], True), (41, SOUND["a database"], False),
    (40, SOUND["accounting elsewhere"], True), (41, SOUND["accounting elsewhere"], False),
])  # fmt: skip
def test_how_long_the_name_of_a_cluster_may_be(length: int, change: Break, good: bool) -> None:
    short = several(change, put(f"{SETTINGS}/Dns", {"UseEc2Hostnames": True}))
    assert keys(short, "b" * length) == ([] if good else ["cluster_name"])


@pytest.mark.parametrize(
    ("counts", "length", "good"),
    [
        # q-dy-r-2.<cluster>.pcluster
        ((0, 2), 45, True),
        ((0, 2), 46, False),
        ((0, 10), 44, True),
        ((0, 10), 45, False),
        ((0, 0), 45, True),
    ],
)
def test_how_long_the_name_of_a_host_may_be(counts: tuple[int, int], length: int, good: bool) -> None:
    names = (("Name", "r"), ("MinCount", counts[0]), ("MaxCount", counts[1]))
    change = several(put(f"{QUEUE}/Name", "q"), *(put(f"{RESOURCE}/{key}", value) for key, value in names))
    assert (f"{RESOURCE}/Name" not in keys(change, "b" * length)) is good


@pytest.mark.parametrize(("minimum", "maximum", "host"), [(0, 4, "dy"), (2, 4, "dy"), (4, 4, "st")])
def test_the_host_name_that_is_too_long_is_shown(minimum: int, maximum: int, host: str) -> None:
    configuration = configuration_of("trn1", min_count=minimum, max_count=maximum)
    (found,) = [one for one in lint(View(configuration, "b" * 60)) if "host name" in one.message]
    assert f"compute1-{host}-trn1-4.bbb" in found.message


def test_who_made_a_reservation_is_believed() -> None:
    by_aws = several(put(f"{RESOURCE}/InstanceType", "p4de.24xlarge"), RESERVED)
    where = [f"{QUEUE}/Networking/PlacementGroup/Enabled"]
    assert keys(by_aws) == where
    assert keys(by_aws, own_reservations=(RESERVATION,)) == []
    assert keys(RESERVED) == []
    assert keys(RESERVED, reservations_of_aws=(RESERVATION,)) == where
