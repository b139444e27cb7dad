#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fsx_lustre
version_added: 0.1.0
short_description: Make, change and delete a file system of FSx for Lustre
description:
  - Keeps one file system of Amazon FSx for Lustre as it is wanted, and tells how it is mounted.
  - It is found by the tags C(Name) and C(trainium:cluster). With O(state=present) one that a stack of CloudFormation
    has made, such as that of a ParallelCluster, is never touched.
  - A run that was killed can be repeated without making a second one, as the request carries a ClientRequestToken that
    follows from it.
  - A file system costs money by the GiB and the hour while it exists, used or not.
  - While the module waits, progress is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - O(subnet_id) may be empty, as an earlier task would have made it.
options:
  name:
    description:
      - The tag C(Name) of the file system. At most 100 letters, digits, dots, underscores and hyphens.
      - With O(state=absent) it may be left out. Then all file systems of O(cluster_name) are deleted but those that a
        stack of CloudFormation has made, such as ParallelCluster's, which may have been told to retain them.
    type: str
  cluster_name:
    description: The cluster that the file system belongs to, the tag C(trainium:cluster). By default, O(name).
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused, with O(state=present) also what carries none, since anybody may make a
        file system with the tags of a cluster. It is passed over where one of the owner's is there. Sessions of one IAM
        role are one owner.
    type: str
    version_added: 0.2.0
  state:
    description:
      - V(present) makes the file system or changes what FSx lets change. Other differences are refused. An option that
        is not given stays as it is.
      - V(absent) deletes the file system with all that is in it, and with its automatic backups.
    type: str
    choices: [present, absent]
    default: present
  deployment_type:
    description:
      - V(SCRATCH_2) keeps one copy of the data. V(PERSISTENT_1) and V(PERSISTENT_2) replicate it.
      - V(SCRATCH_2) by default for a new file system. It cannot be changed.
    type: str
    choices: [SCRATCH_2, PERSISTENT_1, PERSISTENT_2]
  storage_type:
    description: V(SSD) by default for a new file system, V(HDD) is for V(PERSISTENT_1) only. It cannot be changed.
    type: str
    choices: [SSD, HDD]
  storage_capacity:
    description:
      - The size in GiB, 1200 by default for a new file system. It can only be raised.
      - On SSD 1200 or a multiple of 2400, on HDD a multiple of 6000 (with 12 MB/s for each TiB) or of 1800 (with 40).
    type: int
  per_unit_storage_throughput:
    description:
      - MB/s for each TiB. Needed for a new V(PERSISTENT_1) (50, 100 or 200 on SSD, 12 or 40 on HDD) and V(PERSISTENT_2)
        (125, 250, 500 or 1000).
      - It can be changed on SSD, in both directions.
    type: int
  file_system_version:
    description: The version of Lustre, V(2.15) by default for a new file system. It can only be raised.
    type: str
    choices: ['2.12', '2.15']
  data_compression:
    description: The compression of what is written from now on, V(LZ4) by default for a new file system.
    type: str
    choices: [NONE, LZ4]
  drive_cache:
    description: Whether HDD has a cache on SSD. Needed for HDD, and cannot be changed.
    type: str
    choices: [NONE, READ]
  subnet_id:
    description: The subnet, needed for a new file system. It cannot be changed.
    type: str
  security_groups:
    description:
      - Ids of the security groups of a new file system, which must let Lustre pass (TCP 988 and 1018 to 1023). By
        default the VPC's default group.
      - FSx does not show them afterwards, so they are not compared. Change them on the file system's interface.
    type: list
    elements: str
  kms_key_id:
    description:
      - The id or ARN of the key that a new V(PERSISTENT_1) or V(PERSISTENT_2) is encrypted with. By default a key of
        FSx.
      - It cannot be changed. An alias is not compared.
    type: str
  import_path:
    description:
      - The bucket, with a prefix if wanted, that V(SCRATCH_2) or V(PERSISTENT_1) is linked to, such as
        V(s3://bucket/prefix). It cannot be changed.
      - V(PERSISTENT_2) is linked by data repository associations instead, which this module does not make.
    type: str
  export_path:
    description: Where in the bucket of O(import_path) the root of the file system is exported to. It cannot be changed.
    type: str
  auto_import_policy:
    description: Which changes of the bucket are followed.
    type: str
    choices: [NONE, NEW, NEW_CHANGED, NEW_CHANGED_DELETED]
  automatic_backup_retention_days:
    description: For how many days daily backups are kept, 0 to 90. Not for V(SCRATCH_2), nor with O(import_path).
    type: int
  daily_automatic_backup_start_time:
    description: When the daily backup begins, such as V(05:00), in UTC.
    type: str
  copy_tags_to_backups:
    description: Whether backups get the tags of the file system. It cannot be changed.
    type: bool
  weekly_maintenance_start_time:
    description: When FSx may begin its weekly maintenance, such as V(7:03:00) for Sunday at three, in UTC.
    type: str
  keep:
    description:
      - Whether C(teardown.yml) keeps the file system with all that is in it, and the network that it lies in. With
        V(true) it gets the tag C(trainium:keep) with the value C(true), which V(false) changes to C(false) where it is
        there.
      - Where it is not given the tag stays as it is, and a new file system has none. For O(state=present) only; the
        module's own O(state=absent) deletes what has the tag, too.
    type: bool
    version_added: 0.2.0
  wait:
    description: Whether to wait until the file system is available with all changes, or gone.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most. The file system is not taken back after that.
    type: int
    default: 1800
  tags:
    description:
      - Further tags. An existing file system gets tags that are missing or different; other tags are never removed.
      - C(Name) and keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.efs_file_system
"""

EXAMPLES = r"""
- name: 4.8 TiB that last, for checkpoints
  trainium.cluster.fsx_lustre:
    name: llama
    deployment_type: PERSISTENT_2
    per_unit_storage_throughput: 250
    storage_capacity: 4800
    subnet_id: subnet-0a1b2c3d4e5f60001
    security_groups: [sg-0a1b2c3d4e5f60003]
  register: lustre

- name: Mount it on the nodes
  ansible.builtin.include_role:
    name: trainium.cluster.shared_storage
  vars:
    shared_storage_mounts:
      - type: lustre
        path: /fsx
        source: "{{ lustre.mount_source }}"
        deployment_type: PERSISTENT_2

- name: Make it larger and faster
  trainium.cluster.fsx_lustre:
    name: llama
    storage_capacity: 9600
    per_unit_storage_throughput: 500

- name: Delete it with all that is in it
  trainium.cluster.fsx_lustre:
    name: llama
    state: absent
"""

RETURN = r"""
file_system:
  description: The file system. Empty with O(state=absent).
  returned: success
  type: dict
  contains:
    file_system_id:
      description: The id; empty for one that check mode promises.
      type: str
      sample: fs-0a1b2c3d4e5f60010
    arn:
      description: The ARN.
      type: str
      sample: arn:aws:fsx:us-west-2:123456789012:file-system/fs-0a1b2c3d4e5f60010
    lifecycle:
      description: The state, such as V(AVAILABLE).
      type: str
      sample: AVAILABLE
    updating:
      description: The options whose new values are on their way. They are shown as they will be.
      type: list
      elements: str
      sample: []
    dns_name:
      description: The name that it is mounted by.
      type: str
      sample: fs-0a1b2c3d4e5f60010.fsx.us-west-2.amazonaws.com
    mount_name:
      description: The name of the file system on its server.
      type: str
      sample: abcdefgh
    mount_source:
      description: What is mounted, the C(source) of role shared_storage.
      type: str
      sample: fs-0a1b2c3d4e5f60010.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh
    deployment_type:
      description: The deployment type.
      type: str
      sample: PERSISTENT_2
    storage_type:
      description: V(SSD) or V(HDD).
      type: str
      sample: SSD
    storage_capacity:
      description: The size in GiB.
      type: int
      sample: 4800
    per_unit_storage_throughput:
      description: MB/s for each TiB; 0 where it cannot be chosen.
      type: int
      sample: 250
    file_system_version:
      description: The version of Lustre.
      type: str
      sample: "2.15"
    data_compression:
      description: V(LZ4) or V(NONE).
      type: str
      sample: LZ4
    drive_cache:
      description: V(READ) or V(NONE).
      type: str
      sample: NONE
    import_path:
      description: The bucket that it is linked to; empty if there is none.
      type: str
      sample: ""
    export_path:
      description: Where in the bucket it is exported to; empty if it is not.
      type: str
      sample: ""
    auto_import_policy:
      description: Which changes of the bucket are followed.
      type: str
      sample: NONE
    automatic_backup_retention_days:
      description: For how many days daily backups are kept.
      type: int
      sample: 0
    daily_automatic_backup_start_time:
      description: When the daily backup begins; empty if there is none.
      type: str
      sample: ""
    weekly_maintenance_start_time:
      description: When FSx may begin its weekly maintenance.
      type: str
      sample: "7:03:00"
    copy_tags_to_backups:
      description: Whether backups get the tags of the file system.
      type: bool
      sample: false
    vpc_id:
      description: The VPC.
      type: str
      sample: vpc-0a1b2c3d4e5f60007
    subnet_id:
      description: The subnet.
      type: str
      sample: subnet-0a1b2c3d4e5f60001
    network_interface_ids:
      description: The ids of its network interfaces.
      type: list
      elements: str
      sample: [eni-0a1b2c3d4e5f60008]
    kms_key_id:
      description: The ARN of the key that it is encrypted with.
      type: str
      sample: arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-4e5f-6000-0000-000000000011
    tags:
      description: The tags.
      type: dict
      sample: {"Name": "llama", "trainium:cluster": "llama"}
file_system_id:
  description: The id of RV(file_system).
  returned: success
  type: str
  sample: fs-0a1b2c3d4e5f60010
dns_name:
  description: The name that RV(file_system) is mounted by.
  returned: success
  type: str
  sample: fs-0a1b2c3d4e5f60010.fsx.us-west-2.amazonaws.com
mount_name:
  description: The name of RV(file_system) on its server.
  returned: success
  type: str
  sample: abcdefgh
mount_source:
  description: What is mounted, the C(source) of role shared_storage.
  returned: success
  type: str
  sample: fs-0a1b2c3d4e5f60010.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh
deleted:
  description: The ids of the file systems that were or would be deleted.
  returned: success
  type: list
  elements: str
deleting:
  description: The ids of the file systems that somebody began to delete before, with O(state=absent).
  returned: success
  type: list
  elements: str
spared:
  description: The ids of those of O(cluster_name) that a stack made and that stay, with O(state=absent) and no O(name).
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing, finish
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run import FsxLustre

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "deployment_type": {"type": "str", "choices": ["SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2"]},
    "storage_type": {"type": "str", "choices": ["SSD", "HDD"]},
    "storage_capacity": {"type": "int"},
    "per_unit_storage_throughput": {"type": "int"},
    "file_system_version": {"type": "str", "choices": ["2.12", "2.15"]},
    "data_compression": {"type": "str", "choices": ["NONE", "LZ4"]},
    "drive_cache": {"type": "str", "choices": ["NONE", "READ"]},
    "subnet_id": {"type": "str"},
    "security_groups": {"type": "list", "elements": "str"},
    "kms_key_id": {"type": "str", "no_log": False},
    "import_path": {"type": "str"},
    "export_path": {"type": "str"},
    "auto_import_policy": {"type": "str", "choices": ["NONE", "NEW", "NEW_CHANGED", "NEW_CHANGED_DELETED"]},
    "automatic_backup_retention_days": {"type": "int"},
    "daily_automatic_backup_start_time": {"type": "str"},
    "copy_tags_to_backups": {"type": "bool"},
    "weekly_maintenance_start_time": {"type": "str"},
    "keep": {"type": "bool"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 1800},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    with failing(module, "fsx_lustre", module.params["name"] or module.params["cluster_name"]):
        result = FsxLustre(module.client("fsx"), module.params, module.check_mode).run()
    finish(module, result)


if __name__ == "__main__":
    main()
