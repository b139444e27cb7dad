#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dataset
version_added: 0.1.0
short_description: Bring a dataset to a host, and finish what an earlier run began
description:
  - Fetches files by HTTP or from a path on the host, in pieces over several connections, checks them, unpacks archives,
    and puts the result in place when it is whole. After that a marker tells further runs that there is nothing to do.
  - The transfer is a process of its own on the host. It goes on when the connection of Ansible is lost. The next run
    follows it, or finishes what it left when it was ended. What is whole on the disk is not fetched again.
  - On a destination that hosts share only one of them works at a time; the others wait, and see how far it is. One that
    was switched off in the middle is recognised after 90 seconds.
  - Everything that is not in place yet lies in the folder C(.trainium-dataset) of the destination.
  - An archive whose members would lead out of the destination is refused as a whole, also by the links of another
    archive of the same source. So are devices, sparse members, and archives that take more space than there is or have
    more than 5 million files and folders. Bits such as setuid are dropped.
  - A link in a folder of the host is followed where it is root's or the module's own user's. One of somebody else is
    refused, as are other things than files and folders behind it.
  - For files in S3 give O(files) as M(trainium.cluster.dataset_source_info) returns them.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  name:
    description:
      - Name of the dataset. Several datasets may have the same destination, with different names.
      - By default the last part of O(source).
    type: str
  source:
    description:
      - Where the dataset comes from, an C(http) or C(https) URL, the absolute path of a file or folder on the host, or
        C(s3://bucket/key) or C(s3://bucket/prefix/), for which O(files) tells the addresses.
      - Another source of the same name replaces what it has in common with the old one.
    type: str
    required: true
  destination:
    description: The folder for the dataset; made where it is missing.
    type: path
    required: true
  files:
    description:
      - The files, where O(source) does not tell them.
      - Without them the module only says whether a dataset from S3 is complete.
    type: list
    elements: dict
    suboptions:
      path:
        description: Path below O(destination).
        type: str
        required: true
      url:
        description: The address of the file, perhaps as V(base64:...). It may be signed, and is in no log.
        type: str
        required: true
      size:
        description: Its size in bytes; -1 asks the server.
        type: int
        default: -1
      tag:
        description: Its ETag. A file with another one is fetched anew.
        type: str
        default: ""
  checksum:
    description: The SHA-256 of a dataset of one file, as 64 hexadecimal digits, perhaps after C(sha256:).
    type: str
    default: ""
  checksums:
    description: The SHA-256 of files by their path below O(destination).
    type: dict
    default: {}
  md5_tags:
    description: Whether an ETag of 32 digits is an MD5 to compare with, as with S3. Not where the server uses KMS.
    type: bool
    default: false
  extract:
    description:
      - Which files to unpack. V(auto) those that are archives by their name, V(always) all, V(never) none.
      - Archives are C(.tar), C(.tar.gz), C(.tgz), C(.tar.bz2), C(.tar.xz) and C(.zip). What was fetched of them is
        deleted when they are unpacked.
    type: str
    choices: [auto, always, never]
    default: auto
  extracted_size:
    description:
      - The space that the unpacked archives take, such as V(60G), to be checked before anything is fetched.
      - By default what the archives take themselves, which is right for C(.tar).
    type: str
    default: ""
  owner:
    description: The user who owns the files; by default the one that runs the module.
    type: str
  group:
    description: The group of the files; by default the one of O(owner).
    type: str
  chunk_size:
    description:
      - How much is fetched again, at most, when the transfer is killed. Each connection asks for its part of it.
    type: str
    default: 64M
  connections:
    description: How many connections there are at a time.
    type: int
    default: 8
  timeout:
    description: Seconds that a server may be silent.
    type: int
    default: 60
  wait:
    description:
      - Seconds until the module returns, with RV(running=true) while the transfer goes on; 0 waits for its end.
      - In a task the module is asked again until the transfer ends.
    type: int
    default: 0
  attempt:
    description: Tells one attempt from another; the same value asks for the end of an attempt that was started before.
    type: str
"""

EXAMPLES = r"""
- name: A dataset from a server
  trainium.cluster.dataset:
    source: https://example.com/wiki_128.tar
    checksum: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03
    destination: /shared/data/bert

- name: The objects of a prefix
  trainium.cluster.dataset_source_info:
    source: s3://my-bucket/wiki/
  register: wiki
  delegate_to: localhost
  no_log: true

- name: A dataset from S3, without credentials on the host
  trainium.cluster.dataset:
    source: s3://my-bucket/wiki/
    files: "{{ wiki.files }}"
    destination: /shared/data/wiki
"""

RETURN = r"""
complete:
  description: Whether the dataset is in place.
  returned: success
  type: bool
  sample: true
running:
  description: Whether the transfer goes on.
  returned: success
  type: bool
  sample: false
attempt:
  description: Name of the attempt that was started or followed.
  returned: when there is one
  type: str
  sample: 0f3b1c2d
progress:
  description: How far the transfer is, for a reader.
  returned: when there is an attempt
  type: str
  sample: fetching 12.3 GiB of 48.0 GiB (25%), 512.0 MiB/s, 1 min 11 s left
fetched:
  description: Bytes that this attempt fetched.
  returned: when an attempt has ended
  type: int
  sample: 51539607552
files:
  description: The files of the source, with path, size in bytes, ETag, and SHA-256 where it was checked.
  returned: when complete
  type: list
  elements: dict
  sample: [{path: wiki_128.tar, size: 51539607552, tag: "", sha256: ""}]
completed_at:
  description: When the dataset was put in place.
  returned: when complete
  type: str
  sample: "2026-01-31T12:00:00Z"
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.run_host import run


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "source": {"type": "str", "required": True},
            "destination": {"type": "path", "required": True},
            "files": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "path": {"type": "str", "required": True},
                    "url": {"type": "str", "required": True, "no_log": True},
                    "size": {"type": "int", "default": -1},
                    "tag": {"type": "str", "default": ""},
                },
            },
            "checksum": {"type": "str", "default": ""},
            "checksums": {"type": "dict", "default": {}},
            "md5_tags": {"type": "bool", "default": False},
            "extract": {"type": "str", "choices": ["auto", "always", "never"], "default": "auto"},
            "extracted_size": {"type": "str", "default": ""},
            "owner": {"type": "str"},
            "group": {"type": "str"},
            "chunk_size": {"type": "str", "default": "64M"},
            "connections": {"type": "int", "default": 8},
            "timeout": {"type": "int", "default": 60},
            "wait": {"type": "int", "default": 0},
            "attempt": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params, module.check_mode)
    except (TrainiumError, ValueError) as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
