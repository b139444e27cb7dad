"""EKS's clusters as EKS has them: late, with versions that it offers or not, and with what it makes beside them.

Stock moto's are ACTIVE at once, take any version, role and subnet, update without DescribeUpdate and know no access
configuration. Node groups, access entries and add-ons are in the files beside this one. Sources: the EKS API reference,
the user guide's pages "Understand the Kubernetes version lifecycle", "Network requirements" and "Security group
requirements". Which version is EKS's default is not published there; here it is 1.35.
"""

from __future__ import annotations

import ipaddress
import json
import re
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends
from moto.eks import urls
from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from sandbox.emulator import state
from sandbox.emulator.eks import access, addons, checks, nodegroups, updates
from sandbox.emulator.eks import state as eks
from sandbox.emulator.eks.state import Cluster, not_now, refuse, wrong
from sandbox.emulator.records import Record

NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")
# What stock moto does not route.
ROUTES = (
    *("clusters/(?P<name>[^/]+)/(?P<rest>.+)", "access-policies", "cluster-versions", "addons/supported-versions"),
)


# --- what is there ---


def settle(cluster: Cluster) -> None:
    """Let happen what time brings."""
    shown = cluster.shown
    if shown["status"] == "CREATING" and not eks.hosted() and eks.is_over(cluster.ready):
        if state.WAITING["mode"] == "fail":
            shown["status"] = "FAILED"
            issue: Record = {"code": "Other", "message": state.WAITING["reason"] or "for the test", "resourceIds": []}
            shown["health"] = {"issues": [issue]}
        else:
            host = f"{mock_random.get_random_hex(32).upper()}.gr7.{cluster.region}.eks.amazonaws.com"
            activate(cluster, f"https://{host}", eks.certificate())
    busy = eks.settle_updates(cluster.updates)
    if shown["status"] in ("ACTIVE", "UPDATING"):
        shown["status"] = "UPDATING" if busy else "ACTIVE"
    for group in list(cluster.groups.values()):
        nodegroups.settle(cluster, group)
    if shown["status"] == "DELETING" and eks.is_over(cluster.gone):
        _remove(cluster)


def activate(cluster: Cluster, endpoint: str, authority: str) -> None:
    """The control plane is there."""
    cluster.shown.update(status="ACTIVE", endpoint=endpoint, certificateAuthority={"data": authority})


def activate_by_name(body: Record) -> Record:
    """For whoever makes control planes: ``name``, ``endpoint`` and ``certificate_authority`` (base64) of one."""
    name, endpoint, authority = (body[key] for key in ("name", "endpoint", "certificate_authority"))
    for cluster in eks.every_cluster():
        if cluster.name == name and cluster.shown["status"] == "CREATING":
            activate(cluster, endpoint, authority)
            return {"name": name, "status": "ACTIVE"}
    raise ValueError(f"there is no cluster {name} that is being created")


def listing() -> list[Record]:
    """What the reconciler of hosts and the authentication of control planes need to know."""
    found = []
    for cluster in eks.every_cluster():
        settle(cluster)
        shown, ec2 = cluster.shown, ec2_backends[cluster.account][cluster.region]
        vpc = ec2.vpcs.get(shown["resourcesVpcConfig"]["vpcId"])
        nodes = [instance.id for group in cluster.groups.values() for instance in nodegroups.living(group)]
        found.append(
            {
                **{key: shown[key] for key in ("name", "arn", "version", "status")},
                "region": cluster.region,
                "service_cidr": shown["kubernetesNetworkConfig"]["serviceIpv4Cidr"],
                "vpc_id": vpc.id if vpc else "",
                "vpc_cidr": vpc.cidr_block if vpc else "",
                "subnet_ids": shown["resourcesVpcConfig"]["subnetIds"],
                "nodes": nodes,
                "access_entries": [access.described(entry) for entry in cluster.entries.values()],
            }
        )
    return [one for one in found if any(cluster.shown["arn"] == one["arn"] for cluster in eks.every_cluster())]


# --- creation and deletion ---


