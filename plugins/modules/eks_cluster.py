#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: eks_cluster
version_added: 0.1.0
short_description: Make, change and delete a cluster of Amazon EKS
description:
  - Keeps the control plane of one cluster as it is wanted, its version, endpoint and logs, and who may administer it.
  - A cluster costs money by the hour while it exists, used or not.
  - Updates come one after the other, as EKS takes them, and are waited for. A higher version is reached by one update
    for each minor version.
  - A cluster of the name that carries another cluster's tag C(trainium:cluster), or none, is refused.
  - While the module waits, progress is shown when it runs with a local connection.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.attributes.aws
  - trainium.cluster.aws
attributes:
  check_mode:
    details:
      - O(role_arn) and O(subnets) may be empty, as earlier tasks would have made them.
options:
  name:
    description: The name of the cluster.
    type: str
    required: true
  cluster_name:
    description: What it belongs to, the tag C(trainium:cluster). By default, O(name).
    type: str
  owner:
    description:
      - Whose cluster it is, the tag C(trainium:owner). Without it there is no such tag.
      - What carries another owner's is refused; sessions of one IAM role are one owner.
    type: str
  state:
    description:
      - V(present) makes the cluster or changes it. An option that is not given stays as it is.
      - V(absent) deletes it. One that has node groups is refused.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - The version of Kubernetes, such as V(1.34). By default EKS's own for a new cluster.
      - One that EKS does not offer any more is refused, one in extended support is warned of.
    type: str
  role_arn:
    description: The ARN of the cluster's role, needed for a new cluster. EKS does not change it.
    type: str
  subnets:
    description:
      - Ids of subnets in two zones at least, needed for a new cluster.
      - A cluster whose subnets are among them is left as it is, since EKS adds no further zones.
    type: list
    elements: str
  security_groups:
    description: Ids of further security groups of the control plane's interfaces, beside that which EKS makes.
    type: list
    elements: str
  public_access:
    description: Whether the endpoint is open to O(public_access_cidrs). V(true) by default for a new cluster.
    type: bool
  private_access:
    description: Whether the VPC reaches the endpoint inside. V(true) by default for a new cluster.
    type: bool
  public_access_cidrs:
    description: Networks of the Internet that may reach the endpoint, needed for a new cluster with O(public_access).
    type: list
    elements: str
  logging:
    description: The logs of the control plane that go to CloudWatch, others do not. None by default for a new cluster.
    type: list
    elements: str
    choices: [api, audit, authenticator, controllerManager, scheduler]
  authentication_mode:
    description:
      - Whether access entries count, or the ConfigMap C(aws-auth) beside them. V(API) by default for a new cluster.
      - There is no way back from V(API).
    type: str
    choices: [API, API_AND_CONFIG_MAP]
  admins:
    description:
      - ARNs of users and roles of IAM that may administer the cluster. One that an earlier run let in and that is not
        named any more loses its access entry; entries that others made stay.
    type: list
    elements: str
  admit_caller:
    description: Whether whoever runs this gets an access entry as well, which stays.
      A role whose path IAM does not tell, for want of C(iam:GetRole), must have one already.
    type: bool
    default: true
  support:
    description: Whether EKS upgrades the cluster when V(STANDARD) or when V(EXTENDED) support of its version ends.
    type: str
    choices: [STANDARD, EXTENDED]
  deletion_protection:
    description: Whether EKS refuses to delete the cluster.
    type: bool
  wait:
    description: Whether to wait until a new cluster is active, or a deleted one gone. Updates are always waited for.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait at most. EKS takes some 10 minutes for a cluster, and more for a version.
    type: int
    default: 3600
  tags:
    description:
      - Further tags. An existing cluster gets tags that are missing or different; other tags are never removed.
      - Keys that begin with C(trainium:) or C(aws:) are refused.
    type: dict
    aliases: [resource_tags]
seealso:
  - module: trainium.cluster.eks_nodegroup
"""

EXAMPLES = r"""
- name: A cluster that only one network of the Internet reaches
  trainium.cluster.eks_cluster:
    name: bert
    version: "1.34"
    role_arn: arn:aws:iam::123456789012:role/bert-eks
    subnets: [subnet-0a1b2c3d4e5f60001, subnet-0a1b2c3d4e5f60002]
    public_access_cidrs: [198.51.100.0/24]
    logging: [api, audit, authenticator]
    admins: [arn:aws:iam::123456789012:role/ml]
  register: cluster

- name: Raise its version
  trainium.cluster.eks_cluster:
    name: bert
    version: "1.35"

- name: Delete it
  trainium.cluster.eks_cluster:
    name: bert
    state: absent
