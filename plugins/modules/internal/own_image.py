#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: own_image
version_added: 0.3.0
short_description: Make an AMI of an instance and wait until it is available
description:
  - Has EC2 make an image of an instance that is stopped, with all tags from the beginning, so that it is found whenever
    this is killed; or waits for one that was begun.
  - It takes minutes for each 100 GiB that were written. How far the snapshot is is shown.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.aws
attributes:
  check_mode:
    details: Does not wait.
  idempotent:
    support: partial
    details: With O(image_id) nothing is made. A name that is taken is an error.
options:
  image_id:
    description: An image that was begun, which is waited for. Without it one is made.
    type: str
    default: ""
  instance_id:
    description: The instance.
    type: str
    default: ""
  name:
    description: The name of the image.
    type: str
    default: ""
  description:
    description: The description of the image.
    type: str
    default: ""
  tags:
    description: The tags of the image and its snapshots.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait.
    type: int
    default: 7200
"""

EXAMPLES = r"""
- name: Make an image
  trainium.cluster.internal.own_image:
    instance_id: i-0a1b2c3d4e5f60006
    name: trainium-bert-0123456789abcdef
    tags: {"trainium:cluster": bert}
    region: us-west-2
"""

RETURN = r"""
image_id:
  description: The image.
  returned: success
  type: str
encrypted:
  description: Whether all of its snapshots are encrypted.
  returned: success
  type: bool
"""

from collections.abc import Mapping
from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError, unforeseen
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._common.waiting import Pace, looks
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2

# EC2's API reference, Image: states from which none becomes available.
OVER = ("invalid", "deregistered", "failed", "error", "disabled")


def _progress(client: Any, image: dict[str, Any]) -> str:
    """How far the snapshots are, such as ``42%``; '' where EC2 does not name them yet, or does not say."""
    disks = [device["Ebs"].get("SnapshotId") for device in image.get("BlockDeviceMappings") or () if "Ebs" in device]
    names = [disk for disk in disks if disk]
    if not names:
        return ""
    try:
        return ", ".join(one.get("Progress") or "" for one in ec2.describe_snapshots(client, SnapshotIds=names))
    except TrainiumError:
        # Only a comfort.
        return ""


def _request(params: Mapping[str, Any]) -> dict[str, Any]:
    """Of CreateImage. The instance is stopped, so that a reboot would change nothing."""
    tags = tag_list(params["tags"])
    return {
        "InstanceId": params["instance_id"],
        "Name": params["name"],
        "Description": params["description"],
        "NoReboot": True,
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("image", "snapshot")],
    }


def _wait(module: AnsibleAWSModule) -> dict[str, Any]:
    """The image, when it is available. Raises TrainiumError, with its id where it may still become so."""
    client = module.client("ec2")
    identity = module.params["image_id"] or ec2.create_image(client, _request(module.params))
    try:
        return _available(client, identity, 0 if module.check_mode else module.params["timeout"])
    except TrainiumError as error:
        error.details.setdefault("image_id", identity)
        raise


def _available(client: Any, identity: str, timeout: float) -> dict[str, Any]:
    state, progress = "pending", Progress()
    for passed in looks(timeout, Pace(1, 1.5, 15)):
        image = ec2.describe_image(client, identity)
        # EC2 may not show at once what it has just made.
        state = str((image or {}).get("State") or "pending")
        if image and state == "available":
            return image
        if state in OVER:
            reason = ((image or {}).get("StateReason") or {}).get("Message") or "EC2 says no reason"
            raise TrainiumError(f"the image is {state}: {reason}; deregister it and build it again", image_id="")
        note = _progress(client, image or {})
        progress.report("available", 0, 1, [identity], f"{note} of its snapshot, {passed:.0f} s" if note else "")
    raise TrainiumError(
        f"the image is {state} after {timeout} s; run the same again, which waits on, or give more time"
    )


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "image_id": {"type": "str", "default": ""},
            "instance_id": {"type": "str", "default": ""},
            "name": {"type": "str", "default": ""},
            "description": {"type": "str", "default": ""},
            "tags": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 7200},
        },
        supports_check_mode=True,
    )
    params = module.params
    what = params["image_id"] or params["name"]
    if not params["image_id"] and not (params["instance_id"] and params["name"]):
        module.fail_json(
            msg="own_image: there is no image_id, so instance_id and name are needed; give one or the other."
        )
    if not params["image_id"] and module.check_mode:
        module.exit_json(changed=True, image_id="", encrypted=False)
    try:
        image = _wait(module)
    except TrainiumError as error:
        module.fail_json(msg=f"own_image {what}: {error}.", **error.details)
    except Exception as error:
        module.fail_json(msg=f"own_image {what}: {unforeseen(error)}.")
    disks = [device["Ebs"] for device in image.get("BlockDeviceMappings") or () if "Ebs" in device]
    encrypted = bool(disks) and all(disk.get("Encrypted") for disk in disks)
    module.exit_json(changed=not params["image_id"], image_id=image["ImageId"], encrypted=encrypted)


if __name__ == "__main__":
    main()
