"""Each preset through the role: it has what its reference architecture has, and the real pcluster accepts it.

One play writes all configurations, and one process rehearses them, because starting either costs more than the rest.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.contract.conftest import REPOSITORY, client
from tests.contract.pcluster.rehearsals import ACCEPTED, rehearse
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python
from tests.unit.pcluster.pcluster_samples import ALL_PRESETS, configuration_of

Variables = dict[str, Any]
HOME = "us-west-2"
# Where EC2's offerings have Trainium2.
OTHER = "us-east-2"
REGIONS = {"trn2": OTHER, "capacity_block": OTHER}


class Region:
    """A VPC in a region, with a subnet in every zone, a key and what presets ask for."""

    def __init__(self, site: Any, region: str) -> None:
        self.site, self.region = site, region
        self.ec2 = self.client("ec2")
        vpc = self.ec2.create_vpc(CidrBlock="10.78.0.0/16")["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
        zones = [zone["ZoneName"] for zone in self.ec2.describe_availability_zones()["AvailabilityZones"]]
        self.subnets = {
            zone: str(
                self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.78.{16 * number}.0/20", AvailabilityZone=zone)[
                    "Subnet"
                ]["SubnetId"]
            )
            for number, zone in enumerate(zones)
        }
        key = Path(site.home / "lab.pub").read_bytes()
        self.ec2.import_key_pair(KeyName="presets", PublicKeyMaterial=key)

    def client(self, service: str) -> Any:
        return client(service, self.site.api.url, self.region)

    def zone(self, preset: str) -> str:
        """A zone that offers every type of a preset's nodes."""
        kinds = {
            resource["InstanceType"]
            for queue in configuration_of(preset)["Scheduling"]["SlurmQueues"]
            for resource in queue["ComputeResources"]
        }
        offers = self.ec2.describe_instance_type_offerings(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": sorted(kinds)}]
        )["InstanceTypeOfferings"]
        zones = [{item["Location"] for item in offers if item["InstanceType"] == kind} for kind in kinds]
        return min(set.intersection(*zones))

    def network(self, preset: str) -> Variables:
        subnet = self.subnets[self.zone(preset)]
        return {
            "parallelcluster_region": self.region,
            "parallelcluster_head_subnet_id": subnet,
            "parallelcluster_compute_subnet_id": subnet,
        }

    def image(self) -> Variables:
        wanted = [{"Name": "name", "Values": ["aws-parallelcluster-*-ubuntu-2404-*-x86_64-*"]}]
        return {"parallelcluster_custom_ami": self.ec2.describe_images(Filters=wanted)["Images"][0]["ImageId"]}

    def reserved(self, preset: str, instance_type: str, count: int, **tags: str) -> Any:
        """A reservation in a preset's zone."""
        return self.ec2.create_capacity_reservation(
            InstanceType=instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=self.zone(preset),
            InstanceCount=count,
            InstanceMatchCriteria="targeted",
            TagSpecifications=[
                {
                    "ResourceType": "capacity-reservation",
                    "Tags": [{"Key": key, "Value": value} for key, value in {"Name": preset, **tags}.items()],
                }
            ],
        )["CapacityReservation"]

    def reservation(self, preset: str, instance_type: str, count: int, **tags: str) -> Variables:
        return {
            "parallelcluster_capacity_reservation": {
                "id": self.reserved(preset, instance_type, count, **tags)["CapacityReservationId"]
            }
        }

    def group(self, preset: str, instance_type: str, count: int) -> Variables:
        """A resource group with one reservation in it."""
        groups, name = self.client("resource-groups"), f"group-{preset}"
        generic = [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}]
        groups.create_group(
            Name=name,
            Configuration=[
                {"Type": "AWS::EC2::CapacityReservationPool"},
                {"Type": "AWS::ResourceGroups::Generic", "Parameters": generic},
            ],
        )
        arn = self.reserved(preset, instance_type, count)["CapacityReservationArn"]
        groups.group_resources(Group=name, ResourceArns=[arn])
        return {
            "parallelcluster_capacity_reservation": {
                "resource_group_arn": groups.get_group(Group=name)["Group"]["GroupArn"]
            }
        }


class Queue(NamedTuple):
    """A queue with its one compute resource."""

    name: str
    instance_type: str
    least: int
    greatest: int


