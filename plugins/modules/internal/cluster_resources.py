#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_resources
version_added: 0.1.0
short_description: Find or delete everything that carries the tag of a cluster
description:
  - Looks for all kinds of resource that a cluster can have by the tag C(trainium:cluster), in one process, and with
    O(state=absent) deletes them in the order in which EC2 allows it and looks again.
  - What does not carry the tag with exactly this name is left alone, whatever else it is called.
  - A file system of EFS that does not carry the tag of O(owner) is passed over with a warning, since anybody may give
    one the tag of a cluster, or of a stack. One that a stack has made need not carry an owner's.
  - A file system of FSx that carries the tag of another owner is passed over with a warning as well. Where it lies in
    the cluster's network, that cannot go before.
  - A file system of EFS or FSx that a stack of CloudFormation has made, such as that of a ParallelCluster, is never
    deleted. If it is of EFS, its mount targets in VPCs of the cluster go.
  - A repository of images that does not carry the tag of O(owner) is passed over with a warning, and so are all where
    ECR may not be asked.
  - Load balancers, target groups and security groups that Kubernetes made for Services and Ingresses of a cluster of
    EKS go when they carry C(kubernetes.io/cluster/NAME=owned) or C(elbv2.k8s.aws/cluster=NAME), and lie in a VPC that
    carries the tags of the cluster and of O(owner) or in that of a cluster of EKS of this name that carries both. They
    stay where a cluster of EKS of this name lies in the VPC that does not carry the cluster's tag. Of a VPC that others
    made the security groups stay, which may be in rules of theirs.
  - A NAT gateway in the state C(failed) counts as gone; EC2 removes it by itself.
  - Images of nodes that C(image.yml) built stay; those of O(owner) are named.
  - What cannot be deleted does not keep the rest from being deleted. It is named at the end, with the first reason, and
    fails the module.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.aws
options:
  cluster_name:
    description: Name of the cluster, the value of the tag.
    type: str
    required: true
  owner:
    description:
      - Who asks. What carries the tag C(trainium:owner) of another is refused, before anything is deleted; of EFS,
        FSx and ECR it is left alone.
      - Without it owners are not looked at.
    type: str
  state:
    description: V(listed) only looks.
    type: str
    choices: [listed, absent]
    default: listed
  keep_logs:
    description: Whether the log groups of an EKS cluster's control plane stay, which CloudWatch bills by the gigabyte.
    type: bool
    default: true
  keep_shared_storage:
    description:
      - Whether the file systems stay with all that is in them. They get the tag C(trainium:keep) then. Of EFS the mount
        targets go; with one of FSx for Lustre its VPC stays, and what lies in that and costs nothing.
      - Where it is not given, those with that tag stay.
    type: bool
  mark:
    description:
      - The key of a tag. What was found and does not carry it is in RV(unmarked), and so is what EC2 does not tell of.
    type: str
    version_added: 0.3.0
"""

EXAMPLES = r"""
- name: Look for what belongs to the cluster
  trainium.cluster.internal.cluster_resources:
    cluster_name: bert

- name: Delete it
  trainium.cluster.internal.cluster_resources:
    cluster_name: bert
    state: absent
"""

RETURN = r"""
found:
  description: What belonged to the cluster, names by kind. Kinds of which there was nothing are left out.
  returned: success
  type: dict
  sample: {"VPCs": ["vpc-0a1b2c3d4e5f60001"]}
unmarked:
  description: What of RV(found) does not carry the tag O(mark), names by kind.
  returned: with O(mark)
  version_added: 0.3.0
  type: dict
left:
  description: The same as RV(found) at the end.
  returned: success
  type: dict
kept:
  description: The log groups that stay because of O(keep_logs).
  returned: success
  type: list
  elements: str
  sample: ["/aws/eks/bert/cluster"]
kept_file_systems:
  description: The file systems that stay, each with what it costs and how it goes.
  returned: success
  type: list
  elements: str
