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
  - A file system of EFS or FSx that a stack of CloudFormation has made, such as that of a ParallelCluster, is never
    deleted. If it is of EFS, its mount targets in VPCs of the cluster go.
  - A NAT gateway in the state C(failed) counts as gone; EC2 removes it by itself.
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
      - Who asks. What carries the tag C(trainium:owner) of another is refused, before anything is deleted; of EFS it is
        left alone.
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
      - Whether file systems of EFS stay with all that is in them, and only their mount targets go. They get the tag
        C(trainium:keep) then.
      - Where it is not given, those with that tag stay.
    type: bool
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
left:
  description: The same at the end.
  returned: success
  type: dict
  sample: {}
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
  sample: []
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._capacity.run import CapacityReservation
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._efs.run_teardown import EfsOf
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_teardown import EksOf, LogsOf
from ansible_collections.trainium.cluster.plugins.module_utils._fsx.run import FsxLustre
from ansible_collections.trainium.cluster.plugins.module_utils._iam.run import NodeProfile
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.calls import look
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS, names_of
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.run import Maker, Names, Teardown

ARGUMENTS: dict[str, dict[str, Any]] = {
    "cluster_name": {"type": "str", "required": True},
    "owner": {"type": "str"},
    "state": {"type": "str", "choices": ["listed", "absent"], "default": "listed"},
    "keep_logs": {"type": "bool", "default": True},
    "keep_shared_storage": {"type": "bool"},
}


def _whose(module: AnsibleAWSModule) -> dict[str, str]:
    return {key: module.params[key] for key in ("cluster_name", "owner")}


def _reservations(module: AnsibleAWSModule) -> Maker:
    """Capacity reservations and the resource groups that were made for them."""
    clients = (module.client("ec2"), module.client("ec2"), module.client("resource-groups"))
    params = {**_whose(module), "state": "absent", "resource_group": None}

    def names(check_mode: bool) -> Names:
        request = {**params, "wait": True, "wait_timeout": 300}
        result = CapacityReservation(*clients, request, check_mode, module.warn).run()
        groups = result["deleted_groups"] + result["kept_groups"]
        return {"capacity reservations": result["cancelled"], "resource groups": groups}

    return Maker(lambda: names(True), lambda: names(False))


class _Lustre:
    """File systems of FSx for Lustre; those that a stack was told to retain stay, and are ``spared``."""

    def __init__(self, module: AnsibleAWSModule) -> None:
        self._params = {**_whose(module), "state": "absent", "wait": True, "wait_timeout": 1800}
        self._client = module.client("fsx")
        self.spared: list[str] = []

    def _run(self, check_mode: bool) -> Names:
        work = FsxLustre(self._client, self._params, check_mode)
        result = work.run()
        self.spared = work.spared
        return {"file systems": result["deleted"] + result["deleting"]}

    def look(self) -> Names:
        return self._run(check_mode=True)

    def delete(self) -> None:
        self._run(check_mode=False)

    @property
    def told(self) -> list[str]:
        return [
            f"the file system {one}, which AWS bills and whose network stays with it, since a stack was told to retain "
            "it; delete it yourself"
            for one in self.spared
        ]


def _efs(module: AnsibleAWSModule) -> EfsOf:
    """File systems of EFS, or where these are kept their mount targets."""
    client, (name, owner) = module.client("ec2"), _whose(module).values()
    (vpcs,) = (kind for kind in KINDS if kind.name == "VPCs")
    keep = module.params["keep_shared_storage"]
    return EfsOf(module.client("efs"), name, owner, keep, lambda: names_of(vpcs, look(client, vpcs, name)))


def _profiles(module: AnsibleAWSModule) -> dict[str, Maker]:
    """The instance profile of the nodes, its role and those of EKS."""
    mine = NodeProfile(module.client("iam"), module.region, module.params["cluster_name"])
    return {
        "instance profiles": Maker(lambda: {"instance profiles": mine.profiles()}, mine.delete_profiles),
        "IAM roles": Maker(lambda: {"IAM roles": mine.roles()}, mine.delete_roles),
    }


def _eks(module: AnsibleAWSModule, logs: LogsOf) -> dict[str, Maker]:
    """Clusters of EKS with their node groups and log groups."""
    name = module.params["cluster_name"]
    clusters = EksOf(module.client("eks"), module.client("ec2"), name, module.params["owner"])
    return {
        "EKS clusters": Maker(clusters.look, clusters.delete),
        "log groups": Maker(logs.look, logs.delete),
    }


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    name = module.params["cluster_name"]
    # EC2's filters would take them for patterns, and find the clusters of others.
    if not name or set(name) & set("*?\\"):
        module.fail_json(msg=f"cluster_name is '{name}'; give the name of one cluster, without * and ?.")
    storage, lustre = _efs(module), _Lustre(module)
    logs = LogsOf(module.client("logs"), name, module.params["keep_logs"])
    try:
        makers = {
            **_profiles(module),
            "capacity reservations": _reservations(module),
            "file systems": Maker(lustre.look, lustre.delete),
            "EFS file systems": Maker(storage.look, storage.delete),
            **_eks(module, logs),
        }
        teardown = Teardown(module.client("ec2"), makers, name, module.params["owner"])
        found = left = teardown.look()
        absent = module.params["state"] == "absent"
        if found and absent and not module.check_mode:
            teardown.delete(found)
            left = teardown.look()
        kept = logs.kept()
    except TrainiumError as error:
        module.fail_json(msg=f"cluster_resources {name}: {error}.", **error.details)
    stays = [*lustre.told, *storage.told]
    if storage.foreign:
        module.warn(
            f"{', '.join(storage.foreign)} of EFS carries the tag of the cluster {name}, but not your tag "
            "trainium:owner, and is passed over"
        )
    if storage.unseen:
        module.warn(
            f"the mount targets of {', '.join(sorted(storage.unseen))} cannot be looked at, since the action "
            "elasticfilesystem:DescribeMountTargets is not allowed; where they lie in a network of the cluster "
            f"{name}, delete them, then run teardown again"
        )
    if left and absent and not module.check_mode:
        reasons = "".join(f"{reason}; " for reason in teardown.reasons[:1])
        # Its network cannot go before it.
        reasons += "".join(f"{one}; " for one in lustre.told)
        module.fail_json(
            msg=f"The cluster {name} still has {left} in {module.region}; {reasons}look into what uses them, then run "
            "teardown again.",
            left=left,
            reasons=teardown.reasons,
        )
    result: dict[str, Any] = {"changed": bool(found) and absent, "found": found, "left": left, "kept": kept}
    result["kept_file_systems"] = stays
    if module._diff and absent:
        result["diff"] = {"before": found, "after": {}}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
