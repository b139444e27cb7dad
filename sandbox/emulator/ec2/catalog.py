"""Images and the SSM parameters that name them: stand-ins for AWS's Deep Learning AMIs for Neuron, and Ubuntu."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from sandbox.emulator.ec2 import eks_images

# The list of images in moto's own form.
IMAGES = Path(__file__).with_name("images.json")
PREFIX = "/aws/service/neuron/dlami"
# SSM parameter below the prefix -> image id; only the latest images have one.
PARAMETERS = {
    "base/ubuntu-24.04": "ami-0b5e2404000000001",
    "multi-framework/ubuntu-24.04": "ami-0d1a2404000000002",
    "base/amazon-linux-2023": "ami-0b5e2023000000003",
}
UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
PREFIXES = (PREFIX, UBUNTU, eks_images.PARAMETERS)
ROOT_SIZE = 40  # GiB
# Beginnings of the names of AWS's managed policies that clusters, their functions and image builds use.
POLICIES = (
    *("AmazonEC2", "AmazonS3", "AmazonSSM", "AWSLambda", "CloudWatchAgent", "EC2InstanceProfile"),
    *("AmazonFSx", "AmazonEKS"),
)


def prepare() -> None:
    """Set what moto reads when it is imported: the list of images and its own validation."""
    os.environ.setdefault("MOTO_AMIS_PATH", str(IMAGES))
    os.environ.setdefault("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "true")
    os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")


def _block_devices(self: Any) -> list[dict[str, Any]]:
    ebs = {
        "SnapshotId": self.ebs_snapshot.id,
        "VolumeSize": ROOT_SIZE,
        "VolumeType": "gp3",
        "DeleteOnTermination": True,
        "Encrypted": False,
    }
    return [{"DeviceName": self.root_device_name, "Ebs": ebs}]


def install() -> None:
    """Give the images a root volume, answer for their SSM parameters, and keep the policies that nodes may have."""
    import moto.iam.models as iam
    import moto.ssm.models as ssm
    from moto.ec2.models.amis import AMIS, Ami

    AMIS.extend(eks_images.records())
    Ami.block_device_mappings = property(_block_devices)
    # All of them take a second at each reset.
    policies = json.loads(iam.aws_managed_policies_data)
    kept = {name: policy for name, policy in policies.items() if name.startswith(POLICIES)}
    iam.aws_managed_policies_data = json.dumps(kept)
    policies_of = iam.IAMBackend._init_aws_policies
    # moto looks for every caller in every partition, and so makes them all.
    iam.IAMBackend._init_aws_policies = lambda self: policies_of(self) if self.partition == "aws" else []
    stock = ssm.ParameterDict._check_loading_status
    parameters = {f"{PREFIX}/{path}/latest/image_id": image_id for path, image_id in PARAMETERS.items()}
    parameters[UBUNTU] = "ami-0ab42404000000001"
    parameters.update(eks_images.parameters())

    def check(self: Any, key: Any) -> None:
        name = str(key or "")
        if any(name.startswith(one) or (name.startswith("/") and one.startswith(name)) for one in PREFIXES):
            for parameter, value in parameters.items():
                if not dict.__contains__(self, parameter):
                    dict.__setitem__(self, parameter, [_parameter(ssm, self.account_id, parameter, value)])
        stock(self, key)

    ssm.ParameterDict._check_loading_status = check


def _parameter(ssm: Any, account: str, name: str, value: str) -> Any:
    return ssm.Parameter(
        account_id=account,
        name=name,
        value=value,
        parameter_type="String",
        description="",
        allowed_pattern=None,
        keyid=None,
        last_modified_date=0,
        version=1,
        data_type="text",
        tier="Standard",
        policies=None,
    )
