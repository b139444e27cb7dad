"""The emulated EKS: clusters come late, are refused and updated as EKS does it, and admit whom they are told to."""

from __future__ import annotations

import base64
from functools import partial
from typing import Any

import pytest

from tests.contract.emulator.eks.conftest import Kubernetes

ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
CALLER = "arn:aws:iam::123456789012:user/moto"


def test_a_cluster_comes_late_with_what_eks_makes_beside_it(kubernetes: Kubernetes) -> None:
    eks = kubernetes.eks
    asked = kubernetes.asked(clientRequestToken="t1", logging={"clusterLogging": [{"types": ["api"], "enabled": True}]})
    first = eks.create_cluster(**asked)["cluster"]
    assert first["status"] == "CREATING" and "endpoint" not in first and not first["certificateAuthority"].get("data")
    assert eks.create_cluster(**asked)["cluster"]["arn"] == first["arn"]
    assert kubernetes.code_of(lambda: eks.create_cluster(**kubernetes.asked())) == "ResourceInUseException"
    made = kubernetes.until("ACTIVE", lambda: eks.describe_cluster(name="c1")["cluster"])
    assert made["endpoint"].startswith("https://") and base64.b64decode(made["certificateAuthority"]["data"])
    assert made["resourcesVpcConfig"]["publicAccessCidrs"] == ["0.0.0.0/0"]
    assert (
        not made["resourcesVpcConfig"]["endpointPrivateAccess"] and made["upgradePolicy"]["supportType"] == "EXTENDED"
    )
    groups = kubernetes.client("logs").describe_log_groups()["logGroups"]
    assert [group["logGroupName"] for group in groups] == ["/aws/eks/c1/cluster"]
    # Its interfaces keep the subnets, its security group is EKS's.
    assert kubernetes.code_of(lambda: kubernetes.ec2.delete_subnet(SubnetId=kubernetes.subnet)) == "DependencyViolation"
    assert eks.delete_cluster(name="c1")["cluster"]["status"] == "DELETING"
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        kubernetes.until("", lambda: eks.describe_cluster(name="c1")["cluster"])
    assert eks.list_clusters()["clusters"] == []
    kubernetes.ec2.delete_subnet(SubnetId=kubernetes.subnet)
    shown = kubernetes.ec2.describe_security_groups(Filters=kubernetes.by("vpc-id", kubernetes.vpc))["SecurityGroups"]
    assert {group["GroupName"] for group in shown} == {"default", "efa"}
    assert kubernetes.client("logs").describe_log_groups()["logGroups"]


def test_a_cluster_that_is_being_made_takes_no_change(slow_kubernetes: Kubernetes) -> None:
    eks = slow_kubernetes.eks
    eks.create_cluster(**slow_kubernetes.asked())
    refused = slow_kubernetes.code_of(lambda: eks.update_cluster_version(name="c1", version="1.35"))
    assert refused == "InvalidRequestException"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "-c"}, "is not valid"),
        ({"version": "1.19"}, "unsupported Kubernetes version 1.19"),
        ({"roleArn": "arn:aws:iam::123456789012:role/none"}, "could not be assumed"),
        ({"one_subnet": True}, "at least two different AZs"),
        ({"vpc": {"endpointPublicAccess": False}}, "Private and public endpoint access cannot be false"),
        ({"vpc": {"publicAccessCidrs": ["10.0.0.0/8"]}}, "not allowed in publicAccessCidrs"),
        ({"vpc": {"securityGroupIds": ["sg-1"]}}, "does not exist"),
        ({"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.66.0.0/24"}}, "overlaps"),
    ],
)
def test_what_eks_refuses(kubernetes: Kubernetes, changes: dict[str, Any], reason: str) -> None:
    network = {
        "subnetIds": kubernetes.subnets[: 1 if changes.pop("one_subnet", False) else 2],
        **changes.pop("vpc", {}),
    }
    with pytest.raises(kubernetes.eks.exceptions.InvalidParameterException, match=reason):
        kubernetes.eks.create_cluster(**kubernetes.asked(**{"resourcesVpcConfig": network, **changes}))