kept_images:
  description: The images of nodes that stay, each with what it costs and how it goes.
  returned: success
  version_added: 0.3.0
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible.module_utils.common.warnings import warn
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run import CapacityReservation
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import failing
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import is_owner, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._ecr.run import REPOSITORIES, RepositoriesOf
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run_teardown import EfsOf
from ansible_collections.trainium.cluster.plugins.module_utils._eks.plan_balancers import told
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_balancers import (
    BALANCERS,
    INTERFACES,
    BalancersOf,
)
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_teardown import EksOf, LogsOf
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run_teardown import FsxOf
from ansible_collections.trainium.cluster.plugins.module_utils._iam.run import NodeProfile
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.calls import look, narrowed, own_images
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS, names_of
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.run import Maker, Names, Teardown

ARGUMENTS: dict[str, dict[str, Any]] = {
    "cluster_name": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["listed", "absent"], "default": "listed"},
    "keep_logs": {"type": "bool", "default": True},
    "keep_shared_storage": {"type": "bool"},
    "mark": {"type": "str"},
}


def _whose(module: AnsibleAWSModule) -> dict[str, str]:
    return {key: module.params[key] for key in ("cluster_name", "owner")}


def _reservations(module: AnsibleAWSModule) -> Maker:
    """Capacity reservations and the resource groups that were made for them."""
    clients = (module.client("ec2"), module.client("ec2"), module.client("resource-groups"))
    params = {**_whose(module), "state": "absent", "resource_group": None}

    def names(check_mode: bool) -> Names:
        request = {**params, "wait": True, "wait_timeout": 300}
        result = CapacityReservation(*clients, request, check_mode, warn).run()
        groups = result["deleted_groups"] + result["kept_groups"]
        return {"capacity reservations": result["cancelled"], "resource groups": groups}

    return Maker(lambda: names(True), lambda: names(False))


def _vpcs(module: AnsibleAWSModule) -> Callable[[], list[str]]:
    """Looks for the VPCs that carry the cluster's tag."""
    client, name = module.client("ec2"), module.params["cluster_name"]
    (vpcs,) = (kind for kind in KINDS if kind.name == "VPCs")
    return lambda: names_of(vpcs, look(client, vpcs, name))


def _own_networks(module: AnsibleAWSModule, clusters: EksOf) -> Callable[[], set[str]]:
    """Looks for the VPCs with the tags of cluster and owner in which nobody else's cluster of EKS has its name."""
    client, whose = module.client("ec2"), _whose(module)
    (vpcs,) = (kind for kind in KINDS if kind.name == "VPCs")

    def networks() -> set[str]:
        found = look(client, vpcs, whose["cluster_name"])
        return set(names_of(vpcs, [one for one in found if is_owner(tags_of(one), whose)])) - clusters.strangers

    return networks


def _profiles(module: AnsibleAWSModule) -> dict[str, Maker]:
    """The instance profile of the nodes, its role and those of EKS."""
    mine = NodeProfile(module.client("iam"), module.region, module.params["cluster_name"])
    return {
        "instance profiles": Maker(lambda: {"instance profiles": mine.profiles()}, mine.delete_profiles),
        "IAM roles": Maker(lambda: {"IAM roles": mine.roles()}, mine.delete_roles),
    }


