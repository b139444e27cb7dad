"""Access entries and access policies: who a caller is in a cluster, and what EKS's own rules allow."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.kubernetes.inside import access

ARN = "arn:aws:eks::aws:cluster-access-policy/"


def entry(policy: str, namespaces: list[str] | None = None) -> dict[str, Any]:
    scope = {"type": "namespace", "namespaces": namespaces} if namespaces else {"type": "cluster", "namespaces": []}
    return {"principal_arn": "arn:aws:iam::1:role/r", "policy_scopes": {f"{ARN}{policy}": scope}}


def asks(verb: str, resource: str, group: str = "", namespace: str = "default") -> dict[str, Any]:
    name, _slash, part = resource.partition("/")
    return {
        "resourceAttributes": {
            "verb": verb,
            "resource": name,
            "subresource": part,
            "group": group,
            "namespace": namespace,
        }
    }


@pytest.mark.parametrize(
    ("policy", "verb", "resource", "group", "allowed"),
    [
        ("AmazonEKSViewPolicy", "list", "pods", "", True),
        ("AmazonEKSViewPolicy", "get", "pods/log", "", True),
        ("AmazonEKSViewPolicy", "get", "secrets", "", False),
        ("AmazonEKSViewPolicy", "create", "pods", "", False),
        ("AmazonEKSViewPolicy", "list", "nodes", "", False),
        ("AmazonEKSEditPolicy", "create", "jobs", "batch", True),
        ("AmazonEKSEditPolicy", "create", "pods/exec", "", True),
        ("AmazonEKSEditPolicy", "get", "secrets", "", True),
        # Nothing of custom resources is in it, Volcano's Jobs among them.
        ("AmazonEKSEditPolicy", "create", "jobs", "batch.volcano.sh", False),
        ("AmazonEKSEditPolicy", "create", "roles", "rbac.authorization.k8s.io", False),
        ("AmazonEKSAdminPolicy", "create", "roles", "rbac.authorization.k8s.io", True),
        ("AmazonEKSAdminPolicy", "create", "namespaces", "", False),
        ("AmazonEKSAdminViewPolicy", "get", "secrets", "", True),
        ("AmazonEKSAdminViewPolicy", "delete", "secrets", "", False),
        ("AmazonEKSClusterAdminPolicy", "escalate", "clusterroles", "rbac.authorization.k8s.io", True),
        ("AmazonEKSSecretReaderPolicy", "list", "secrets", "", True),
        ("AmazonEKSUnknownPolicy", "list", "pods", "", False),
    ],
)
def test_policies(policy: str, verb: str, resource: str, group: str, allowed: bool) -> None:
    assert access.allows(entry(policy), asks(verb, resource, group)) is allowed


def test_a_scope_of_namespaces_ends_there() -> None:
    scoped = entry("AmazonEKSEditPolicy", ["team-*"])
    assert access.allows(scoped, asks("create", "pods", namespace="team-a"))
    assert not access.allows(scoped, asks("create", "pods", namespace="default"))
    assert not access.allows(scoped, asks("list", "pods", namespace=""))


def test_only_administrators_of_the_cluster_reach_what_is_no_resource() -> None:
    url = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert access.allows(entry("AmazonEKSClusterAdminPolicy"), url)
    assert not access.allows(entry("AmazonEKSClusterAdminPolicy", ["default"]), url)
    assert not access.allows(entry("AmazonEKSAdminViewPolicy"), url)


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        ("arn:aws:iam::1:user/ann", "arn:aws:iam::1:user/ann"),
        ("arn:aws:sts::1:user/moto", "arn:aws:iam::1:user/moto"),
        ("arn:aws:sts::1:assumed-role/admins/ann@example", "arn:aws:iam::1:role/admins"),
        ("arn:aws:iam::1:role/teams/blue/admins", "arn:aws:iam::1:role/admins"),
    ],
)
def test_the_principal_of_a_caller(arn: str, principal: str) -> None:
    assert access.principal(arn) == principal


def test_an_entry_names_the_session() -> None:
    known = [
        {"principal_arn": "arn:aws:iam::1:role/other", "username": "other"},
        {"principal_arn": "arn:aws:iam::1:role/teams/admins", "username": "admins:{{SessionName}}"},
    ]
    arn = "arn:aws:sts::1:assumed-role/admins/ann@example"
    found = access.entry_of(arn, known)
    assert found is known[1]
    assert access.username(found, arn) == "admins:ann-example"
    assert access.entry_of("arn:aws:iam::1:user/ann", known) is None