def test_updates_take_time_and_come_one_by_one(kubernetes: Kubernetes) -> None:
    eks, code_of = kubernetes.eks, kubernetes.code_of
    kubernetes.cluster()
    closed = {"endpointPublicAccess": True, "endpointPrivateAccess": True, "publicAccessCidrs": ["192.0.2.10/32"]}
    first = eks.update_cluster_config(name="c1", resourcesVpcConfig=closed)
    assert first["update"]["status"] == "InProgress"
    assert eks.describe_cluster(name="c1")["cluster"]["status"] == "UPDATING"
    assert code_of(lambda: eks.update_cluster_version(name="c1", version="1.35")) == "ResourceInUseException"
    kubernetes.updated(first)
    shown = kubernetes.until("ACTIVE", lambda: eks.describe_cluster(name="c1")["cluster"])
    assert shown["resourcesVpcConfig"]["publicAccessCidrs"] == ["192.0.2.10/32"]
    far = next(zone for zone in ("us-west-2c", "us-west-2d", "us-west-2a") if zone not in kubernetes.zones_used)
    farther = kubernetes.make_subnet("10.66.32.0/20", far)
    for asked in (
        {"resourcesVpcConfig": closed},
        {"resourcesVpcConfig": {"subnetIds": [*kubernetes.subnets, farther]}},
        {"resourcesVpcConfig": closed, "logging": {"clusterLogging": []}},
        {"accessConfig": {"authenticationMode": "CONFIG_MAP"}},
    ):
        assert code_of(partial(eks.update_cluster_config, name="c1", **asked)) == "InvalidParameterException"
    for version in ("1.33", "1.36", "1.99"):
        with pytest.raises(eks.exceptions.InvalidParameterException):
            eks.update_cluster_version(name="c1", version=version)
    kubernetes.updated(eks.update_cluster_version(name="c1", version="1.35"))
    assert eks.describe_cluster(name="c1")["cluster"]["version"] == "1.35"
    assert len(eks.list_updates(name="c1")["updateIds"]) == 2


def test_versions_and_their_support(kubernetes: Kubernetes) -> None:
    shown = kubernetes.eks.describe_cluster_versions()["clusterVersions"]
    support = {one["clusterVersion"]: one["versionStatus"] for one in shown}
    assert support["1.36"] == "STANDARD_SUPPORT" and support["1.33"] == "EXTENDED_SUPPORT" and "1.30" not in support
    (default,) = kubernetes.eks.describe_cluster_versions(defaultOnly=True)["clusterVersions"]
    assert default["clusterVersion"] == "1.35"


def test_access_entries(kubernetes: Kubernetes) -> None:
    eks, code_of = kubernetes.eks, kubernetes.code_of
    kubernetes.cluster()
    role = kubernetes.make_role("team", "ec2.amazonaws.com")
    assert eks.list_access_entries(clusterName="c1")["accessEntries"] == [CALLER]
    assert kubernetes.client("sts").get_caller_identity()["Arn"] == CALLER
    made = eks.create_access_entry(clusterName="c1", principalArn=role, kubernetesGroups=["ml"], tags={"a": "b"})
    assert made["accessEntry"]["username"] == "arn:aws:sts::123456789012:assumed-role/team/{{SessionName}}"
    for asked, code in (
        ({"principalArn": role}, "ResourceInUseException"),
        ({"principalArn": "arn:aws:sts::123456789012:assumed-role/team/me"}, "InvalidParameterException"),
        ({"principalArn": "arn:aws:iam::123456789012:role/none"}, "InvalidParameterException"),
        ({"principalArn": f"{CALLER}2", "kubernetesGroups": ["system:masters"]}, "InvalidParameterException"),
    ):
        assert code_of(partial(eks.create_access_entry, clusterName="c1", **asked)) == code
    named = {"clusterName": "c1", "principalArn": role}
    eks.associate_access_policy(**named, policyArn=ADMIN, accessScope={"type": "cluster"})
    (policy,) = eks.list_associated_access_policies(**named)["associatedAccessPolicies"]
    assert (policy["policyArn"], policy["accessScope"]) == (ADMIN, {"type": "cluster", "namespaces": []})
    (cluster,) = kubernetes.api.control("GET", "clusters")
    assert cluster["vpc_cidr"] == "10.66.0.0/16" and cluster["nodes"] == []
    entries = {entry["principal_arn"]: entry for entry in cluster["access_entries"]}
    assert (entries[role]["groups"], entries[role]["policies"]) == (["ml"], [ADMIN])
    assert entries[CALLER]["username"] == CALLER
    eks.tag_resource(resourceArn=made["accessEntry"]["accessEntryArn"], tags={"c": "d"})
    assert eks.describe_access_entry(**named)["accessEntry"]["tags"] == {"a": "b", "c": "d"}
    eks.disassociate_access_policy(**named, policyArn=ADMIN)
    eks.delete_access_entry(**named)
    assert code_of(lambda: eks.describe_access_entry(**named)) == "ResourceNotFoundException"


