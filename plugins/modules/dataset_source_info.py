#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dataset_source_info
version_added: 0.1.0
short_description: The objects of a dataset in S3, and addresses to fetch them without credentials
description:
  - Lists an object or the objects of a prefix, and computes for each an address that is valid for some time.
  - Run it where the credentials are, with C(delegate_to=localhost) and C(no_log=true), since whoever has such an
    address may fetch the object.
  - There is one call for an object, and one for each 1000 objects of a prefix. One object needs no right to list.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
options:
  source:
    description: The object C(s3://bucket/key), or the prefix C(s3://bucket/prefix/) with a slash at its end.
    type: str
    required: true
  signed:
    description: Whether to sign; V(false) is for public buckets and needs no credentials, like C(--no-sign-request).
    type: bool
    default: true
  expires:
    description:
      - Seconds for which the addresses are valid, at most 604800. With temporary credentials they end with these.
    type: int
    default: 43200
  host_endpoint:
    description: The endpoint by which the hosts reach S3, where it is not that of this machine.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: The objects of a public bucket
  trainium.cluster.dataset_source_info:
    source: s3://neuron-s3/training_datasets/bert_pretrain_wikicorpus_tokenized_hdf5/
    signed: false
    region: us-east-1
  delegate_to: localhost
  no_log: true
  register: wiki
"""

RETURN = r"""
files:
  description: The objects, for the option O(trainium.cluster.dataset#module:files).
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The key without the prefix.
      type: str
      sample: wiki_128.tar
    url:
      description: The address, in base64, since Ansible would mask the parts of it that it knows as secrets.
      type: str
      sample: base64:aHR0cHM6Ly9idWNrZXQvd2lraQ==
    size:
      description: The size in bytes.
      type: int
      sample: 51539607552
    tag:
      description: The ETag.
      type: str
      sample: '"6805f2cfc46c0f04559748bb039d69ae-123"'
size:
  description: The size of all of them in bytes.
  returned: success
  type: int
  sample: 51539607552
md5_tags:
  description: Whether an ETag of 32 digits is an MD5 of the content.
  returned: success
  type: bool
  sample: true
"""

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.run_source import describe


def main() -> None:
    module = AnsibleAWSModule(
        argument_spec={
            "source": {"type": "str", "required": True},
            "signed": {"type": "bool", "default": True},
            "expires": {"type": "int", "default": 43200},
            "host_endpoint": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    try:
        result = describe(
            lambda settings: module.client("s3", **settings),
            module.params["source"],
            module.params["signed"],
            module.params["expires"],
            module.params["host_endpoint"],
        )
    except TrainiumError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    except ValueError as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
