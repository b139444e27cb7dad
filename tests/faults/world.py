"""An account of the emulator with a cluster and with what belongs to others, and the playbooks that work on it.

Without hosts: network.yml and compute.yml make what costs money, and teardown.yml deletes it. ``census`` is all that an
account has, by which a run is judged.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from tests.contract.conftest import CREDENTIALS, REGION, REPOSITORY, Api, client, controller_environment
from tests.contract.warm_python import PCLUSTER, warm_ansible, warm_python

Item = dict[str, Any]
Census = dict[str, set[str]]
NAME, OWNER = "bert", "me"
LONGEST = 900.0  # seconds of a run
BACKENDS = ("ec2", "pcluster", "eks")
MAKE, DELETE = ("network", "compute"), ("teardown",)
COMMANDS = Path(sys.executable).parent
# EC2 shows these for a while, and nobody pays for them.
GONE = ("terminated", "deleted", "failed", "cancelled", "expired", "DELETE_COMPLETE")


class Run(NamedTuple):
    """A playbook that has ended, or was ended."""

    code: int
    output: str
    seconds: float
    killed: bool = False

    @property
    def sentence(self) -> str:
        """What it said when it failed, in one line."""
        return " ".join(self.output.split())[-1500:]


class World:
    """One account, one backend."""

    def __init__(self, backend: str, folder: Path, nodes: int = 2) -> None:
        self.backend, self.folder = backend, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.api = Api(0.3)
        # That of whoever runs the playbooks.
        self.access_key = CREDENTIALS["AWS_ACCESS_KEY_ID"]
        if not (folder / "lab").exists():
            key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(folder / "lab")]
            subprocess.run(key, check=True)
        self.variables: Item = {
            "trainium_cluster_name": NAME,
            "trainium_backend": backend,
            "trainium_region": REGION,
            "trainium_node_count": nodes,
            "trainium_owner": OWNER,
            "teardown_keep_logs": False,
            "trainium_ssh_private_key_file": str(folder / "lab"),
            "trainium_report_dir": str(folder / "reports"),
            "network_address_service": f"{self.api.url}/sandbox-api/address",
            "ansible_python_interpreter": warm_python(),
        }
        if backend == "pcluster":
            self.variables.update(
                parallelcluster_python=warm_python(*PCLUSTER),
                parallelcluster_cache=str(folder / "cache"),
                # They belong to pcluster, and cost seconds.
                parallelcluster_suppress_validators=["ALL"],
                parallelcluster_keep_logs=False,
            )
        self._numbers = itertools.count(1)
        self._ended = threading.Event()
        self._boots = threading.Thread(target=self._boot, daemon=True)
        self._boots.start()
        self._others: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        self._ended.set()
        self._boots.join()
        self.api.stop()

    # --- the account ---

    def empty(self) -> None:
        """An account with nothing but what others have in it."""
        self.api.reset()
        (self.folder / "known_hosts").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "reports", ignore_errors=True)
        tags = [{"Key": "trainium:cluster", "Value": f"{NAME}-2"}, {"Key": "Name", "Value": NAME}]

        def tagged(kind: str) -> Any:
            return [{"ResourceType": kind, "Tags": tags}]

        ec2 = self.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=tagged("vpc"))["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20", TagSpecifications=tagged("subnet"))["Subnet"]
        ec2.create_security_group(
            GroupName=NAME, Description="x", VpcId=vpc, TagSpecifications=tagged("security-group")
        )
        ec2.create_placement_group(GroupName="other", Strategy="cluster", TagSpecifications=tagged("placement-group"))
        ec2.create_key_pair(KeyName=f"{NAME}-2", TagSpecifications=tagged("key-pair"))
        ec2.allocate_address(Domain="vpc", TagSpecifications=tagged("elastic-ip"))
        ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1, TagSpecifications=tagged("volume"))
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        ec2.run_instances(
            ImageId=image,
            InstanceType="t3.micro",
            MinCount=1,
            MaxCount=1,
            NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet["SubnetId"]}],
            TagSpecifications=tagged("instance"),
        )
        self.client("iam").create_role(RoleName=f"{NAME}-admin", AssumeRolePolicyDocument="{}")
        self.client("ssm").put_parameter(Name=f"/trainium/{NAME}-2/lease", Value="free", Type="String")
        self.client("logs").create_log_group(logGroupName=f"/aws/eks/{NAME}-2/cluster")
        self.client("s3").create_bucket(
            Bucket=f"trainium-{NAME}-2", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        self.client("s3").put_object(Bucket=f"trainium-{NAME}-2", Key="checkpoints/1", Body=b"theirs")
        self.settled()
        self._others = self._everything()
        self.api.clear_calls()

    def client(self, service: str) -> Any:
        return client(service, self.api.url)

    def census(self) -> Census:
        """Kind -> ids of what there is and is not gone."""
        return {kind: set(found) for kind, found in self._everything().items() if found}

    def _everything(self) -> dict[str, dict[str, Any]]:
        """Kind -> id -> how AWS describes what there is and is not gone."""
        return {**self._of_ec2(), **self._of_others()}

    def _of_ec2(self) -> dict[str, dict[str, Any]]:
        ec2 = self.client("ec2")
        instances = [one for found in ec2.describe_instances()["Reservations"] for one in found["Instances"]]
        every = {"instances": {one["InstanceId"]: one for one in instances if one["State"]["Name"] not in GONE}}
        for kind, answer, key in (
            ("vpcs", "Vpcs", "VpcId"),
            ("subnets", "Subnets", "SubnetId"),
            ("route_tables", "RouteTables", "RouteTableId"),
            ("internet_gateways", "InternetGateways", "InternetGatewayId"),
            ("nat_gateways", "NatGateways", "NatGatewayId"),
            ("vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
            ("security_groups", "SecurityGroups", "GroupId"),
            ("network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
            ("addresses", "Addresses", "AllocationId"),
            ("volumes", "Volumes", "VolumeId"),
            ("key_pairs", "KeyPairs", "KeyPairId"),
            ("launch_templates", "LaunchTemplates", "LaunchTemplateId"),
            ("placement_groups", "PlacementGroups", "GroupId"),
            ("capacity_reservations", "CapacityReservations", "CapacityReservationId"),
        ):
            found = getattr(ec2, f"describe_{kind}")()[answer]
            every[kind] = {one[key]: one for one in found if str(one.get("State", "")).lower() not in GONE}
        return every

    def _of_others(self) -> dict[str, dict[str, Any]]:
        iam, eks, s3 = self.client("iam"), self.client("eks"), self.client("s3")
        roles, profiles = iam.list_roles()["Roles"], iam.list_instance_profiles()["InstanceProfiles"]
        buckets = [one["Name"] for one in s3.list_buckets()["Buckets"]]
        stacks = self.client("cloudformation").describe_stacks()["Stacks"]
        parameters = self.client("ssm").describe_parameters(
            ParameterFilters=[{"Key": "Name", "Option": "BeginsWith", "Values": ["/trainium"]}]
        )["Parameters"]
        log_groups = self.client("logs").describe_log_groups()["logGroups"]
        clusters = eks.list_clusters()["clusters"]
        return {
            "roles": {
                name: [
                    iam.get_role(RoleName=name)["Role"],
                    iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"],
                    iam.list_role_policies(RoleName=name)["PolicyNames"],
                ]
                for name in (one["RoleName"] for one in roles if "aws-service-role" not in one["Path"])
            },
            "profiles": {one["InstanceProfileName"]: one for one in profiles},
            "stacks": {one["StackName"]: one for one in stacks if one["StackStatus"] not in GONE},
            # ParallelCluster makes one for all clusters of a region.
            "buckets": {
                name: s3.list_objects_v2(Bucket=name).get("Contents", [])
                for name in buckets
                if not name.endswith("-do-not-delete")
            },
            "parameters": {one["Name"]: one for one in parameters},
            "logs": {one["logGroupName"]: one for one in log_groups},
            "tables": dict.fromkeys(self.client("dynamodb").list_tables()["TableNames"]),
            "zones": {one["Id"]: one for one in self.client("route53").list_hosted_zones()["HostedZones"]},
            "functions": {one["FunctionName"]: one for one in self.client("lambda").list_functions()["Functions"]},
            "clusters": {name: eks.describe_cluster(name=name)["cluster"] for name in clusters},
            "node_groups": {
                f"{name}/{group}": eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
                for name in clusters
                for group in eks.list_nodegroups(clusterName=name)["nodegroups"]
            },
            "file_systems": {
                one["FileSystemId"]: one for one in self.client("efs").describe_file_systems()["FileSystems"]
            },
        }

    def _beside(self) -> Census:
        """What there is beside that of others."""
        return {kind: names - set(self._others.get(kind, {})) for kind, names in self.census().items()}

    def ours(self) -> dict[str, int]:
        """Kind -> how many there are beside those of others."""
        return {kind: len(names) for kind, names in self._beside().items() if names}

    def left(self) -> list[str]:
        """The names of what there is beside that of others."""
        return [f"{kind} {name}" for kind, names in self._beside().items() for name in names]

    def touched(self) -> list[str]:
        """What others had and have no longer, or have otherwise."""
        now = self._everything()
        return sorted(
            f"{kind} {name}"
            for kind, known in self._others.items()
            for name, one in known.items()
            if name not in now[kind] or now[kind][name] != one
        )

    def settled(self, seconds: float = 20) -> None:
        """Wait until nothing changes by itself any more, as interfaces that stay a second longer."""
        until, before = time.monotonic() + seconds, self._everything()
        while time.monotonic() < until:
            time.sleep(1.2)
            now = self._everything()
            if now == before:
                return
            before = now

    def _boot(self) -> None:
        """As instances do, which write to their consoles."""
        written: set[str] = set()
        while not self._ended.wait(0.5):
            with contextlib.suppress(OSError, ValueError, BotoCoreError, ClientError):
                for host in self.api.control("GET", "hosts"):
                    if host["instance_id"] not in written:
                        written.add(host["instance_id"])
                        self.api.boots(host["instance_id"])

    # --- playbooks ---

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Ansible's commands, with the collection's own configuration."""
        standins = REPOSITORY / "sandbox/standins/controller"
        return controller_environment(
            self.api.url,
            AWS_ACCESS_KEY_ID=self.access_key,
            ANSIBLE_NOCOLOR="1",
            TRAINIUM_KNOWN_HOSTS=str(self.folder / "known_hosts"),
            # kubectl's tokens come from the stand-in of the AWS CLI.
            PATH=f"{standins}:{COMMANDS}:{os.environ.get('PATH', '')}",
        )

    def given(self, **more: Any) -> list[str]:
        """What Ansible's commands are told of the cluster: the collection's own inventory, and variables."""
        variables = json.dumps({**self.variables, **more})
        return ["--inventory", str(REPOSITORY / "inventory/nodes.yml"), "--extra-vars", variables]

    def start(self, playbooks: Sequence[str], log: Path, **more: Any) -> subprocess.Popen[bytes]:
        """Start ansible-playbook with these playbooks and further variables."""
        paths = [str(REPOSITORY / f"playbooks/{name}.yml") for name in playbooks]
        with log.open("wb") as stream:
            return subprocess.Popen(
                [str(warm_ansible() / "ansible-playbook"), *self.given(**more), *paths],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def run(
        self,
        playbooks: Sequence[str],
        kill: Callable[[float], bool] | None = None,
        whole: bool = True,
        after: float = 0,
        **more: Any,
    ) -> Run:
        """Run playbooks to their end, or until ``kill`` says so of the seconds since the start.

        They begin ``after`` some seconds, with further variables. When it says so, the process of ansible-playbook is
        gone at once; with ``whole`` all that it had started as well, as where the machine dies.
        """
        time.sleep(after)
        log = self.folder / f"run-{next(self._numbers)}.log"
        started = time.monotonic()
        process = self.start(playbooks, log, **more)
        killed = False
        while process.poll() is None:
            now = time.monotonic() - started
            if now > LONGEST or (kill and kill(now)):
                killed = True
                if whole or now > LONGEST:
                    end(log)
                process.kill()
                process.wait()
            else:
                time.sleep(0.02)
        seconds = time.monotonic() - started
        output = log.read_text(errors="replace")
        if seconds > LONGEST:
            raise AssertionError(f"{' and '.join(playbooks)} did not end: {output[-1500:]}")
        return Run(process.returncode, output, seconds, killed)


def end(log: Path) -> None:
    """Kill all that writes to a log and all that it has started, also what these start meanwhile."""
    while found := descendants(log):
        for number in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.02)


def descendants(log: Path) -> list[int]:
    """The processes that write to a log, and all that they have started."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z":
                continue
            parents[int(entry.name)] = int(parent)
            if os.readlink(entry / "fd/1") == str(log):
                found.add(int(entry.name))
    grown = True
    while grown:
        more = {child for child, parent in parents.items() if parent in found and child not in found}
        found |= more
        grown = bool(more)
    return sorted(found)
