"""Images and the SSM parameters that name them: stand-ins for AWS's Deep Learning AMIs for Neuron."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

# SSM parameter below /aws/service/neuron/dlami -> (image id, image name).
IMAGES = {
    "base/ubuntu-24.04": ("ami-0b5e2404000000001", "Deep Learning Base Neuron AMI (Ubuntu 24.04)"),
    "multi-framework/ubuntu-24.04": ("ami-0d1a2404000000002", "Deep Learning AMI Neuron (Ubuntu 24.04)"),
    "base/amazon-linux-2023": ("ami-0b5e2023000000003", "Deep Learning Base Neuron AMI (Amazon Linux 2023)"),
}
PREFIX = "/aws/service/neuron/dlami"


def _image(image_id: str, name: str) -> dict[str, Any]:
    """A record in the shape of moto's own list of images."""
    return {
        "ami_id": image_id,
        "name": f"{name} 20261101",
        "description": f"{name}, as the sandbox shows it. Neuron SDK 2.31.1",
        "owner_id": "898082745236",
        "owner_alias": "amazon",
        "public": True,
        "image_location": f"amazon/{name}",
        "image_type": "machine",
        "architecture": "x86_64",
        "state": "available",
        "hypervisor": "xen",
        "virtualization_type": "hvm",
        "root_device_type": "ebs",
        "root_device_name": "/dev/sda1",
        "sriov": "simple",
        "creation_date": "2026-11-01T00:00:00.000Z",
    }


def prepare() -> None:
    """Set what moto reads when it is imported: the list of images and its own validation."""
    folder = tempfile.mkdtemp(prefix="sandbox-images-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "images.json"
    file.write_text(json.dumps([_image(*image) for image in IMAGES.values()]), encoding="utf-8")
    os.environ.setdefault("MOTO_AMIS_PATH", str(file))
    os.environ.setdefault("MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION", "true")


def install() -> None:
    """Answer for the SSM parameters of the images."""
    import moto.ssm.models as ssm

    stock = ssm.ParameterDict._check_loading_status
    parameters = {f"{PREFIX}/{path}/latest/image_id": image_id for path, (image_id, _name) in IMAGES.items()}

    def check(self: Any, key: Any) -> None:
        name = str(key or "")
        if name in parameters and not dict.__contains__(self, name):
            parameter = ssm.Parameter(
                account_id=self.account_id,
                name=name,
                value=parameters[name],
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
            dict.__setitem__(self, name, [parameter])
        stock(self, key)

    ssm.ParameterDict._check_loading_status = check