class Seed(NamedTuple):
    """What a reference architecture says of a cluster: head node, queues, folders, and where all nodes share files.

    ``storage``: mount directory -> type and size or throughput. ``disk``: where the nodes' own disks are mounted.
    ``scripts``: of head node and queues, with their arguments; that of the role, for document 001's, comes first.
    """

    head: str
    queues: list[Queue]
    storage: Mapping[str, tuple[str, int | None]]
    disk: str | None
    shared: str
    scripts: tuple[str, ...] = ("node.sh",)


# Document 002: an m5.8xlarge, /apps of 200 GiB, FSx for Lustre of 4.8 TiB, /local_scratch, four nodes in the queue. The
# presets for trn2 and Capacity Blocks are the same cluster with other nodes.
TRAINING = {"/apps": ("Ebs", 200), "/fsx": ("FsxLustre", 4800)}
P4DE = Queue("compute-gpu", "p4de.24xlarge", 0, 4)
# Documents 000 and 001 in small.
SMALL = Seed(
    "m5.4xlarge", [Queue("compute1", "trn1.32xlarge", 0, 2)], {"/shared": ("Efs", None)}, "/scratch", "/shared"
)


def training(*queues: Queue) -> Seed:
    return Seed("m5.8xlarge", list(queues), TRAINING, "/local_scratch", "/fsx")


SEEDS = {
    # Document 000, launch.yaml.
    "trn1": Seed(
        "c5.4xlarge",
        [Queue("compute1", "trn1.32xlarge", 0, 2)],
        {"/neuron_shared": ("Efs", 1024)},
        "/scratch",
        "/neuron_shared",
    ),
    # Document 001: 16 dynamic nodes, EFS.
    "trn1_dynamic": Seed(
        "c5.4xlarge", [Queue("compute1", "trn1.32xlarge", 0, 16)], {"/shared": ("Efs", None)}, None, "/shared"
    ),
    "gpu": training(P4DE._replace(instance_type="p4d.24xlarge")),
    "p4de_custom_ami": training(P4DE),
    "p4de_postinstall": training(P4DE)._replace(scripts=("node.sh", "setup.sh docker", "setup.sh pyxis")),
    "p4de_g5_inference": training(P4DE, Queue("inference-gpu", "g5.12xlarge", 0, 4)),
    "trn1_custom_ami": training(Queue("compute-trn1", "trn1.32xlarge", 0, 4)),
    "trn2": training(Queue("compute1", "trn2.48xlarge", 0, 2)),
    "capacity_block": training(Queue("compute1", "trn2.48xlarge", 2, 2)),
    "login_nodes": SMALL,
    "accounting": SMALL,
    "multi_queue": SMALL._replace(
        queues=[*SMALL.queues, Queue("compile", "m5.8xlarge", 0, 4), Queue("debug", "trn1.2xlarge", 0, 2)]
    ),
}


def seen(configuration: Variables, shared: str) -> Seed:
    """What a configuration has of all that."""
    queues, disks = [], set()
    for queue in configuration["Scheduling"]["SlurmQueues"]:
        (one,) = queue["ComputeResources"]
        queues.append(Queue(queue["Name"], one["InstanceType"], one["MinCount"], one["MaxCount"]))
        disks.add(queue["ComputeSettings"]["LocalStorage"].get("EphemeralVolume", {}).get("MountDir"))
    storage = {}
    for item in configuration["SharedStorage"]:
        kind = item["StorageType"]
        sizes = item[f"{kind}Settings"]
        size = sizes.get("Size") or sizes.get("StorageCapacity") or sizes.get("ProvisionedThroughput")
        storage[item["MountDir"]] = (kind, size)
    (disk,) = disks
    nodes = [configuration["HeadNode"], *configuration["Scheduling"]["SlurmQueues"]]
    (scripts,) = {scripts_of(node["CustomActions"]["OnNodeConfigured"]) for node in nodes}
    return Seed(configuration["HeadNode"]["InstanceType"], queues, storage, disk, shared, scripts)


def scripts_of(action: Variables) -> tuple[str, ...]:
    sequence = action.get("Sequence", [action])
    return tuple(" ".join([one["Script"].rpartition("/")[2], *one.get("Args", [])]) for one in sequence)


