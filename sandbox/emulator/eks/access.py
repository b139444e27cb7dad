"""Who may use a cluster: EKS's access entries with their policies; stock moto has none.

Sources: the user guide's pages "Grant IAM users access to Kubernetes with EKS access entries" and "Review access policy
permissions".
"""

from __future__ import annotations

import re
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.core.utils import utcnow
from moto.eks.responses import EKSResponse
from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random
from moto.sts.models import STSBackend, sts_backends
from moto.utilities.utils import get_partition

from sandbox.emulator.eks import state as eks
from sandbox.emulator.eks.state import Cluster, not_now, refuse, wrong
from sandbox.emulator.records import Record

POLICY = "arn:aws:eks::aws:cluster-access-policy/"
POLICIES = tuple(
    f"{POLICY}{name}"
    for name in (
        *("AmazonEKSAdminPolicy", "AmazonEKSAdminViewPolicy", "AmazonEKSClusterAdminPolicy", "AmazonEKSEditPolicy"),
        *("AmazonEKSViewPolicy", "AmazonEKSSecretReaderPolicy"),
    )
)
ADMIN = f"{POLICY}AmazonEKSClusterAdminPolicy"
TYPES = ("STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX")
PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(user|role)/.+|arn:aws[a-z-]*:iam::\d{12}:root")

_identity = STSBackend.get_caller_identity


def _caller_identity(self: Any, access_key_id: str, region: str) -> tuple[str, str, str]:
    """A user's ARN is one of IAM; stock moto gives a key that it does not know one of STS."""
    identity, arn, account = _identity(self, access_key_id, region)
    return identity, arn.replace(":sts:", ":iam:") if ":user/" in arn else arn, account


def caller_of(response: EKSResponse) -> str:
    """The IAM principal that calls: of a role's session the role, with its path."""
    backend = sts_backends[response.current_account][get_partition(response.region)]
    arn = backend.get_caller_identity(response.get_access_key(), response.region)[1]
    session = re.fullmatch(r"arn:([a-z-]+):sts::(\d+):assumed-role/([^/]+)/.*", arn)
    if not session:
        return str(arn)
    partition, account, name = session.groups()
    roles = iam_backends[account][partition].roles.values()
    return next((role.arn for role in roles if role.name == name), f"arn:{partition}:iam::{account}:role/{name}")


def _username(principal: str, kind: str) -> str:
    if kind.startswith("EC2"):
        return "system:node:{{EC2PrivateDNSName}}"
    role = re.fullmatch(r"arn:([a-z-]+):iam::(\d+):role/(?:.*/)?([^/]+)", principal)
    return f"arn:{role[1]}:sts::{role[2]}:assumed-role/{role[3]}/{{{{SessionName}}}}" if role else principal


def _entry(cluster: Cluster, principal: str, kind: str = "STANDARD", **more: Any) -> Record:
    family = "user" if ":user/" in principal else "role"
    entry: Record = {
        "clusterName": cluster.name,
        "principalArn": principal,
        "kubernetesGroups": [],
        "accessEntryArn": cluster.arn("access-entry", family, cluster.account, mock_random.get_random_hex(12)),
        "createdAt": utcnow(),
        "modifiedAt": utcnow(),
        "tags": {},
        "username": _username(principal, kind),
        "type": kind,
        "_policies": {},
        **{key: value for key, value in more.items() if value},
    }
    cluster.entries[principal] = entry
    return entry


def admit_creator(cluster: Cluster, principal: str) -> None:
    _entry(cluster, principal)["_policies"][ADMIN] = {"type": "cluster", "namespaces": []}


def admit_nodes(cluster: Cluster, role: str) -> None:
    """What EKS does when a managed node group is made, where entries count."""
    if cluster.shown["accessConfig"]["authenticationMode"] != "CONFIG_MAP" and role not in cluster.entries:
        _entry(cluster, role, "EC2_LINUX", kubernetesGroups=["system:nodes"])


def described(entry: Record) -> Record:
    """An entry for the authentication of a control plane."""
    return {
        "principal_arn": entry["principalArn"],
        "username": entry["username"],
        "groups": entry["kubernetesGroups"],
        "type": entry["type"],
        "policies": list(entry["_policies"]),
        "policy_scopes": entry["_policies"],
    }


