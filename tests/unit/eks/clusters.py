"""eks_cluster with its usual arguments, and what EKS is asked for a cluster."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._eks.access import policy_arn
from ansible_collections.trainium.cluster.plugins.module_utils._eks.run import EksCluster

from tests.unit.eks.conftest import Aws
from tests.unit.eks.test_described import CLUSTER

Result = dict[str, Any]
ME, ML, OPS = (f"arn:aws:iam::123456789012:user/{name}" for name in ("me", "ml", "ops"))
PARAMS: Result = {
    "name": "bert",
    "state": "present",
    "version": "",
    "role_arn": CLUSTER["roleArn"],
    "subnets": ["subnet-1", "subnet-2"],
    "public_access_cidrs": ["192.0.2.0/24", "10.0.0.0/8"],
    "authentication_mode": None,
    "admins": None,
    "admit_caller": False,
    "wait": True,
    "wait_timeout": 60,
}
TAGS = {"trainium:cluster": "bert"}


def known(**changes: Any) -> Result:
    return {**CLUSTER, "health": {"issues": []}, "deletionProtection": False, **changes}


class Hurried(EksCluster):
    """Its time is over after one look."""

    def _left(self) -> float:
        return 0.0


class Clusters:
    def __init__(self, api: Aws) -> None:
        self.api, self.warned = api, list[str]()

    def run(self, check: bool = False, caller: tuple[str, bool] = (ME, True), **changes: Any) -> Result:
        return Hurried(self.api.eks, {**PARAMS, **changes}, check, self.warned.append, lambda: caller).run()

    def entry(self, principal: str, tags: Result | None = None, admin: bool = True, scope: str = "cluster") -> None:
        named = {"clusterName": "bert", "principalArn": principal}
        self.api.says("eks", "describe_access_entry", {"accessEntry": {"tags": tags or {}}}, **named)
        given = [{"policyArn": policy_arn(principal), "accessScope": {"type": scope}}] if admin else []
        self.api.says("eks", "list_associated_access_policies", {"associatedAccessPolicies": given}, **named)

    def entries(self, *principals: str) -> None:
        self.api.says("eks", "list_access_entries", {"accessEntries": list(principals)}, clusterName="bert")

    def admits(self, principal: str, role: str = "") -> None:
        named = {"clusterName": "bert", "principalArn": principal}
        if role:
            tags = {"trainium:cluster": "bert", "trainium:role": role}
            self.api.says("eks", "create_access_entry", {"accessEntry": {}}, **named, tags=tags)
        given = {"policyArn": policy_arn(principal), "accessScope": {"type": "cluster"}}
        self.api.says("eks", "associate_access_policy", {}, **named, **given)

    def changes(self, number: str, **request: Any) -> None:
        operation = "update_cluster_version" if "version" in request else "update_cluster_config"
        self.api.says("eks", operation, {"update": {"id": number}}, name="bert", **request)