# The user's own scripts, as this preset takes them.
KINDS = ("head", "compute")
POSTINSTALL = [{"script": "s3://example-bucket/scripts/setup.sh", "args": [name]} for name in ("docker", "pyxis")]


class Written(NamedTuple):
    """What the role wrote for a case, and where the nodes would share files."""

    configuration: Variables
    shared: str


def write(site: Any, folder: Path, cases: dict[str, Variables]) -> dict[str, Written]:
    """The configurations that the role writes for each case, which is variables of the role, by one play."""
    include = {"name": "trainium.cluster.parallelcluster", "tasks_from": "configuration"}
    kept = "{name: [__parallelcluster_config.configuration, trainium_shared_dir]}"
    both = [
        {"name": "Write one", "ansible.builtin.include_role": include},
        {
            "name": "Keep it",
            "ansible.builtin.set_fact": {"all_written": f"{{{{ all_written | default({{}}) | combine({kept}) }}}}"},
        },
    ]
    tasks: list[Variables] = [
        {"name": name, "vars": {"name": name, **variables}, "block": both} for name, variables in cases.items()
    ]
    output = {"content": "{{ all_written | to_json }}", "dest": str(folder / "written.json"), "mode": "0600"}
    play = {
        "name": "Test",
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "roles": [{"role": "trainium.cluster.trainium"}],
        "tasks": [*tasks, {"name": "Hand them over", "ansible.builtin.copy": output}],
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    variables = {
        "ansible_python_interpreter": warm_python(),
        "trainium_cluster_name": "bert",
        "trainium_backend": "pcluster",
        "trainium_key_name": "presets",
        "trainium_ssh_allowed_cidrs": ["198.51.100.7/32"],
        "parallelcluster_python": warm_python(*PCLUSTER),
    }
    (folder / "variables.json").write_text(json.dumps(variables))
    environment = {key: value for key, value in site.variables.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            str(warm_ansible() / "ansible-playbook"),
            *("--inventory", "localhost,", "--extra-vars", f"@{folder / 'variables.json'}", str(folder / "play.yml")),
        ],
        cwd=folder,
        env={**environment, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "written.json").read_text())
    return {name: Written(*found[name]) for name in cases}


def blocks(language: str) -> list[str]:
    """The examples in a language that the documentation has."""
    text = (REPOSITORY / "docs" / "parallelcluster.md").read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


EXAMPLES: list[Variables] = [yaml.safe_load(block) for block in blocks("yaml")]

# Nothing but what was set takes the place of what a preset has, and what a queue says itself wins.
OWN = {"name": "train", "compute_resources": [{"name": "own", "instance_type": "trn1n.32xlarge", "max_count": 3}]}
OTHERS: dict[str, tuple[Variables, list[Queue]]] = {
    "type and number that were set": (
        {"parallelcluster_preset": "gpu", "trainium_instance_type": "p4de.24xlarge", "trainium_node_count": 3},
        [Queue("compute-gpu", "p4de.24xlarge", 0, 3)],
    ),
    "static nodes in another number": (
        {"parallelcluster_preset": "trn1", "trainium_node_count": 3, "parallelcluster_static": True},
        [Queue("compute1", "trn1.32xlarge", 3, 3)],
    ),
    "a queue of one's own": (
        {
            "parallelcluster_preset": "",
            "parallelcluster_configuration": {
                "queues": [OWN],
                "shared_storage": [{"type": "efs", "mount_dir": "/shared"}],
            },
        },
        [Queue("train", "trn1n.32xlarge", 0, 3)],
    ),
    "a number set, and another for the resource": (
        {
            "parallelcluster_preset": "",
            "trainium_instance_type": "trn2.48xlarge",
            "trainium_node_count": 5,
            "parallelcluster_configuration": {
                "queues": [OWN],
                "shared_storage": [{"type": "efs", "mount_dir": "/shared"}],
            },
        },
        [Queue("train", "trn1n.32xlarge", 0, 3)],
    ),
    "data of one's own": (
        {
            "parallelcluster_preset": "trn1",
            "parallelcluster_configuration": {"s3_access": [{"bucket": "example-bucket", "key": "data/*"}]},
        },
        [Queue("compute1", "trn1.32xlarge", 0, 2)],
    ),
    "a resource of the preset changed": (
        {
            "parallelcluster_preset": "p4de_g5_inference",
            "trainium_node_count": 5,
            "parallelcluster_custom_ami": "ami-0a1b2c3d4e5f60004",
            "parallelcluster_configuration": {
                "queues": [{"name": "compute-gpu", "compute_resources": [{"name": "distributed-ml", "max_count": 7}]}]
            },
        },
        [P4DE._replace(greatest=7), Queue("inference-gpu", "g5.12xlarge", 0, 4)],
    ),
}