def create_cluster(self: EKSResponse) -> ActionResult:
    asked, known = self.params, eks.clusters_of(self.current_account, self.region)
    name, config = asked["name"], dict(asked["resourcesVpcConfig"])
    token = (asked.get("clientRequestToken") or "", json.dumps(asked, sort_keys=True, default=str))
    if name in known:
        settle(known[name])
    if name in known:
        if token[0] and known[name].token == token:
            return ActionResult({"cluster": known[name].shown})
        refuse("ResourceInUseException", f"Cluster already exists with name: {name}")
    if not NAME.fullmatch(name):
        wrong(f"The name {name} is not valid")
    version, admission = asked.get("version") or checks.DEFAULT, dict(asked.get("accessConfig") or {})
    checks.check_version(version)
    role = eks.role_of(self.current_account, self.region, asked["roleArn"])
    if role is None or not eks.trusts(role, "eks.amazonaws.com"):
        reason = "could not be assumed because it does not exist or the trusted entity is not correct"
        wrong(f"Role with arn: {asked['roleArn']}, {reason}")
    vpc = checks.check_network(self, config)
    config.setdefault("endpointPublicAccess", True)
    config.setdefault("endpointPrivateAccess", False)
    config["publicAccessCidrs"] = config.get("publicAccessCidrs") or (
        ["0.0.0.0/0"] if config["endpointPublicAccess"] else []
    )
    checks.check_endpoint(config)
    service = (asked.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
    if service and ipaddress.ip_network(service).overlaps(ipaddress.ip_network(vpc.cidr_block)):
        wrong("The service CIDR overlaps with the CIDR of the VPC")
    service = service or ("172.20.0.0/16" if vpc.cidr_block.startswith("10.") else "10.100.0.0/16")
    issuer = f"https://oidc.eks.{self.region}.amazonaws.com/id/{mock_random.get_random_hex(32).upper()}"
    shown = {
        "name": name,
        "arn": f"arn:aws:eks:{self.region}:{self.current_account}:cluster/{name}",
        "createdAt": utcnow(),
        "version": version,
        "roleArn": asked["roleArn"],
        "resourcesVpcConfig": {"securityGroupIds": [], **config, "vpcId": vpc.id},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": service, "ipFamily": "ipv4"},
        "logging": checks.logging_of(asked.get("logging")),
        "identity": {"oidc": {"issuer": issuer}},
        "status": "CREATING",
        "certificateAuthority": {},
        "platformVersion": "eks.1",
        "tags": dict(asked.get("tags") or {}),
        "encryptionConfig": asked.get("encryptionConfig") or [],
        "health": {"issues": []},
        "accessConfig": {
            "bootstrapClusterCreatorAdminPermissions": admission.get("bootstrapClusterCreatorAdminPermissions", True),
            "authenticationMode": admission.get("authenticationMode") or "CONFIG_MAP",
        },
        "upgradePolicy": asked.get("upgradePolicy") or {"supportType": "EXTENDED"},
        "deletionProtection": bool(asked.get("deletionProtection")),
    }
    cluster = known[name] = Cluster(shown, self.current_account, self.region, token, eks.later())
    _make_network(cluster, vpc)
    checks.write_logs(cluster)
    if shown["accessConfig"]["bootstrapClusterCreatorAdminPermissions"]:
        access.admit_creator(cluster, access.caller_of(self))
    return ActionResult({"cluster": shown})


def _make_network(cluster: Cluster, vpc: Any) -> None:
    """The cluster's security group, and the interfaces of its control plane: they keep subnets from being deleted."""
    ec2, config = ec2_backends[cluster.account][cluster.region], cluster.shown["resourcesVpcConfig"]
    title = f"eks-cluster-sg-{cluster.name}-{mock_random.get_random_hex(9)}"
    text = "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes"
    owned = {f"kubernetes.io/cluster/{cluster.name}": "owned", "aws:eks:cluster-name": cluster.name, "Name": title}
    group = ec2.create_security_group(title, text, vpc_id=vpc.id, tags=owned)
    ec2.authorize_security_group_ingress(
        group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}], vpc_id=vpc.id
    )
    config["clusterSecurityGroupId"] = group.id
    for subnet in config["subnetIds"][:2]:
        groups = [group.id, *config["securityGroupIds"]]
        interface = ec2.create_network_interface(
            ec2.get_subnet(subnet), None, group_ids=groups, description=f"Amazon EKS {cluster.name}"
        )
        interface.status = "in-use"
        cluster.interfaces.append(interface)


