#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster_image
version_added: 0.1.0
short_description: Build, delete and list images of AWS ParallelCluster
description:
  - Builds an AMI from which nodes of a cluster start, with the library of AWS ParallelCluster. A build takes the better
    part of an hour.
  - A build is rehearsed first by the library's own dry run.
  - A run that was killed can be repeated. A build or deletion that is under way is waited for.
  - An image that exists is left alone, whatever O(configuration) says. Another image gets another O(image_id).
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.pcluster
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - The library's dry run is asked, but only where the configuration has C(Build/Iam/CleanupLambdaRole). Otherwise
        even the dry run would make a role.
options:
  image_id:
    description:
      - The name of the image. Needed unless O(state=listed).
      - It begins with a letter and has at most 128 letters, digits and hyphens.
    type: str
  state:
    description:
      - V(present) builds the image if there is none of that name.
      - V(absent) deletes it.
      - V(listed) lists the official images and the account's own.
    type: str
    choices: [present, absent, listed]
    default: present
  configuration:
    description:
      - What the image is built from, as ParallelCluster documents it.
      - O(state=present) needs this or O(configuration_file).
    type: dict
  configuration_file:
    description: The path of a YAML file with the configuration.
    type: path
  suppress_validators:
    description: Validators whose findings are ignored, V(type:NAME) each, or V(ALL).
    type: list
    elements: str
    default: []
  validation_failure_level:
    description: From which level a validator's finding is a refusal.
    type: str
    choices: [INFO, WARNING, ERROR]
    default: ERROR
  rollback_on_failure:
    description: Whether a failed build is taken back. V(false) leaves what there is for a look at it.
    type: bool
    default: false
  force:
    description: Whether to delete an image that instances use or that is shared.
    type: bool
    default: false
  os:
    description: List the official images of this operating system only, such as V(ubuntu2404).
    type: str
  architecture:
    description: List the official images of this architecture only.
    type: str
    choices: [x86_64, arm64]
  wait:
    description: Whether to wait until the image is built or deleted.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most.
    type: int
    default: 7200
seealso:
  - module: trainium.cluster.pcluster
"""

EXAMPLES = r"""
- name: Build an image on top of the official one
  trainium.cluster.pcluster_image:
    image_id: trn1-2026-11
    configuration:
      Build:
        InstanceType: trn1.2xlarge
        ParentImage: ami-0a1b2c3d4e5f60001
        Components:
          - {Type: script, Value: s3://example-bucket/neuron.sh}
    pcluster_python: /opt/parallelcluster/bin/python

- name: List the images for Ubuntu 24.04
  trainium.cluster.pcluster_image:
    state: listed
    os: ubuntu2404

- name: Delete the image
  trainium.cluster.pcluster_image:
    image_id: trn1-2026-11
    state: absent
"""

RETURN = r"""
operation:
  description: What was or would be done, V(build), V(delete) or V(none).
  returned: success
  type: str
  sample: build
image:
  description: The image as ParallelCluster describes it, with the names of Ansible; none for one that does not exist.
  returned: when O(state) is V(present) or V(absent)
  type: dict
  contains:
    image_id:
      description: The name.
      type: str
      sample: trn1-2026-11
    image_build_status:
      description: How far it is.
      type: str
      sample: BUILD_COMPLETE
    ec2_ami_info:
      description: The AMI, when it is built.
      type: dict
      sample: {ami_id: ami-0a1b2c3d4e5f60002, state: AVAILABLE}
validation_messages:
  description: What the library remarked without refusing, with C(level), C(type) and C(message).
  returned: when O(state) is V(present) or V(absent)
  type: list
  elements: dict
images:
  description: The account's own images, built, under way or failed.
  returned: when O(state=listed)
  type: list
  elements: dict
  sample:
    - image_id: trn1-2026-11
      image_build_status: BUILD_COMPLETE
official_images:
  description: The official images of the installed version.
  returned: when O(state=listed)
  type: list
  elements: dict
  sample:
    - ami_id: ami-0a1b2c3d4e5f60001
      architecture: x86_64
      os: ubuntu2404
      version: 3.16.1
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.yaml_file import read_configuration
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import LIBRARY_ARGUMENTS, library_of
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.run_image import PclusterImage, list_images

ARGUMENTS: dict[str, dict[str, Any]] = {
    **LIBRARY_ARGUMENTS,
    "image_id": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent", "listed"], "default": "present"},
    "configuration": {"type": "dict"},
    "configuration_file": {"type": "path"},
    "suppress_validators": {"type": "list", "elements": "str", "default": []},
    "validation_failure_level": {"type": "str", "choices": ["INFO", "WARNING", "ERROR"], "default": "ERROR"},
    "rollback_on_failure": {"type": "bool", "default": False},
    "force": {"type": "bool", "default": False},
    "os": {"type": "str"},
    "architecture": {"type": "str", "choices": ["x86_64", "arm64"]},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 7200},
}


def run(module: Any) -> dict[str, Any]:
    """The module's result."""
    params, library = module.params, library_of(module)
    if params["state"] == "listed":
        return list_images(library, params)
    configuration = read_configuration(params) if params["state"] == "present" else None
    return PclusterImage(library, params, configuration, module.check_mode, warn).run()


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("configuration", "configuration_file")],
        required_if=[
            ("state", "present", ("image_id",)),
            ("state", "present", ("configuration", "configuration_file"), True),
            ("state", "absent", ("image_id",)),
        ],
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except TrainiumError as error:
        what = " ".join(filter(None, ("pcluster_image", module.params["image_id"])))
        module.fail_json(msg=f"{what}: {error}.", **error.details)
    difference = result.pop("diff", None)
    if module._diff and difference is not None:
        result["diff"] = difference
    module.exit_json(**result)


if __name__ == "__main__":
    main()