def test_a_cluster_with_the_configuration_map_takes_no_entries(kubernetes: Kubernetes) -> None:
    kubernetes.cluster(accessConfig=None)
    assert kubernetes.code_of(lambda: kubernetes.eks.list_access_entries(clusterName="c1")) == "InvalidRequestException"
    steps = [{"authenticationMode": mode} for mode in ("API_AND_CONFIG_MAP", "API")]
    change = partial(kubernetes.eks.update_cluster_config, name="c1")
    assert kubernetes.code_of(lambda: change(accessConfig=steps[1])) == "InvalidParameterException"
    for step in steps:
        kubernetes.updated(change(accessConfig=step))
    assert kubernetes.eks.list_access_entries(clusterName="c1")["accessEntries"] == [CALLER]


def test_addons_and_pod_identities(kubernetes: Kubernetes) -> None:
    eks, code_of = kubernetes.eks, kubernetes.code_of
    kubernetes.cluster()
    assert eks.create_addon(clusterName="c1", addonName="kube-proxy")["addon"]["status"] == "CREATING"
    eks.create_addon(clusterName="c1", addonName="coredns")
    look = {
        name: lambda name=name: eks.describe_addon(clusterName="c1", addonName=name)["addon"]
        for name in ("kube-proxy", "coredns")
    }
    kubernetes.until("ACTIVE", look["kube-proxy"])
    # No node, no replica.
    shown = kubernetes.until("DEGRADED", look["coredns"])
    assert shown["health"]["issues"][0]["code"] == "InsufficientNumberOfReplicas"
    assert code_of(lambda: eks.create_addon(clusterName="c1", addonName="coredns")) == "ResourceInUseException"
    assert code_of(lambda: eks.create_addon(clusterName="c1", addonName="volcano")) == "InvalidParameterException"
    assert eks.describe_addon_versions(addonName="coredns")["addons"][0]["addonVersions"]
    named = {"clusterName": "c1", "namespace": "kube-system", "serviceAccount": "fsx-csi-controller-sa"}
    made = eks.create_pod_identity_association(**named, roleArn=kubernetes.node_role)["association"]
    assert (
        code_of(lambda: eks.create_pod_identity_association(**named, roleArn=kubernetes.role))
        == "ResourceInUseException"
    )
    assert [one["associationId"] for one in eks.list_pod_identity_associations(clusterName="c1")["associations"]] == [
        made["associationId"]
    ]
    eks.delete_pod_identity_association(clusterName="c1", associationId=made["associationId"])
    eks.delete_addon(clusterName="c1", addonName="coredns")
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        kubernetes.until("", look["coredns"])


def test_with_hosts_a_cluster_waits_for_its_control_plane(kubernetes: Kubernetes) -> None:
    api = kubernetes.api
    api.control("POST", "waiting", {"mode": "signal"})
    kubernetes.eks.create_cluster(**kubernetes.asked())
    (seen,) = api.control("GET", "clusters")
    assert (seen["name"], seen["status"], seen["version"]) == ("c1", "CREATING", "1.34")
    plane = {"name": "c1", "endpoint": "https://192.0.2.7:6443", "certificate_authority": "Q0E="}
    assert "error" in api.control("POST", "cluster", {**plane, "name": "c2"})
    assert api.control("POST", "cluster", plane)["status"] == "ACTIVE"
    shown = kubernetes.eks.describe_cluster(name="c1")["cluster"]
    assert (shown["status"], shown["endpoint"], shown["certificateAuthority"]["data"]) == (
        "ACTIVE",
        "https://192.0.2.7:6443",
        "Q0E=",
    )
