"""The real pcluster against the emulated AWS API over HTTP.

``site`` is an empty account with a network, a key and a configuration of a cluster; ``site.pcluster(...)`` runs the
command. An emulator of its own serves each test module, because a cluster takes a while to make.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import CREDENTIALS, REGION, Account, Api
from tests.contract.warm_python import PCLUSTER, warm_python

COMMAND = Path(sys.executable).with_name("pcluster")
Item = dict[str, Any]


class Site(Account):
    """An account whose first subnet is in a zone with trn1, and pcluster in a home of its own."""

    def __init__(self, api: Api, home: Path) -> None:
        super().__init__(api)
        self.home = home
        # That of whoever runs pcluster and the playbooks.
        self.access_key = CREDENTIALS["AWS_ACCESS_KEY_ID"]
        self.ec2.import_key_pair(KeyName="lab", PublicKeyMaterial=_public_key(home))
        self.subnet_id = self.subnets[0]
        api.clear_calls()

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a process that speaks to the emulator."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TRAINIUM_"))}
        path = f"{COMMAND.parent}:{kept.get('PATH', '')}"
        own = {"AWS_ENDPOINT_URL": self.api.url, "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}
        own["AWS_ACCESS_KEY_ID"] = self.access_key
        return {**kept, **CREDENTIALS, **own, "PATH": path, "HOME": str(self.home)}

    # --- pcluster ---

    def configuration(self, **changes: Any) -> Item:
        """A small cluster: one queue of two trn1.32xlarge; ``changes`` replace whole sections."""
        resource = {
            "Name": "trn1",
            "InstanceType": "trn1.32xlarge",
            "MinCount": 0,
            "MaxCount": 2,
            "Efa": {"Enabled": True},
        }
        queue = {
            "Name": "train",
            "ComputeResources": [resource],
            "Networking": {"SubnetIds": [self.subnet_id], "PlacementGroup": {"Enabled": True}},
        }
        return {
            "Region": REGION,
            "Image": {"Os": "ubuntu2404"},
            "HeadNode": {
                "InstanceType": "m5.xlarge",
                "Networking": {"SubnetId": self.subnet_id},
                "Ssh": {"KeyName": "lab"},
            },
            "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [queue]},
            **changes,
        }

    def written(self, configuration: Item) -> str:
        """The path of a configuration file. JSON is YAML."""
        path = self.home / f"cluster-{time.monotonic_ns()}.yaml"
        path.write_text(json.dumps(configuration), encoding="utf-8")
        return str(path)

    def pcluster(self, *arguments: str, code: int | None = 0) -> Any:
        """What pcluster prints, as JSON; the test fails when it ends with another code than ``code`` (None: any)."""
        done = subprocess.run(
            [warm_python(*PCLUSTER), str(COMMAND), *arguments],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def create(self, name: str, *arguments: str, code: int | None = 0, **changes: Any) -> Any:
        """create-cluster without its validators, which cost seconds and are pcluster's own business."""
        path = self.written(self.configuration(**changes))
        common = ("--cluster-configuration", path, "--suppress-validators", "ALL")
        return self.pcluster("create-cluster", "--cluster-name", name, *common, *arguments, code=code)

    def stack(self, name: str) -> Item:
        """The stack, deleted ones by their id."""
        found: Item = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        return found

    def wait(self, name: str, status: str, seconds: float = 300) -> Item:
        """The stack in its final state, which must be ``status``."""

        def ended() -> Item | None:
            stack = self.stack(name)
            return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack

        found: Item = self.until(ended, seconds)
        assert found["StackStatus"] == status, self.reasons(name)
        return found

    def reasons(self, name: str) -> list[str]:
        """What failed, the oldest first."""
        found = self.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
        return [
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
            for event in reversed(found)
            if event["ResourceStatus"].endswith("FAILED")
        ]

    @staticmethod
    def until(look: Callable[[], Any], seconds: float = 300) -> Any:
        """The first answer that is true; looks again and again."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.1)
        return found

    def left(self) -> dict[str, list[str]]:
        """What an account has beyond its network, by kind; empty lists are left out."""
        ec2 = self.ec2
        instances = [i for i in self.instances() if i["State"]["Name"] != "terminated"]
        zones = self.client("route53").list_hosted_zones()["HostedZones"]
        found = {
            "instances": [i["InstanceId"] for i in instances],
            "interfaces": [i["NetworkInterfaceId"] for i in ec2.describe_network_interfaces()["NetworkInterfaces"]],
            "volumes": [i["VolumeId"] for i in ec2.describe_volumes()["Volumes"]],
            "addresses": [i["AllocationId"] for i in ec2.describe_addresses()["Addresses"]],
            "templates": [i["LaunchTemplateName"] for i in ec2.describe_launch_templates()["LaunchTemplates"]],
            "placement groups": [i["GroupName"] for i in ec2.describe_placement_groups()["PlacementGroups"]],
            "groups": [
                i["GroupName"]
                for i in ec2.describe_security_groups()["SecurityGroups"]
                if i["GroupName"] not in ("default", "efa")
            ],
            "tables": self.client("dynamodb").list_tables()["TableNames"],
            "zones": [zone["Name"] for zone in zones],
            "file systems": [i["FileSystemId"] for i in self.client("efs").describe_file_systems()["FileSystems"]]
            + [i["FileSystemId"] for i in self.client("fsx").describe_file_systems()["FileSystems"]],
            "log groups": [i["logGroupName"] for i in self.client("logs").describe_log_groups()["logGroups"]],
            "roles": [i["RoleName"] for i in self.client("iam").list_roles()["Roles"]],
            "profiles": [
                i["InstanceProfileName"] for i in self.client("iam").list_instance_profiles()["InstanceProfiles"]
            ],
            "functions": [i["FunctionName"] for i in self.client("lambda").list_functions()["Functions"]],
            "stacks": [i["StackName"] for i in self.client("cloudformation").describe_stacks()["Stacks"]],
        }
        return {kind: names for kind, names in found.items() if names}


def _public_key(home: Path) -> bytes:
    path = home / "lab"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)]
    subprocess.run(command, check=True)
    return path.with_suffix(".pub").read_bytes()


@pytest.fixture(scope="session", autouse=True)
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The library's templates are packages for node, which unpacks them in every process otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JSII_RUNTIME_PACKAGE_CACHE", "enabled")
        patch.setenv("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(tmp_path_factory.mktemp("packages")))
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An account with a network, for all tests of a module."""
    api = Api(0.3)
    try:
        yield Site(api, tmp_path_factory.mktemp("home"))
    finally:
        api.stop()