def account_cases(site: Any) -> dict[str, Variables]:
    """The presets, each with what it needs of the account; all of it exists."""
    home, other = Region(site, HOME), Region(site, OTHER)
    bucket = {"LocationConstraint": HOME}
    home.client("s3").create_bucket(Bucket="example-bucket", CreateBucketConfiguration=bucket)
    home.client("s3").put_object(Bucket="example-bucket", Key="scripts/setup.sh", Body=b"#!/bin/sh\n")
    secret = home.client("secretsmanager").create_secret(Name="slurm", SecretString="not one")["ARN"]
    block = {"aws:ec2capacityreservation:capacityReservationType": "capacity-block"}
    needs: dict[str, Variables] = {
        "p4de_custom_ami": {**home.image(), **home.reservation("p4de_custom_ami", "p4de.24xlarge", 4)},
        "p4de_postinstall": {
            **home.group("p4de_postinstall", "p4de.24xlarge", 4),
            "parallelcluster_configuration": {
                "custom_actions": {kind: {"on_node_configured": POSTINSTALL} for kind in KINDS}
            },
        },
        "p4de_g5_inference": home.image(),
        "trn1_custom_ami": {**home.image(), **home.reservation("trn1_custom_ami", "trn1.32xlarge", 4)},
        "capacity_block": other.reservation("capacity_block", "trn2.48xlarge", 2, **block),
        "accounting": {
            "parallelcluster_configuration": {
                "accounting": {"uri": "db.example.com:3306", "password_secret_arn": secret}
            }
        },
    }

    return {
        preset: {
            "parallelcluster_preset": preset,
            **(other if REGIONS.get(preset) == OTHER else home).network(preset),
            **needs.get(preset, {}),
        }
        for preset in ALL_PRESETS
    }


