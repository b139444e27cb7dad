"""eks_nodegroup with its usual arguments, and what EKS and EC2 are asked for a node group."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._eks import plan_nodegroup as planner
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run_nodegroup import EksNodegroup

from tests.unit.eks.conftest import Aws
from tests.unit.eks.test_described import GROUP

Result = dict[str, Any]
PARAMS: Result = {
    "cluster": "bert",
    "name": "trn",
    "state": "present",
    "count": 2,
    "min_size": 1,
    "max_size": 3,
    "allow_shrink": False,
    "replace_nodes": False,
    "single_zone": False,
    "node_role_arn": GROUP["nodeRole"],
    "subnets": ["subnet-1", "", "subnet-2"],
    "launch_template": {"id": "lt-1", "name": "", "version": "3"},
    "ami_type": "",
    "wait": True,
    "wait_timeout": 60,
}
LACK = {"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity: none."}
ROOM = {"code": "NodeCreationFailure", "message": "failed to join."}


def known(status: str = "ACTIVE", *issues: Result, **changes: Any) -> Result:
    return {**GROUP, "status": status, "health": {"issues": list(issues)}, **changes}


class Hurried(EksNodegroup):
    """Its time is over after one look, but not yet where something is to be deleted."""

    def _left(self) -> float:
        return 0.0


class Groups:
    def __init__(self, api: Aws) -> None:
        self.api, self.warned = api, list[str]()

    def run(self, check: bool = False, kind: type[EksNodegroup] = EksNodegroup, **changes: Any) -> Result:
        return kind(self.api.eks, self.api.ec2, {**PARAMS, **changes}, check, self.warned.append).run()

    def makes(self, *subnets: str, **changes: Any) -> None:
        asked = planner.creation({**PARAMS, "cluster_name": "bert", **changes}, subnets)
        made = {"nodegroup": known("CREATING", subnets=list(subnets))}
        self.api.says("eks", "create_nodegroup", made, **asked)

    def deletes(self) -> None:
        self.api.says("eks", "delete_nodegroup", {"nodegroup": known()}, clusterName="bert", nodegroupName="trn")

    def changes(self, what: str, **request: Any) -> None:
        named = {"clusterName": "bert", "nodegroupName": "trn"}
        self.api.says("eks", f"update_nodegroup_{what}", {"update": {"id": what}}, **named, **request)

    def done(self, what: str) -> None:
        self.api.update(what, "Successful", nodegroupName="trn")

    # --- where a group of one zone may lie ---

    def template(self, **data: Any) -> None:
        asked = {"LaunchTemplateId": "lt-1", "Versions": ["3"]}
        versions = [{"LaunchTemplateData": data}]
        self.api.says("ec2", "describe_launch_template_versions", {"LaunchTemplateVersions": versions}, **asked)

    def subnets(self, **zones: str) -> None:
        asked = [{"Name": "subnet-id", "Values": ["subnet-1", "subnet-2"]}]
        found = [{"SubnetId": name.replace("_", "-"), "AvailabilityZone": zone} for name, zone in zones.items()]
        self.api.says("ec2", "describe_subnets", {"Subnets": found}, Filters=asked)

    def offered(self, instance_type: str, *zones: str) -> None:
        asked = [{"Name": "instance-type", "Values": [instance_type]}]
        found = [{"Location": zone, "InstanceType": instance_type} for zone in zones]
        answer = {"InstanceTypeOfferings": found}
        self.api.says(
            *("ec2", "describe_instance_type_offerings", answer), LocationType="availability-zone", Filters=asked
        )
