#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: efs_file_system
version_added: 0.2.0
short_description: Make, change and delete a file system of Amazon EFS with its mount targets
description:
  - Keeps one file system of Amazon EFS as it is wanted, with a mount target in every zone of the given subnets, and
    tells how it is mounted.
  - It is found by the tags C(Name) and C(trainium:cluster); one of the same name without the latter is never touched,
    and neither is one that a stack of CloudFormation has made, such as that of a ParallelCluster.
    A run that was killed can be repeated without making a second one, as the creation token follows from cluster and
    name.
  - It is always encrypted on the disk. On the way it is encrypted only where a client mounts it with TLS.
  - A file system costs money by what lies in it, by what is read and written with V(elastic), and by the MiB/s and the
    hour with V(provisioned).
  - While the module waits, progress is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - O(subnets) may be empty, as an earlier task would have made them.
options:
  name:
    description:
      - The tag C(Name) of the file system. At most 100 letters, digits, dots, underscores and hyphens.
      - With O(state=absent) and O(state=detached) it may be left out. Then all file systems of O(cluster_name) are
        meant.
    type: str
  cluster_name:
    description: The cluster that the file system belongs to, the tag C(trainium:cluster). By default, O(name).
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's, or with O(owner) none, is refused, since anybody may make a file system with the
        tags of a cluster. With O(state=present) it is passed over where one of the owner's is there. Sessions of one
        IAM role are one owner.
    type: str
  state:
    description:
      - V(present) makes the file system and its mount targets, or changes what EFS lets change. Other differences are
        refused. An option that is not given stays as it is.
      - V(detached) deletes the mount targets and keeps the file system with all that is in it, as for a VPC that goes.
        It gets the tag of O(keep), with which C(teardown.yml) keeps it until it is told not to. Throughput that is
        provisioned goes on costing by the hour.
      - V(absent) deletes the mount targets, and then the file system with all that is in it.
    type: str
    choices: [present, detached, absent]
    default: present
  throughput_mode:
    description:
      - V(elastic) by default for a new file system. It is billed by what is read and written; V(provisioned) costs by
        the hour, and V(bursting) grows with what lies in the file system.
      - From V(provisioned) AWS changes it only 24 hours after the throughput was provisioned or raised.
    type: str
    choices: [elastic, bursting, provisioned]
  provisioned_throughput:
    description:
      - MiB/s, 1 to 3414, for O(throughput_mode=provisioned), which needs it. The most is a quota, which is lower in
        some regions.
      - It can be raised at any time, and lowered 24 hours after it was provisioned or raised.
    type: int
  kms_key_id:
    description:
      - The id or ARN of the key that a new file system is encrypted with. By default AWS's own key for EFS.
      - It cannot be changed. An alias is not compared. A file system whose key is another account's is refused where
        this is not given, since that account can take the data away.
    type: str
  keep:
    description:
      - Whether C(teardown.yml) keeps the file system with all that is in it. With V(true) it gets the tag
        C(trainium:keep) with the value C(true), which V(false) changes to C(false) where it is there.
      - Where it is not given the tag stays as it is, and a new file system has none. For O(state=present) only; the
        module's own O(state=absent) deletes what has the tag, too.
    type: bool
  subnets:
    description:
      - Subnets of one VPC whose zones get a mount target, in the first subnet of each zone. EFS allows one a zone, and
        all instances of the zone use it.
      - Those that are there in other zones stay.
    type: list
    elements: str
  security_groups:
    description:
      - Ids of at most five security groups of the mount targets, which must let NFS pass (TCP 2049). By default the
        VPC's default group for new ones.
    type: list
    elements: str
  wait:
    description:
      - Whether to wait until the file system and its mount targets are available, or gone.
      - What must be there or gone before the next call is waited for in any case, such as the file system before its
        mount targets.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most. The file system is not taken back after that.
    type: int
    default: 900
  tags:
    description:
      - Further tags. An existing file system gets tags that are missing or different; other tags are never removed.
      - C(Name) and keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.fsx_lustre