@pytest.fixture(scope="module")
def written(site: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """What the role writes for each preset and for each other case."""
    cases = account_cases(site)
    network = {key: value for key, value in cases["trn1"].items() if key != "parallelcluster_preset"}
    cases.update({name: {**network, **case} for name, (case, _queues) in OTHERS.items()})
    first = network["parallelcluster_head_subnet_id"]
    (vpc,) = [subnet["VpcId"] for subnet in site.ec2.describe_subnets(SubnetIds=[first])["Subnets"]]
    inside = site.ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
    other = next(subnet["SubnetId"] for subnet in inside if subnet["SubnetId"] != first)
    several = {
        "trainium_subnet_ids": [first, other],
        "parallelcluster_compute_subnet_id": "",
        "parallelcluster_zones": 2,
    }
    cases["two zones"] = {**network, "parallelcluster_preset": "trn1", **several}
    # As they stand, but for the network, which the role would make.
    cases.update({f"example {number}": {**network, **variables} for number, variables in enumerate(EXAMPLES)})
    return write(site, tmp_path_factory.mktemp("presets"), cases)


@pytest.mark.parametrize("preset", ALL_PRESETS)
def test_a_preset_has_what_its_reference_architecture_has(written: dict[str, Written], preset: str) -> None:
    assert seen(*written[preset]) == SEEDS[preset]


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_only_what_was_set_takes_the_place_of_a_preset(written: dict[str, Written], name: str) -> None:
    assert seen(*written[name]).queues == OTHERS[name][1]


def test_nodes_in_two_zones(written: dict[str, Written]) -> None:
    found = seen(*written["two zones"]).queues
    assert found == [Queue(name, "trn1.32xlarge", 0, 2) for name in ("compute1", "compute1-z2")]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_documentation_is_accepted(written: dict[str, Written], number: int) -> None:
    variables, found = EXAMPLES[number], written[f"example {number}"]
    seed = SEEDS[variables.get("parallelcluster_preset", "trn1_dynamic")]
    greatest = variables.get("trainium_node_count", seed.queues[0].greatest)
    own = variables.get("parallelcluster_configuration", {}).get("custom_actions", {}).get("head", {})
    scripts = [
        " ".join([one["script"].rpartition("/")[2], *one.get("args", [])]) for one in own.get("on_node_configured", [])
    ]
    queues = [seed.queues[0]._replace(greatest=greatest), *seed.queues[1:]]
    assert seen(*found) == seed._replace(queues=queues, scripts=("node.sh", *scripts))


def test_the_documentation_shows_presets_scripts_and_own_keys() -> None:
    names = set().union(*EXAMPLES)
    assert {"parallelcluster_preset", "parallelcluster_configuration", "parallelcluster_overrides"} <= names


def test_the_commands_of_the_documentation_are_there() -> None:
    commands = [line for block in blocks("") for line in block.replace("\\\n", "").splitlines()]
    assert commands
    for command in commands:
        if command.startswith("make "):
            done = subprocess.run(
                ["make", "-n", *shlex.split(command, comments=True)[1:]],
                cwd=REPOSITORY,
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, command
            continue
        program, *arguments = shlex.split(command.removeprefix(".venv/bin/python -m sandbox run "), comments=True)
        if program == "ansible":
            namespace, _dot, module = arguments[arguments.index("-m") + 1].rpartition(".")
            assert namespace in ("", "trainium.cluster"), command
            assert not namespace or (REPOSITORY / f"plugins/modules/{module}.py").exists(), command
        else:
            assert program == "ansible-playbook", command
            assert (REPOSITORY / arguments[0]).exists(), command


def test_the_nodes_may_write_into_the_compile_cache_and_nowhere_else(written: dict[str, Written]) -> None:
    data = {"BucketName": "example-bucket", "KeyName": "data/*"}
    for name, own in (("trn1", []), ("data of one's own", [data])):
        (queue,) = written[name].configuration["Scheduling"]["SlurmQueues"]
        bucket = queue["CustomActions"]["OnNodeConfigured"]["Script"].split("/")[2]
        cache = {"BucketName": bucket, "KeyName": "neuron-compile-cache/*", "EnableWriteAccess": True}
        assert queue["Iam"]["S3Access"] == [*own, {"BucketName": bucket}, cache]
    assert "EnableWriteAccess" not in json.dumps(written["gpu"].configuration)


def test_nodes_are_checked_when_a_job_gets_them(written: dict[str, Written]) -> None:
    for one in written.values():
        assert one.configuration["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"] == [
            {"PrologFlags": "ForceRequeueOnFail"}
        ]


def test_nodes_may_read_the_scripts_that_they_run(written: dict[str, Written]) -> None:
    configuration = written["p4de_postinstall"].configuration
    for node in (configuration["HeadNode"], *configuration["Scheduling"]["SlurmQueues"]):
        first, *_own = node["CustomActions"]["OnNodeConfigured"]["Sequence"]
        buckets = {one["BucketName"] for one in node["Iam"]["S3Access"]}
        assert buckets == {"example-bucket", first["Script"].split("/")[2]}


def test_nodes_get_the_time_that_their_roles_need(written: dict[str, Written]) -> None:
    timeouts = written["trn1"].configuration["DevSettings"]["Timeouts"]
    assert timeouts == {"HeadNodeBootstrapTimeout": 7800, "ComputeNodeBootstrapTimeout": 3900}


def test_the_real_pcluster_accepts_every_preset(site: Any, written: dict[str, Written]) -> None:
    requests = []
    names = [*ALL_PRESETS, "two zones"]
    for number, preset in enumerate(names):
        configuration = written[preset].configuration
        if number == 0:
            script = configuration["HeadNode"]["CustomActions"]["OnNodeConfigured"]["Script"]
            bucket, _slash, key = script.removeprefix("s3://").partition("/")
            s3 = site.client("s3")
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": HOME})
            s3.put_object(Bucket=bucket, Key=key, Body=b"#!/bin/sh\n")
        arguments = {
            "cluster_name": f"c{number}",
            "cluster_configuration": configuration,
            "region": configuration["Region"],
        }
        requests.append(("create_cluster", arguments))
    refused = {
        preset: [
            item["message"]
            for item in answer["content"].get("configuration_validation_errors", [answer["content"]])
            if item.get("level", "ERROR") == "ERROR"
        ]
        for preset, answer in zip(names, rehearse(site, requests))
        if answer["code"] != ACCEPTED
    }
    assert refused == {}
