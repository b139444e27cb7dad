#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ecr_image
version_added: 0.3.0
short_description: Build a container image and push it to Amazon ECR, if its content changed
description:
  - Keeps one repository of Amazon ECR as it is wanted, and in it the image of a Dockerfile. The tag is a digest of the
    Dockerfile and of all that it copies, so that what is there already is neither built nor pushed.
  - Builds by podman, buildah or docker on the host of the module. The password of the registry comes from ECR, goes to
    the program's standard input, and is forgotten when the module ends; no credential helper is needed.
  - Tags are immutable. An image whose base has another content under the same name is not built again; name another
    base, as one with a digest.
  - A repository without the tags of O(cluster_name) and O(owner) is refused, and so is one in which tags can be
    overwritten, or whose policy lets another account push. The digest that the program tells is compared with ECR's.
  - Whoever else may push to the repository decides what pods run; an image that has the tag already is taken.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - Nothing is built, so that mistakes in the Dockerfile are not found.
options:
  name:
    description:
      - The name of the repository, in small letters.
      - It begins with C(trainium/), the cluster's name in small letters and a slash, by which policies and teardown
        know it.
    type: str
    required: true
  cluster_name:
    description: The cluster that it belongs to, the tag C(trainium:cluster).
    type: str
    required: true
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused; sessions of one IAM role are one owner.
    type: str
  state:
    description:
      - V(absent) deletes the repository with all images in it. The policy for that is docs/iam/teardown.json.
    type: str
    choices: [present, absent]
    default: present
  dockerfile:
    description:
      - The text of the Dockerfile. Needed for O(state=present).
      - A secret in it would be in the image.
    type: str
  files:
    description: What the Dockerfile can copy.
    type: list
    elements: dict
    default: []
    suboptions:
      src:
        description: A file or a folder on the host of the module.
        type: path
        required: true
      dest:
        description: Its name beside the Dockerfile, without slashes.
        type: str
        required: true
  tag_suffix:
    description: What the tag ends with, after the digest and a hyphen, such as V(sdk2.29.1).
    type: str
    default: ""
  platform:
    description: For which system the image is.
    type: str
    default: linux/amd64
  builder:
    description: The program to build with, V(auto) for the first that is there.
    type: str
    choices: [auto, podman, buildah, docker]
    default: auto
  build_options:
    description:
      - Further arguments of C(podman build), C(buildah bud) or C(docker build), such as V(--ulimit=nofile=65536).
        Whoever is on the host of the module can see them.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that the build may take, and the push.
    type: int
    default: 3600
  scan_on_push:
    description:
      - Whether ECR looks for known faults in packages of what is pushed. It is said when the repository is made, and
        not changed later, since accounts have it for all repositories now.
    type: bool
    default: true
  kms_key_id:
    description: The id or ARN of the key that a new repository is encrypted with. By default a key of ECR.
    type: str
  keep:
    description:
      - How many images stay in the repository, of those that this module has tagged. ECR deletes those that were pushed
        before them, even if a training runs from one, whose lost pods could not start again. V(0) leaves that as it is.
      - Where the repository has another lifecycle policy, that stays, with a warning.
    type: int
    default: 50
  tags:
    description:
      - Further tags of the repository. Tags that are missing or different are set; other tags are never removed.
      - Keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
"""

EXAMPLES = r"""
- name: An image with what a training needs beside Neuron
  trainium.cluster.ecr_image:
    name: trainium/bert/training
    cluster_name: bert
    dockerfile: |
      FROM public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.1-ubuntu24.04
      COPY requirements.lock /tmp/
      RUN pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.lock
    files: [{src: requirements.lock, dest: requirements.lock}]
    tag_suffix: sdk2.29.1
  register: training

- name: Delete the repository and all that is in it
  trainium.cluster.ecr_image:
    name: trainium/bert/training
    cluster_name: bert
    state: absent
"""

RETURN = r"""
image:
  description:
    - The whole name of the image with its digest, as a pod takes it. Without the digest, in check mode, where it is not
      there yet; then also without the registry, if the repository is not.
  returned: success
  type: str
  sample: >-
    123456789012.dkr.ecr.us-west-2.amazonaws.com/trainium/bert/training:trainium-0123456789abcdef-sdk2.29.1@sha256:5891b5b5...
tag:
  description: Its tag.
  returned: success
  type: str
  sample: trainium-0123456789abcdef-sdk2.29.1
digest:
  description: Its digest in the registry.
  returned: success
  type: str
  sample: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
repository_uri:
  description: The repository.
  returned: success
  type: str
  sample: 123456789012.dkr.ecr.us-west-2.amazonaws.com/trainium/bert/training
pushed:
  description: Whether this run has built and pushed it.
  returned: success
  type: bool
  sample: true
builder:
  description: The program that built it, or would; empty where it was there.
  returned: success
  type: str
  sample: podman
step:
  description: What failed, where it may be tried again, V(login) or V(pull) of what the image is made from.
  returned: when that failed
  type: str
  sample: login
log:
  description: The end of what the program said.
  returned: when it failed
  type: list
  elements: str
  sample: ["STEP 2/3: RUN pip install h5py==3.11.0"]
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ecr.run import EcrImage

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "cluster_name": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "dockerfile": {"type": "str"},
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"src": {"type": "path", "required": True}, "dest": {"type": "str", "required": True}},
    },
    "tag_suffix": {"type": "str", "default": ""},
    "platform": {"type": "str", "default": "linux/amd64"},
    "builder": {"type": "str", "choices": ["auto", "podman", "buildah", "docker"], "default": "auto"},
    "build_options": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 3600},
    "scan_on_push": {"type": "bool", "default": True},
    "kms_key_id": {"type": "str"},
    "keep": {"type": "int", "default": 50},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "present", ["dockerfile"])],
        supports_check_mode=True,
    )
    try:
        result = EcrImage(
            *(module.client("ecr"), module.params, module.check_mode),
            *(lambda region: module.client("ecr", region=region), warn),
        ).run()
    except TrainiumError as error:
        module.fail_json(msg=f"ecr_image {module.params['name']}: {error}.", **error.details)
    finish(module, result)


if __name__ == "__main__":
    main()