"""

EXAMPLES = r"""
- name: A file system for the nodes in two zones
  trainium.cluster.efs_file_system:
    name: llama
    subnets: [subnet-0a1b2c3d4e5f60001, subnet-0a1b2c3d4e5f60002]
    security_groups: [sg-0a1b2c3d4e5f60003]
  register: efs

- name: Mount it on the nodes
  ansible.builtin.include_role:
    name: trainium.cluster.shared_storage
  vars:
    shared_storage_mounts:
      - {type: efs, path: /neuron_shared, source: "{{ efs.mount_source }}"}

- name: Have 512 MiB/s for it
  trainium.cluster.efs_file_system:
    name: llama
    throughput_mode: provisioned
    provisioned_throughput: 512

- name: Have teardown.yml keep it
  trainium.cluster.efs_file_system:
    name: llama
    keep: true

- name: Keep the data and let the VPC go
  trainium.cluster.efs_file_system:
    name: llama
    state: detached

- name: Delete it with all that is in it
  trainium.cluster.efs_file_system:
    name: llama
    state: absent
"""

RETURN = r"""
file_system:
  description: The file system. Empty with O(state=absent) and O(state=detached).
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
      sample: arn:aws:elasticfilesystem:us-west-2:123456789012:file-system/fs-0a1b2c3d4e5f60010
    lifecycle:
      description: The state, such as V(available).
      type: str
      sample: available
    dns_name:
      description: The name that it is mounted by.
      type: str
      sample: fs-0a1b2c3d4e5f60010.efs.us-west-2.amazonaws.com
    mount_source:
      description: What is mounted, the C(source) of role shared_storage.
      type: str
      sample: fs-0a1b2c3d4e5f60010.efs.us-west-2.amazonaws.com:/
    throughput_mode:
      description: V(elastic), V(bursting) or V(provisioned).
      type: str
      sample: elastic
    provisioned_throughput:
      description: MiB/s; 0 where they are not provisioned.
      type: int
      sample: 0
    encrypted:
      description: Whether it is encrypted on the disk.
      type: bool
      sample: true
    kms_key_id:
      description: The ARN of the key that it is encrypted with.
      type: str
      sample: arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-4e5f-6000-0000-000000000011
    mount_targets:
      description: The mount targets by zone. Security groups are shown where O(security_groups) is given.
      type: list
      elements: dict
      sample:
        - availability_zone: us-west-2a
          ip_address: 10.77.0.9
          lifecycle: available
          mount_target_id: fsmt-0a1b2c3d4e5f60012
          security_groups: [sg-0a1b2c3d4e5f60003]
          subnet_id: subnet-0a1b2c3d4e5f60001
          vpc_id: vpc-0a1b2c3d4e5f60007
    tags:
      description: The tags, C(trainium:keep) among them where it was ever set.
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
  sample: fs-0a1b2c3d4e5f60010.efs.us-west-2.amazonaws.com
mount_source:
  description: What is mounted, the C(source) of role shared_storage.
  returned: success
  type: str
  sample: fs-0a1b2c3d4e5f60010.efs.us-west-2.amazonaws.com:/
detached:
  description: The ids of the mount targets that were or would be deleted.
  returned: success
  type: list
  elements: str
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
kept:
  description: The ids of the file systems that stay, with O(state=detached).
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing, finish
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run import EfsFileSystem

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "detached", "absent"], "default": "present"},
    "throughput_mode": {"type": "str", "choices": ["elastic", "bursting", "provisioned"]},
    "provisioned_throughput": {"type": "int"},
    "kms_key_id": {"type": "str", "no_log": False},
    "keep": {"type": "bool"},
    "subnets": {"type": "list", "elements": "str"},
    "security_groups": {"type": "list", "elements": "str"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 900},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    with failing(module, "efs_file_system", module.params["name"] or module.params["cluster_name"]):
        result = EfsFileSystem(module.client("efs"), module.client("ec2"), module.params, module.check_mode).run()
    finish(module, result)


if __name__ == "__main__":
    main()