"""

RETURN = r"""
cluster:
  description: The cluster. Empty with O(state=absent).
  returned: success
  type: dict
  contains:
    name:
      description: The name.
      type: str
      sample: bert
    arn:
      description: The ARN; empty for one that check mode promises.
      type: str
      sample: arn:aws:eks:us-west-2:123456789012:cluster/bert
    status:
      description: The state, such as V(ACTIVE).
      type: str
      sample: ACTIVE
    version:
      description: The version of Kubernetes.
      type: str
      sample: "1.34"
    endpoint:
      description: The URL of the Kubernetes API; empty until the cluster is active.
      type: str
      sample: https://0123456789ABCDEF0123456789ABCDEF.gr7.us-west-2.eks.amazonaws.com
    certificate_authority:
      description: The certificate of its authority, in base64.
      type: str
      sample: LS0tLS1CRUdJTi4uLg==
    oidc_issuer:
      description: The URL of the issuer of its service accounts' tokens.
      type: str
      sample: https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF
    role_arn:
      description: The role.
      type: str
      sample: arn:aws:iam::123456789012:role/bert-eks
    vpc_id:
      description: The VPC.
      type: str
      sample: vpc-0a1b2c3d4e5f60007
    subnets:
      description: The subnets.
      type: list
      elements: str
      sample: [subnet-0a1b2c3d4e5f60001]
    security_groups:
      description: The further security groups.
      type: list
      elements: str
      sample: [sg-0a1b2c3d4e5f60003]
    cluster_security_group:
      description: The security group that EKS made; nodes that have it reach the control plane.
      type: str
      sample: sg-0a1b2c3d4e5f60004
    public_access:
      description: Whether the endpoint is open to the Internet.
      type: bool
      sample: true
    private_access:
      description: Whether the VPC reaches it inside.
      type: bool
      sample: true
    public_access_cidrs:
      description: The networks of the Internet that reach it.
      type: list
      elements: str
      sample: [198.51.100.0/24]
    service_cidr:
      description: The network of services.
      type: str
      sample: 172.20.0.0/16
    logging:
      description: The logs that go to CloudWatch.
      type: list
      elements: str
      sample: [api]
    authentication_mode:
      description: The mode.
      type: str
      sample: API
    support:
      description: The support after whose end EKS upgrades the cluster.
      type: str
      sample: EXTENDED
    deletion_protection:
      description: Whether EKS refuses to delete it.
      type: bool
      sample: false
    admins:
      description: Who may administer it, as far as that was looked at.
      type: list
      elements: str
      sample: [arn:aws:iam::123456789012:role/ml]
    issues:
      description: What EKS finds wrong with it.
      type: list
      elements: str
      sample: []
    tags:
      description: The tags.
      type: dict
      sample: {"trainium:cluster": "bert"}
updated:
  description: What was or would be updated, in this order.
  returned: success
  type: list
  elements: str
  sample: [Kubernetes 1.35]
"""

from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import caller_arn, finish
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._eks.access import session_role
from ansible_collections.trainium.cluster.plugins.module_utils._eks.calls import check_library, role_arn
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan import LOGS
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run import EksCluster

ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str", "required": True},
    "cluster_name": {"type": "str"},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "version": {"type": "str"},
    "role_arn": {"type": "str"},
    "subnets": {"type": "list", "elements": "str"},
    "security_groups": {"type": "list", "elements": "str"},
    "public_access": {"type": "bool"},
    "private_access": {"type": "bool"},
    "public_access_cidrs": {"type": "list", "elements": "str"},
    "logging": {"type": "list", "elements": "str", "choices": [*LOGS]},
    "authentication_mode": {"type": "str", "choices": ["API", "API_AND_CONFIG_MAP"]},
    "admins": {"type": "list", "elements": "str"},
    "admit_caller": {"type": "bool", "default": True},
    "support": {"type": "str", "choices": ["STANDARD", "EXTENDED"]},
    "deletion_protection": {"type": "bool"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 3600},
    "tags": {"type": "dict", "aliases": ["resource_tags"]},
}


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)

    def caller() -> tuple[str, bool]:
        """The principal: of a session its role, with the path that the session's ARN lacks, as far as IAM says it."""
        role, principal = session_role(caller_arn(module.client("sts")))
        known = role_arn(module.client("iam"), role) if role else principal
        return known or principal, bool(known)

    client = module.client("eks")
    try:
        check_library(client)
        result = EksCluster(client, module.params, module.check_mode, warn, caller).run()
    except TrainiumError as error:
        module.fail_json(msg=f"eks_cluster {module.params['name']}: {error}.", **error.details)
    finish(module, result)


if __name__ == "__main__":
    main()