def _images(module: AnsibleAWSModule) -> list[str]:
    """The images of nodes, to be put into a sentence. Who may not look for them can delete the rest nevertheless."""
    name, owner = _whose(module).values()
    try:
        found = own_images(module.client("ec2"), name, owner)
    except AwsCallError as error:
        warn(f"{error}; where image.yml built images for the cluster {name}, they stay and are billed")
        return []
    how = f"aws ec2 deregister-image --region {module.region} --delete-associated-snapshots --image-id"
    return [f"the image {one}, which is billed until: {how} {one}" for one in found]


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name = module.params["cluster_name"]
    # EC2's filters would take them for patterns, and find the clusters of others.
    if not name or set(name) & set("*?\\"):
        module.fail_json(msg=f"cluster_name is '{name}'; give the name of one cluster, without * and ?.")
    tagged, whose = _vpcs(module), (name, module.params["owner"])
    # File systems, but for those that are kept or that a stack was told to retain; of EFS the mount targets of these.
    storage = EfsOf(module.client("efs"), *whose, module.params["keep_shared_storage"], tagged)
    lustre = FsxOf(module.client("fsx"), *whose, module.params["keep_shared_storage"])
    clusters = EksOf(module.client("eks"), module.client("ec2"), *whose)
    own = _own_networks(module, clusters)
    # In its own network, and in that of the user in which its cluster of EKS was.
    clients = (module.client("elb"), module.client("elbv2"), module.client("ec2"))
    balancers = BalancersOf(clients, name, lambda: clusters.networks.union(own()), tagged)
    logs = LogsOf(module.client("logs"), name, module.params["keep_logs"])
    images = RepositoriesOf(module.client("ecr"), name, module.params["owner"])
    with failing(module, "cluster_resources", name):
        makers = {
            **_profiles(module),
            "capacity reservations": _reservations(module),
            "file systems": Maker(lustre.look, lustre.delete),
            "EFS file systems": Maker(storage.look, storage.delete),
            "EKS clusters": Maker(clusters.look, clusters.delete),
            BALANCERS: Maker(balancers.look, balancers.delete),
            INTERFACES: Maker(balancers.lingering, balancers.wait_gone),
            "log groups": Maker(logs.look, logs.delete),
            REPOSITORIES: Maker(images.look, images.delete),
        }
        teardown = Teardown(narrowed(module.client("ec2")), makers, name, module.params["owner"], lustre.networks, own)
        found = left = teardown.look()
        mark = module.params["mark"]
        unmarked = {"unmarked": teardown.unmarked(found, mark)} if mark else {}
        absent = module.params["state"] == "absent"
        if found and absent and not module.check_mode:
            teardown.delete(found)
            left = teardown.look()
        kept = logs.kept()
    stays = [*lustre.told, *storage.told]
    for service, foreign in (("ECR", images.foreign), ("EFS", storage.foreign), ("FSx", lustre.foreign)):
        if foreign:
            warn(
                f"{', '.join(foreign)} of {service} carries the tag of the cluster {name}, but not your tag "
                "trainium:owner, and is passed over"
            )
    if images.unseen:
        warn(f"{images.unseen}; where the cluster {name} has images of trainings, they stay and are billed")
    # Clusters of another backend have none, and those of EKS can have some in a network of the user's.
    if balancers.unseen and (clusters.networks or (left and absent)):
        warn(f"{balancers.unseen}; where Services or Ingresses of the cluster {name} made load balancers, they stay")
    if storage.unseen:
        warn(
            f"the mount targets of {', '.join(sorted(storage.unseen))} cannot be looked at, since the action "
            "elasticfilesystem:DescribeMountTargets is not allowed; where they lie in a network of the cluster "
            f"{name}, delete them, then run teardown again"
        )
    if left and absent and not module.check_mode:
        reasons = "".join(f"{reason}; " for reason in teardown.reasons[:1])
        # Its network cannot go before it.
        theirs = [
            f"the file system {one} does not carry your tag trainium:owner, set it if it is yours"
            for one in lustre.foreign
        ]
        reasons += "".join(f"{one}; " for one in (*lustre.retained, *theirs, told(balancers.foreign)) if one)
        module.fail_json(
            msg=f"The cluster {name} still has {left} in {module.region}; {reasons}look into what uses them, then run "
            "teardown again.",
            left=left,
            reasons=teardown.reasons,
        )
    result: dict[str, Any] = {"changed": bool(found) and absent, "found": found, "left": left, "kept": kept, **unmarked}
    result["kept_file_systems"] = stays
    result["kept_images"] = _images(module)
    if module._diff and absent:
        result["diff"] = {"before": found, "after": {}}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
