"""Ways to break a sound configuration of ParallelCluster, the preset ``trn1``, and what is to be said about each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.pcluster.pcluster_samples import GROUP, OTHER, PRIVATE, RESERVATION, SCRIPT

Configuration = dict[str, Any]
Break = Callable[[Configuration], Any]
QUEUE = "Scheduling/SlurmQueues/0"
RESOURCE = f"{QUEUE}/ComputeResources/0"


def put(path: str, value: Any) -> Break:
    """Set the key at the end of a path; None removes it."""

    def change(configuration: Configuration) -> None:
        *way, last = path.split("/")
        place: Any = configuration
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if value is None:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value

    return change


def add(path: str, *items: Any) -> Break:
    """Append to the list at the end of a path."""

    def change(configuration: Configuration) -> None:
        place: Any = configuration
        for step in path.split("/"):
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, [])
        place.extend(items)

    return change


def several(*changes: Break) -> Break:
    def change(configuration: Configuration) -> None:
        for one in changes:
            one(configuration)

    return change


def efs(mount_dir: str, name: str = "more", **settings: Any) -> Configuration:
    settings = settings or {"FileSystemId": "fs-0a1b2c3d4e5f60001"}
    return {"Name": name, "StorageType": "Efs", "MountDir": mount_dir, "EfsSettings": settings}


def lustre(name: str = "fsx", **settings: Any) -> Configuration:
    full = {"StorageCapacity": 1200, "DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, **settings}
    shown = {key: value for key, value in full.items() if value is not None}
    return {"Name": name, "StorageType": "FsxLustre", "MountDir": "/fsx", "FsxLustreSettings": shown}


def queue(number: int) -> Configuration:
    return {
        "Name": f"q{number}",
        "ComputeResources": [{"Name": "cpu", "InstanceType": "m5.xlarge"}],
        "Networking": {"SubnetIds": [PRIVATE]},
    }


def resource(number: int) -> Configuration:
    return {"Name": f"cpu{number}", "InstanceType": "m5.xlarge"}


BLOCK = several(
    put(f"{QUEUE}/CapacityType", "CAPACITY_BLOCK"),
    put(f"{QUEUE}/Networking/PlacementGroup/Enabled", False),
    put(f"{RESOURCE}/MinCount", 2),
)
RESERVED = put(f"{RESOURCE}/CapacityReservationTarget", {"CapacityReservationId": RESERVATION})
DATABASE = {
    "Uri": "db.example.com:3306",
    "UserName": "slurm",
    "PasswordSecretArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:slurm-a1b2c3",
}

# What is done to a sound configuration, the key, and words of the sentence.
BROKEN: dict[str, tuple[Break, str, str]] = {
    # names
    "queue name in capitals": (put(f"{QUEUE}/Name", "Compute_1"), f"{QUEUE}/Name", "lower-case letters"),
    "queue name too long": (put(f"{QUEUE}/Name", "q" * 26), f"{QUEUE}/Name", "at most 25"),
    "queue name reserved": (put(f"{QUEUE}/Name", "default"), f"{QUEUE}/Name", "reserved by Slurm"),
    "resource name with a digit first": (put(f"{RESOURCE}/Name", "1trn"), f"{RESOURCE}/Name", "begins with a letter"),
    "queue twice": (add("Scheduling/SlurmQueues", queue(1), queue(1)), "Scheduling/SlurmQueues/2/Name", "taken by"),
    "resource twice": (
        add(f"{QUEUE}/ComputeResources", {"Name": "trn1", "InstanceType": "m5.xlarge"}),
        f"{QUEUE}/ComputeResources/1/Name",
        "taken by",
    ),
    "host name too long": (
        several(put(f"{QUEUE}/Name", "q" * 25), put(f"{RESOURCE}/Name", "r" * 22)),
        f"{RESOURCE}/Name",
        "shorten the names of cluster, queue and compute resource by 4",
    ),
    # numbers
    "too many queues": (
        add("Scheduling/SlurmQueues", *map(queue, range(50))),
        "Scheduling/SlurmQueues",
        "there are 51 queues",
    ),
    "too many compute resources": (
        add(f"{QUEUE}/ComputeResources", *map(resource, range(50))),
        "Scheduling/SlurmQueues",
        "there are 51 compute resources",
    ),
    "no compute resource": (put(f"{QUEUE}/ComputeResources", []), f"{QUEUE}/ComputeResources", "no compute resource"),
    "MinCount above MaxCount": (put(f"{RESOURCE}/MinCount", 3), f"{RESOURCE}/MinCount", "lower MinCount"),
    "MinCount below 0": (put(f"{RESOURCE}/MinCount", -1), f"{RESOURCE}/MinCount", "set it to 0 or more"),
    "no nodes": (put(f"{RESOURCE}/MaxCount", 0), f"{RESOURCE}/MaxCount", "never run a job"),
    "too many tags": (
        put("Tags", [{"Key": f"k{number}", "Value": "v"} for number in range(41)]),
        "Tags",
        "there are 41 tags",
    ),
    "tag twice": (put("Tags", [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]), "Tags/1/Key", "taken by"),
    "reserved tag": (put("Tags", [{"Key": "aws:name", "Value": "1"}]), "Tags/0/Key", "reserved"),
    # EFA, placement, reservations
    "EFA over two subnets": (
        put(f"{QUEUE}/Networking/SubnetIds", [PRIVATE, OTHER]),
        f"{QUEUE}/Networking/SubnetIds",
        "does not cross a zone",
    ),
    "a new file system in two zones": (
        several(
            add("SharedStorage", lustre()),
            add("Scheduling/SlurmQueues", {**queue(2), "Networking": {"SubnetIds": [OTHER]}}),
        ),
        "SharedStorage/1",
        "only where all nodes are in one subnet",
    ),
    "EFA on a type without": (
        put(f"{RESOURCE}/InstanceType", "trn1.2xlarge"),
        f"{RESOURCE}/Efa/Enabled",
        "trn1.2xlarge has no EFA",
    ),
    "GPUDirect without EFA": (put(f"{RESOURCE}/Efa", {"GdrSupport": True}), f"{RESOURCE}/Efa/GdrSupport", "needs EFA"),
    "EFA without a word on placement": (
        put(f"{QUEUE}/Networking/PlacementGroup", None),
        f"{QUEUE}/Networking/PlacementGroup",
        "is missing; with EFA",
    ),
    "placement group beside a reservation of AWS": (
        several(put(f"{RESOURCE}/InstanceType", "p4de.24xlarge"), RESERVED),
        f"{QUEUE}/Networking/PlacementGroup/Enabled",
        f"the reservation {RESERVATION} is one that AWS makes",
    ),
    "placement group named and off": (
        put(f"{QUEUE}/Networking/PlacementGroup", {"Enabled": False, "Name": "group"}),
        f"{QUEUE}/Networking/PlacementGroup/Enabled",
        "named and switched off",
    ),
    "Capacity Block without a reservation": (
        BLOCK,
        f"{RESOURCE}/CapacityReservationTarget/CapacityReservationId",
        "is missing; a Capacity Block",
    ),
    "Capacity Block of a changing size": (
        several(BLOCK, RESERVED, put(f"{RESOURCE}/MinCount", 1)),
        f"{RESOURCE}/MinCount",
        "MinCount and MaxCount are equal",
    ),
    "Capacity Block with a placement group": (
        several(BLOCK, RESERVED, put(f"{QUEUE}/Networking/PlacementGroup/Enabled", True)),
        f"{QUEUE}/Networking/PlacementGroup/Enabled",
        "has its own placement",
    ),
    "spot with a reservation": (
        several(RESERVED, put(f"{QUEUE}/CapacityType", "SPOT")),
        f"{QUEUE}/CapacityType",
        "never use a reservation",
    ),
    "reservation without an id's form": (
        put(f"{RESOURCE}/CapacityReservationTarget", {"CapacityReservationId": "training"}),
        f"{RESOURCE}/CapacityReservationTarget/CapacityReservationId",
        "no reservation's id",
    ),
    "group of another region": (
        put(
            f"{QUEUE}/CapacityReservationTarget",
            {"CapacityReservationResourceGroupArn": GROUP.replace("us-west-2", "us-east-1")},
        ),
        f"{QUEUE}/CapacityReservationTarget/CapacityReservationResourceGroupArn",
        "the group is in us-east-1",
    ),
    "group that is none": (
        put(f"{QUEUE}/CapacityReservationTarget", {"CapacityReservationResourceGroupArn": "training"}),
        f"{QUEUE}/CapacityReservationTarget/CapacityReservationResourceGroupArn",
        "no resource group's ARN",
    ),
    # what Neuron runs on
    "Neuron on Rocky 9": (put("Image/Os", "rocky9"), "Image/Os", "does not run on rocky9; use ubuntu2404"),
    "Neuron on RHEL 8": (put("Image/Os", "rhel8"), "Image/Os", "does not run on rhel8"),
    "Neuron on Amazon Linux": (put("Image/Os", "alinux2023"), "Image/Os", "pin Neuron SDK 2.28.1"),
    # storage
    "mount point with a space": (
        put("SharedStorage/0/MountDir", "/neuron_shared /efs"),
        "SharedStorage/0/MountDir",
        "has a space",
    ),
    "relative mount point": (put("SharedStorage/0/MountDir", "shared"), "SharedStorage/0/MountDir", "write /shared"),
    "mount point of the system": (put("SharedStorage/0/MountDir", "/usr"), "SharedStorage/0/MountDir", "to the system"),
    "mount point twice": (
        add("SharedStorage", efs("/neuron_shared/")),
        "SharedStorage/1/MountDir",
        "is used by shared storage shared as well",
    ),
    "mount points in each other": (
        add("SharedStorage", efs("/neuron_shared/data")),
        "SharedStorage/1/MountDir",
        "lie in each other",
    ),
    "local disks on a mount point": (
        put(f"{QUEUE}/ComputeSettings/LocalStorage/EphemeralVolume/MountDir", "/neuron_shared"),
        f"{QUEUE}/ComputeSettings/LocalStorage/EphemeralVolume/MountDir",
        "is used by shared storage shared as well",
    ),
    "local disks' default on a mount point": (
        add("SharedStorage", efs("/scratch")),
        "HeadNode/LocalStorage/EphemeralVolume/MountDir",
        "/scratch is used by shared storage more",
    ),
    "storage name twice": (add("SharedStorage", efs("/b", "shared")), "SharedStorage/1/Name", "taken by"),
    "storage name too long": (put("SharedStorage/0/Name", "s" * 31), "SharedStorage/0/Name", "at most 30"),
    "EFS settings for FSx": (
        put("SharedStorage/0/StorageType", "FsxLustre"),
        "SharedStorage/0/EfsSettings",
        "for StorageType Efs, and it is FsxLustre",
    ),
    "two new EFS": (add("SharedStorage", efs("/b", Encrypted=True)), "SharedStorage/1", "ParallelCluster makes 1"),
    "EFS id with settings of a new one": (
        put("SharedStorage/0/EfsSettings/FileSystemId", "fs-0a1b2c3d4e5f60001"),
        "SharedStorage/0/EfsSettings",
        "cannot be specified",
    ),
    "throughput without its mode": (
        put("SharedStorage/0/EfsSettings/ThroughputMode", "bursting"),
        "SharedStorage/0/EfsSettings/ThroughputMode",
        "throughput mode",
    ),
    "Lustre of an odd size": (
        add("SharedStorage", lustre(StorageCapacity=2000)),
        "SharedStorage/1/FsxLustreSettings/StorageCapacity",
        "FSx has no 2000 GiB",
    ),
    "Lustre without a size": (
        add("SharedStorage", lustre(StorageCapacity=None)),
        "SharedStorage/1/FsxLustreSettings/StorageCapacity",
        "is missing",
    ),
    "Lustre of another generation's throughput": (
        add("SharedStorage", lustre(PerUnitStorageThroughput=200)),
        "SharedStorage/1/FsxLustreSettings/PerUnitStorageThroughput",
        "125, 250, 500, 1000",
    ),
    "Lustre SCRATCH_2 with throughput": (
        add("SharedStorage", lustre(DeploymentType="SCRATCH_2")),
        "SharedStorage/1/FsxLustreSettings/PerUnitStorageThroughput",
        "only PERSISTENT_1 and PERSISTENT_2",
    ),
    "Lustre PERSISTENT_2 with an import path": (
        add("SharedStorage", lustre(ImportPath="s3://example-bucket")),
        "SharedStorage/1/FsxLustreSettings/ImportPath",
        "use DataRepositoryAssociations",
    ),
    # access
    "ssh from everywhere": (put("HeadNode/Ssh/AllowedIps", "0.0.0.0/0"), "HeadNode/Ssh/AllowedIps", "4294967296 addr"),
    "ssh from more than a private network": (
        put("HeadNode/Ssh/AllowedIps", "10.0.0.0/7"),
        "HeadNode/Ssh/AllowedIps",
        "10.0.0.0/7 is 33554432 addresses of the Internet",
    ),
    "ssh without a word": (put("HeadNode/Ssh/AllowedIps", None), "HeadNode/Ssh/AllowedIps", "is missing"),
    "desktop from everywhere": (put("HeadNode/Dcv", {"Enabled": True}), "HeadNode/Dcv/AllowedIps", "is missing"),
    "script that may not be read": (
        put("HeadNode/CustomActions", {"OnNodeConfigured": {"Script": SCRIPT}}),
        "HeadNode/CustomActions/OnNodeConfigured/Script",
        "may not read",
    ),
    "script over plain http": (
        put(
            f"{QUEUE}/CustomActions",
            {"OnNodeStart": {"Sequence": [{"Script": "http://example.com/a.sh"}]}},
        ),
        f"{QUEUE}/CustomActions/OnNodeStart/Sequence/0/Script",
        "no script's URL",
    ),
    "script without a name": (
        put("HeadNode/CustomActions", {"OnNodeConfigured": {"Script": "s3://example-bucket"}}),
        "HeadNode/CustomActions/OnNodeConfigured/Script",
        "lacks the bucket or the script",
    ),
    # accounting
    "database with a scheme": (
        put("Scheduling/SlurmSettings/Database", {**DATABASE, "Uri": "mysql://db.example.com"}),
        "Scheduling/SlurmSettings/Database/Uri",
        "write host:3306",
    ),
    "secret of another region": (
        put(
            "Scheduling/SlurmSettings/Database",
            {**DATABASE, "PasswordSecretArn": DATABASE["PasswordSecretArn"].replace("west", "east")},
        ),
        "Scheduling/SlurmSettings/Database/PasswordSecretArn",
        "the secret is in us-east-2",
    ),
    "secret of another region, cut short": (
        put(
            "Scheduling/SlurmSettings/Database",
            {**DATABASE, "PasswordSecretArn": "arn:aws:secretsmanager:us-east-2:123456789012"},
        ),
        "Scheduling/SlurmSettings/Database/PasswordSecretArn",
        "the secret is in us-east-2",
    ),
    "two kinds of accounting": (
        put("Scheduling/SlurmSettings", {"Database": DATABASE, "ExternalSlurmdbd": {"Host": "db.example.com"}}),
        "Scheduling/SlurmSettings/Database",
        "keep one of the two",
    ),
    # what is not there, and the schema
    "no subnet of the head node": (
        put("HeadNode/Networking", None),
        "HeadNode/Networking/SubnetId",
        "is missing; name the head node's subnet",
    ),
    "no subnet of a queue": (put(f"{QUEUE}/Networking/SubnetIds", None), f"{QUEUE}/Networking/SubnetIds", "is missing"),
    "subnet twice": (
        put(f"{QUEUE}/Networking/SubnetIds", [PRIVATE, PRIVATE]),
        f"{QUEUE}/Networking/SubnetIds",
        "listed twice",
    ),
    "no operating system": (put("Image/Os", None), "Image/Os", "is missing; name the operating system"),
    "no queues": (put("Scheduling/SlurmQueues", None), "Scheduling/SlurmQueues", "is missing"),
    "no instance type": (put(f"{RESOURCE}/InstanceType", None), f"{RESOURCE}/InstanceType", "name the instance type"),
    "key that there is not": (put("HeadNode/Subnet", "a"), "HeadNode/Subnet", "there is no such key"),
    "operating system that there is not": (put("Image/Os", "alinux2"), "Image/Os", "must be one of"),
    "image's id in the wrong form": (put("Image/CustomAmi", "ami-1"), "Image/CustomAmi", "does not have the form"),
    "text for a number": (put(f"{RESOURCE}/MaxCount", "many"), f"{RESOURCE}/MaxCount", "not a valid integer"),
    "text for a section": (put("Scheduling", "slurm"), "Scheduling", "invalid input type"),
}

# What is done, and the key of the warning.
WARNED: dict[str, tuple[Break, str]] = {
    "small root volume": (
        put(f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size", 200),
        f"{QUEUE}/ComputeSettings/LocalStorage/RootVolume/Size",
    ),
    "EFA left off": (put(f"{RESOURCE}/Efa", None), f"{RESOURCE}/Efa/Enabled"),
    "nodes that are shared": (put(f"{QUEUE}/JobExclusiveAllocation", None), f"{QUEUE}/JobExclusiveAllocation"),
    "old metadata service": (put("Imds/ImdsSupport", "v1.0"), "Imds/ImdsSupport"),
    "metadata for everybody": (put("HeadNode/Imds/Secured", False), "HeadNode/Imds/Secured"),
    "EFS in clear": (put("SharedStorage/0/EfsSettings/Encrypted", None), "SharedStorage/0/EfsSettings/Encrypted"),
    "disk in clear": (
        put("HeadNode/LocalStorage/RootVolume/Encrypted", False),
        "HeadNode/LocalStorage/RootVolume/Encrypted",
    ),
    "no way in": (put("HeadNode/Ssh/KeyName", None), "HeadNode/Ssh/KeyName"),
}
