"""EKS's add-ons and pod identity associations, which stock moto lacks.

An add-on whose pods are a Deployment is DEGRADED while the cluster has no node. Sources: the user guide's pages on
add-ons and on EKS Pod Identity. Versions are made up: ``v1.0.0-eksbuild.1`` and ``.2``.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from sandbox.emulator.eks import state as eks
from sandbox.emulator.eks.state import Cluster, refuse, wrong
from sandbox.emulator.records import Record

# Name -> whether its pods are a Deployment.
ADDONS = {
    "vpc-cni": False,
    "kube-proxy": False,
    "coredns": True,
    "eks-pod-identity-agent": False,
    "eks-node-monitoring-agent": False,
    "aws-ebs-csi-driver": True,
    "aws-efs-csi-driver": True,
    "aws-fsx-csi-driver": True,
    "metrics-server": True,
    "amazon-cloudwatch-observability": False,
    "snapshot-controller": True,
}
VERSIONS = ("v1.0.0-eksbuild.2", "v1.0.0-eksbuild.1")


def _settle(cluster: Cluster, addon: Record) -> None:
    eks.settle_updates(addon["_updates"])
    if addon["status"] not in ("CREATING", "DEGRADED") or not eks.is_over(addon["_ready"]):
        return
    nodes = any(group.shown["status"] == "ACTIVE" and group.instances for group in cluster.groups.values())
    lacking = ADDONS[addon["addonName"]] and not nodes
    text = "The add-on is unhealthy because it doesn't have the desired number of replicas."
    issue = {
        "code": "InsufficientNumberOfReplicas",
        "message": text,
        "resourceIds": [],
    }
    addon.update(status="DEGRADED" if lacking else "ACTIVE", health={"issues": [issue] if lacking else []})


def find(cluster: Cluster, name: str) -> Record:
    for addon in list(cluster.addons.values()):
        _settle(cluster, addon)
        if eks.is_over(addon["_gone"]):
            del cluster.addons[addon["addonName"]]
    if name not in cluster.addons:
        refuse("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.name}")
    return cluster.addons[name]


def _associate(cluster: Cluster, response: EKSResponse, asked: Record, owner: str = "") -> Record:
    if eks.role_of(response.current_account, response.region, asked["roleArn"]) is None:
        wrong(f"Role provided in the request does not exist: {asked['roleArn']}")
    for one in cluster.associations.values():
        if (one["namespace"], one["serviceAccount"]) == (asked["namespace"], asked["serviceAccount"]):
            refuse("ResourceInUseException", f"Association already exists: {one['associationId']}")
    identity = f"a-{mock_random.get_random_string(17).lower()}"
    record = {
        "clusterName": cluster.name,
        **{key: asked[key] for key in ("namespace", "serviceAccount", "roleArn")},
        "associationArn": cluster.arn("podidentityassociation", identity),
        "associationId": identity,
        "tags": dict(asked.get("tags") or {}),
        "createdAt": utcnow(),
        "modifiedAt": utcnow(),
        **({"ownerArn": owner} if owner else {}),
    }
    cluster.associations[identity] = record
    return record


def _check_version(name: str, version: str | None) -> str:
    if name not in ADDONS:
        wrong(f"Addon {name} specified is not supported")
    if version and version not in VERSIONS:
        wrong(f"Addon version specified is not supported: {version}")
    return version or VERSIONS[0]


def create_addon(self: EKSResponse) -> ActionResult:
    cluster, asked = eks.find_active(self), self.params
    name = asked["addonName"]
    version = _check_version(name, asked.get("addonVersion"))
    if name in cluster.addons:
        refuse("ResourceInUseException", "Addon already exists.")
    arn = cluster.arn("addon", name, str(mock_random.uuid4()))
    pods = [
        _associate(cluster, self, {"namespace": "kube-system", **one}, arn)["associationArn"]
        for one in asked.get("podIdentityAssociations") or ()
    ]
    given = ("serviceAccountRoleArn", "configurationValues")
    addon: Record = {
        "addonName": name,
        "clusterName": cluster.name,
        "status": "CREATING",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": arn,
        "createdAt": utcnow(),
        "modifiedAt": utcnow(),
        "tags": dict(asked.get("tags") or {}),
        "podIdentityAssociations": pods,
        **{key: asked[key] for key in given if asked.get(key)},
        "_ready": eks.later(),
        "_gone": 0.0,
        "_updates": {},
    }
    cluster.addons[name] = addon
    return ActionResult({"addon": eks.public(addon)})


def describe_addon(self: EKSResponse) -> ActionResult:
    return ActionResult(
        {"addon": eks.public(find(eks.find(self, self.params["clusterName"]), self.params["addonName"]))}
    )


def list_addons(self: EKSResponse) -> ActionResult:
    cluster = eks.find(self, self.params["clusterName"])
    for name in list(cluster.addons):
        if eks.is_over(cluster.addons[name]["_gone"]):
            del cluster.addons[name]
    return eks.page(self, "addons", sorted(cluster.addons))


def update_addon(self: EKSResponse) -> ActionResult:
    cluster, asked = eks.find_active(self), self.params
    addon = find(cluster, asked["addonName"])
    version = _check_version(asked["addonName"], asked.get("addonVersion") or addon["addonVersion"])
    if addon["status"] in ("CREATING", "DELETING"):
        refuse("ResourceInUseException", f"Addon {addon['addonName']} is {addon['status']}")
    given = {key: asked[key] for key in ("serviceAccountRoleArn", "configurationValues") if asked.get(key)}
    update = eks.new_update(
        addon["_updates"],
        "AddonUpdate",
        {"AddonVersion": version},
        lambda: addon.update(addonVersion=version, **given),
    )
    return ActionResult({"update": eks.public(update)})


def delete_addon(self: EKSResponse) -> ActionResult:
    cluster = eks.find(self, self.params["clusterName"])
    addon = find(cluster, self.params["addonName"])
    addon.update(status="DELETING", _gone=addon["_gone"] or eks.later())
    for arn in addon["podIdentityAssociations"]:
        cluster.associations.pop(arn.rpartition("/")[2], None)
    return ActionResult({"addon": eks.public(addon)})


def describe_addon_versions(self: EKSResponse) -> ActionResult:
    asked = self.params
    name, kubernetes = asked.get("addonName"), asked.get("kubernetesVersion") or "1.35"
    if name and name not in ADDONS:
        wrong(f"Addon {name} specified is not supported")

    def offered(version: str) -> Record:
        fits = {"clusterVersion": kubernetes, "platformVersions": ["*"], "defaultVersion": version == VERSIONS[0]}
        return {"addonVersion": version, "architecture": ["amd64", "arm64"], "compatibilities": [fits]}

    found = [
        {
            "addonName": one,
            "owner": "aws",
            "publisher": "eks",
            "addonVersions": [offered(version) for version in VERSIONS],
        }
        for one in ADDONS
        if name in (None, one)
    ]
    return eks.page(self, "addons", found)


def _association_of(response: EKSResponse) -> Record:
    identity = response.params["associationId"]
    found = eks.find(response, response.params["clusterName"]).associations.get(identity)
    if found is None:
        refuse("ResourceNotFoundException", f"No association found with associationId: {identity}")
    return found


def create_pod_identity_association(self: EKSResponse) -> ActionResult:
    return ActionResult({"association": _associate(eks.find_active(self), self, self.params)})


def describe_pod_identity_association(self: EKSResponse) -> ActionResult:
    return ActionResult({"association": _association_of(self)})


def update_pod_identity_association(self: EKSResponse) -> ActionResult:
    found: dict[str, Any] = _association_of(self)
    found["roleArn"] = self.params.get("roleArn") or found["roleArn"]
    return ActionResult({"association": found})


def delete_pod_identity_association(self: EKSResponse) -> ActionResult:
    found = _association_of(self)
    del eks.find(self, self.params["clusterName"]).associations[found["associationId"]]
    return ActionResult({"association": found})


def list_pod_identity_associations(self: EKSResponse) -> ActionResult:
    asked, keys = self.params, ("namespace", "serviceAccount")
    fields = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")
    found = [
        {key: one[key] for key in fields if key in one}
        for one in eks.find(self, self.params["clusterName"]).associations.values()
        if all(asked.get(key) in (None, one[key]) for key in keys)
    ]
    return eks.page(self, "associations", found)


ACTIONS = (
    *(create_addon, describe_addon, list_addons, update_addon, delete_addon, describe_addon_versions),
    *(create_pod_identity_association, describe_pod_identity_association, update_pod_identity_association),
    *(delete_pod_identity_association, list_pod_identity_associations),
)