def _remove(cluster: Cluster) -> None:
    ec2 = ec2_backends[cluster.account][cluster.region]
    for interface in cluster.interfaces:
        interface.status = "available"
        ec2.delete_network_interface(interface.id)
    # One that is in use stays, and keeps the VPC.
    with suppress(EC2ClientError):
        ec2.delete_security_group(group_id=cluster.shown["resourcesVpcConfig"]["clusterSecurityGroupId"])
    del eks.clusters_of(cluster.account, cluster.region)[cluster.name]


def delete_cluster(self: EKSResponse) -> ActionResult:
    cluster = eks.find(self, self.params["name"])
    if cluster.groups:
        refuse("ResourceInUseException", "Cluster has nodegroups attached")
    if cluster.shown["deletionProtection"]:
        not_now("Cluster can't be deleted because deletion protection is enabled.")
    if cluster.shown["status"] == "UPDATING":
        refuse("ResourceInUseException", "Cannot delete because the cluster currently has an update in progress")
    if cluster.shown["status"] != "DELETING":
        cluster.shown["status"], cluster.gone = "DELETING", eks.later()
    answer = dict(cluster.shown)
    settle(cluster)
    return ActionResult({"cluster": answer})


def describe_cluster(self: EKSResponse) -> ActionResult:
    return ActionResult({"cluster": eks.find(self, self.params["name"]).shown})


def list_clusters(self: EKSResponse) -> ActionResult:
    known = eks.clusters_of(self.current_account, self.region)
    for cluster in list(known.values()):
        settle(cluster)
    return eks.page(self, "clusters", sorted(known))


def describe_cluster_versions(self: EKSResponse) -> ActionResult:
    asked, today, found = self.params, datetime.now(timezone.utc), []
    for version, patch, standard, extended in checks.VERSIONS:
        ends = [datetime.fromisoformat(f"{day}T00:00:00+00:00") for day in (standard, extended)]
        status = "STANDARD_SUPPORT" if today < ends[0] else "EXTENDED_SUPPORT" if today < ends[1] else "UNSUPPORTED"
        found.append(
            {
                "clusterVersion": version,
                "clusterType": "eks",
                "defaultPlatformVersion": "eks.1",
                "defaultVersion": version == checks.DEFAULT,
                "endOfStandardSupportDate": ends[0],
                "endOfExtendedSupportDate": ends[1],
                "status": status.lower().replace("_", "-"),
                "versionStatus": status,
                "kubernetesPatchVersion": patch,
            }
        )
    wanted = asked.get("clusterVersions")
    found = [
        one
        for one in found
        if (not wanted or one["clusterVersion"] in wanted)
        and (not asked.get("defaultOnly") or one["defaultVersion"])
        and (asked.get("includeAll") or wanted or one["versionStatus"] != "UNSUPPORTED")
        and asked.get("versionStatus") in (None, one["versionStatus"])
    ]
    return eks.page(self, "clusterVersions", found)


ACTIONS = (create_cluster, delete_cluster, describe_cluster, list_clusters, describe_cluster_versions)


_init = EKSResponse.__init__


def _prepared(self: EKSResponse) -> None:
    _init(self)
    self.automated_parameter_parsing = True


def install(pending: float) -> None:
    """``pending``: seconds that each creation, change and deletion takes."""
    eks.DELAY["seconds"] = pending
    eks.SETTLE["cluster"] = settle
    EKSResponse.__init__ = _prepared
    for action in (*ACTIONS, *updates.ACTIONS, *nodegroups.ACTIONS, *access.ACTIONS, *addons.ACTIONS):
        setattr(EKSResponse, action.__name__, action)
    for route in ROUTES:
        urls.url_paths["{0}/" + route + "$"] = urls.response.dispatch
    access.install()