def _cluster_of(response: EKSResponse) -> Cluster:
    cluster = eks.find(response, response.params["clusterName"])
    if cluster.shown["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        modes = "one of [API, API_AND_CONFIG_MAP]"
        not_now(f"The cluster's authentication mode must be set to {modes} to perform this operation.")
    return cluster


def _entry_of(response: EKSResponse) -> Record:
    principal = response.params["principalArn"]
    entry = _cluster_of(response).entries.get(principal)
    if entry is None:
        refuse(
            "ResourceNotFoundException",
            f"The specified principalArn could not be found. You must provide a principalArn. ({principal})",
        )
    return entry


def create_access_entry(self: EKSResponse) -> ActionResult:
    cluster, asked = _cluster_of(self), self.params
    principal, kind = asked["principalArn"], asked.get("type") or "STANDARD"
    if not PRINCIPAL.fullmatch(principal):
        wrong("The principalArn parameter format is not valid")
    # Of the account's own roles and users only those that exist.
    role = eks.role_of(self.current_account, self.region, principal)
    if f"::{self.current_account}:role/" in principal and role is None:
        wrong("The specified principalArn is invalid: invalid principal.")
    if kind not in TYPES:
        wrong(f"The type {kind} is not valid")
    groups = asked.get("kubernetesGroups") or []
    if kind != "STANDARD" and (groups or asked.get("username")):
        wrong(f"The kubernetesGroups and username parameters are not allowed for the type {kind}")
    if any(group.startswith("system:") for group in groups):
        wrong("The kubernetes group name must not start with 'system:'")
    if principal in cluster.entries:
        refuse("ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
    groups = ["system:nodes"] if kind == "EC2_LINUX" else groups
    made = _entry(
        cluster,
        principal,
        kind,
        kubernetesGroups=groups,
        tags=dict(asked.get("tags") or {}),
        username=asked.get("username"),
    )
    return ActionResult({"accessEntry": eks.public(made)})


def describe_access_entry(self: EKSResponse) -> ActionResult:
    return ActionResult({"accessEntry": eks.public(_entry_of(self))})


def update_access_entry(self: EKSResponse) -> ActionResult:
    entry, asked = _entry_of(self), self.params
    if asked.get("kubernetesGroups") is not None:
        entry["kubernetesGroups"] = asked["kubernetesGroups"]
    if asked.get("username"):
        entry["username"] = asked["username"]
    return ActionResult({"accessEntry": eks.public(entry)})


def delete_access_entry(self: EKSResponse) -> ActionResult:
    del _cluster_of(self).entries[_entry_of(self)["principalArn"]]
    return EmptyResult()


def list_access_entries(self: EKSResponse) -> ActionResult:
    policy = self.params.get("associatedPolicyArn")
    entries = _cluster_of(self).entries
    return eks.page(
        self,
        "accessEntries",
        sorted(arn for arn, entry in entries.items() if policy is None or policy in entry["_policies"]),
    )


def list_access_policies(self: EKSResponse) -> ActionResult:
    return eks.page(self, "accessPolicies", [{"name": arn.removeprefix(POLICY), "arn": arn} for arn in POLICIES])


def _shown_policy(arn: str, scope: Record) -> Record:
    return {"policyArn": arn, "accessScope": scope, "associatedAt": utcnow(), "modifiedAt": utcnow()}


def associate_access_policy(self: EKSResponse) -> ActionResult:
    entry, asked = _entry_of(self), self.params
    scope = {"namespaces": [], **asked["accessScope"]}
    if asked["policyArn"] not in POLICIES:
        wrong("The policyArn parameter format is not valid")
    if entry["type"] != "STANDARD":
        not_now(f"Access policies cannot be associated with an access entry of the type {entry['type']}")
    if (scope.get("type") == "namespace") != bool(scope["namespaces"]):
        wrong("The namespaces parameter goes with the type namespace, and only with it")
    entry["_policies"][asked["policyArn"]] = scope
    answer = {"clusterName": entry["clusterName"], "principalArn": entry["principalArn"]}
    return ActionResult({**answer, "associatedAccessPolicy": _shown_policy(asked["policyArn"], scope)})


def disassociate_access_policy(self: EKSResponse) -> ActionResult:
    if _entry_of(self)["_policies"].pop(self.params["policyArn"], None) is None:
        refuse("ResourceNotFoundException", "The specified policyArn is not associated with this access entry")
    return EmptyResult()


def list_associated_access_policies(self: EKSResponse) -> ActionResult:
    found = _entry_of(self)["_policies"]
    return eks.page(self, "associatedAccessPolicies", [_shown_policy(arn, scope) for arn, scope in found.items()])


ACTIONS = (
    *(create_access_entry, describe_access_entry, update_access_entry, delete_access_entry, list_access_entries),
    *(list_access_policies, associate_access_policy, disassociate_access_policy, list_associated_access_policies),
)


def install() -> None:
    STSBackend.get_caller_identity = _caller_identity
