"""What EKS's access entries and access policies allow. Pure.

The rules are the tables of "Review access policy permissions" in the EKS user guide
(https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html). EKS judges them beside RBAC, in an
authorizer of its own; a namespace of a scope may have wildcards ("Associate access policies with access entries").
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

READ = frozenset({"get", "list", "watch"})
WRITE = frozenset({"create", "delete", "deletecollection", "patch", "update"})


class Rule(NamedTuple):
    """API group (the core group is the empty one), resources and verbs; ``*`` is everything."""

    group: str
    resources: frozenset[str]
    verbs: frozenset[str]


def _rule(group: str, resources: str, verbs: frozenset[str]) -> Rule:
    return Rule(group, frozenset(resources.split()), verbs)


_WORKLOADS = "daemonsets deployments deployments/scale replicasets replicasets/scale"
_STATUS = "daemonsets/status deployments/status replicasets/status"
_OLD = f"{_WORKLOADS} ingresses networkpolicies replicationcontrollers/scale"
_POD_CALLS = "pods/attach pods/exec pods/portforward pods/proxy"
_OBJECTS = "persistentvolumeclaims replicationcontrollers replicationcontrollers/scale serviceaccounts services"

_VIEW = (
    _rule("apps", f"controllerrevisions {_WORKLOADS} {_STATUS} statefulsets statefulsets/scale", READ),
    _rule("apps", "statefulsets/status", READ),
    _rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
    _rule("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
    _rule("discovery.k8s.io", "endpointslices", READ),
    _rule("extensions", f"{_OLD} {_STATUS} ingresses/status", READ),
    _rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
    _rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
    _rule("", f"configmaps endpoints persistentvolumeclaims/status pods {_OBJECTS} services/status", READ),
    _rule("", "bindings events limitranges namespaces/status pods/log pods/status", READ),
    _rule("", "replicationcontrollers/status resourcequotas resourcequotas/status namespaces", READ),
)
_EDIT = (
    *_VIEW,
    _rule("apps", f"{_WORKLOADS} deployments/rollback statefulsets statefulsets/scale", WRITE),
    _rule("autoscaling", "horizontalpodautoscalers", WRITE),
    _rule("batch", "cronjobs jobs", WRITE),
    _rule("extensions", f"{_OLD} deployments/rollback", WRITE),
    _rule("networking.k8s.io", "ingresses networkpolicies", WRITE),
    _rule("policy", "poddisruptionbudgets", WRITE),
    _rule("", f"{_POD_CALLS} secrets services/proxy", READ),
    _rule("", f"pods {_POD_CALLS}", WRITE),
    _rule("", f"configmaps events secrets services/proxy {_OBJECTS}", WRITE),
    _rule("", "serviceaccounts", frozenset({"impersonate"})),
)
_ADMIN = (
    *_EDIT,
    _rule("authorization.k8s.io", "localsubjectaccessreviews", frozenset({"create"})),
    _rule("rbac.authorization.k8s.io", "rolebindings roles", READ | WRITE),
)
POLICIES = {
    "AmazonEKSClusterAdminPolicy": (_rule("*", "*", frozenset("*")),),
    "AmazonEKSAdminPolicy": _ADMIN,
    "AmazonEKSAdminViewPolicy": (_rule("*", "*", READ),),
    "AmazonEKSEditPolicy": _EDIT,
    "AmazonEKSViewPolicy": _VIEW,
    "AmazonEKSSecretReaderPolicy": (_rule("", "secrets", READ),),
}
# The policy that has rules for URLs that are no resources.
EVERYWHERE = "AmazonEKSClusterAdminPolicy"


def principal(arn: str) -> str:
    """The IAM principal behind the ARN that STS names a caller by, without the path that STS leaves out."""
    session = re.fullmatch(r"arn:([a-z-]+):sts::(\d+):assumed-role/([^/]+)/.+", arn)
    if session:
        return "arn:{}:iam::{}:role/{}".format(*session.groups())
    arn = re.sub(r":sts::(\d+):user/", r":iam::\1:user/", arn)
    return re.sub(r":(role|user)/.*/([^/]+)$", r":\1/\2", arn)


def entry_of(arn: str, entries: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The access entry of a caller."""
    wanted = principal(arn)
    return next((entry for entry in entries if principal(entry["principal_arn"]) == wanted), None)


def username(entry: dict[str, Any], arn: str) -> str:
    """The name of a caller in the cluster; a role's entry may take the name of the session into it."""
    session = arn.rpartition("/")[2]
    name: str = entry.get("username") or arn
    return name.replace("{{SessionNameRaw}}", session).replace("{{SessionName}}", session.replace("@", "-"))


def allows(entry: dict[str, Any], attributes: dict[str, Any]) -> bool:
    """Whether a policy of the entry allows what a SubjectAccessReview asks (its ``spec``)."""
    scopes = entry.get("policy_scopes") or {arn: {"type": "cluster"} for arn in entry.get("policies", [])}
    return any(_policy_allows(arn.rpartition("/")[2], scope, attributes) for arn, scope in scopes.items())


def _policy_allows(policy: str, scope: dict[str, Any], attributes: dict[str, Any]) -> bool:
    asked = attributes.get("resourceAttributes")
    if asked is None:
        return policy == EVERYWHERE and scope.get("type") == "cluster"
    namespace = asked.get("namespace", "")
    if scope.get("type") == "namespace":
        within = [name for name in scope.get("namespaces", []) if namespace and fnmatch.fnmatchcase(namespace, name)]
        if not within:
            return False
    resource = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource", ""))))
    wanted = asked.get("group", ""), resource, asked.get("verb", "")
    return any(_matches(rule, *wanted) for rule in POLICIES.get(policy, ()))


def _matches(rule: Rule, group: str, resource: str, verb: str) -> bool:
    return (
        rule.group in ("*", group)
        and bool(rule.resources & {"*", resource})
        and (verb in rule.verbs or "*" in rule.verbs)
    )
