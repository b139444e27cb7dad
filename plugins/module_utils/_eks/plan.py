# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to do about a cluster of EKS. Pure.

A *cluster* is a flat dict made of the ``cluster`` of DescribeCluster, see ``cluster_of``. EKS takes one kind of change
a call, and one minor version at a time (API reference of UpdateClusterConfig and UpdateClusterVersion; user guide,
"Update existing cluster to new Kubernetes version"). Modes of authentication go one way (user guide, "Change
authentication mode"). Requests carry no token of ours: names are unique, and botocore makes one for its own retries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import own_tags

LOGS = ("api", "audit", "authenticator", "controllerManager", "scheduler")
MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
# What a new cluster has where the arguments say nothing.
DEFAULTS = {"public_access": True, "private_access": True, "authentication_mode": "API", "logging": ()}
# Options of who reaches the endpoint -> fields of both requests.
_ACCESS = {"public_access": "endpointPublicAccess", "private_access": "endpointPrivateAccess"}
_OPEN = "public_access_cidrs is empty, and EKS would open the endpoint to the whole Internet"

Cluster = dict[str, Any]
Params = Mapping[str, Any]
Item = dict[str, Any]


class Update(NamedTuple):
    """One call: UpdateClusterVersion where the request holds ``version``, else UpdateClusterConfig."""

    what: str
    request: Item


class Plan(NamedTuple):
    """``current`` is None where there is no cluster."""

    current: Cluster | None
    updates: list[Update]
    tags: dict[str, str]

    @property
    def changes(self) -> bool:
        return bool(self.current is None or self.updates or self.tags)


def cluster_of(item: Mapping[str, Any]) -> Cluster:
    """The fields that matter, flat."""
    network = item.get("resourcesVpcConfig") or {}
    setups = (item.get("logging") or {}).get("clusterLogging") or ()
    enabled = {kind for setup in setups if setup.get("enabled") for kind in setup.get("types") or ()}
    return {
        "name": item["name"],
        "arn": item.get("arn") or "",
        "status": item.get("status") or "",
        "version": item.get("version") or "",
        "endpoint": item.get("endpoint") or "",
        "certificate_authority": (item.get("certificateAuthority") or {}).get("data") or "",
        "oidc_issuer": ((item.get("identity") or {}).get("oidc") or {}).get("issuer") or "",
        "role_arn": item.get("roleArn") or "",
        "vpc_id": network.get("vpcId") or "",
        "subnets": sorted(network.get("subnetIds") or ()),
        "security_groups": sorted(network.get("securityGroupIds") or ()),
        "cluster_security_group": network.get("clusterSecurityGroupId") or "",
        "public_access": bool(network.get("endpointPublicAccess")),
        "private_access": bool(network.get("endpointPrivateAccess")),
        "public_access_cidrs": sorted(network.get("publicAccessCidrs") or ()),
        "service_cidr": (item.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr") or "",
        "logging": [kind for kind in LOGS if kind in enabled],
        "authentication_mode": (item.get("accessConfig") or {}).get("authenticationMode") or "CONFIG_MAP",
        "support": (item.get("upgradePolicy") or {}).get("supportType") or "EXTENDED",
        "deletion_protection": bool(item.get("deletionProtection")),
        "tags": dict(item.get("tags") or {}),
        "issues": [
            f"{one.get('code')}: {one.get('message')}" for one in (item.get("health") or {}).get("issues") or ()
        ],
    }


# --- versions ---


def minor(version: str) -> int:
    """The second number of ``1.34``."""
    return int(version.split(".")[1])


def check_version(wanted: str, offered: Iterable[Mapping[str, Any]]) -> str:
    """Refuse a version that EKS does not offer; a warning where it costs more, as it is out of standard support.

    ``offered`` are the items of DescribeClusterVersions, which have ``versionStatus`` or, from older APIs, ``status``.
    """
    support = {
        one["clusterVersion"]: str(one.get("versionStatus") or one.get("status")).upper().replace("-", "_")
        for one in offered
    }
    usable = sorted((one for one in support if support[one] != "UNSUPPORTED"), key=minor, reverse=True)
    if wanted not in usable:
        raise TrainiumError(f"EKS does not offer Kubernetes {wanted}; take one of {', '.join(usable)}")
    if support[wanted] == "EXTENDED_SUPPORT":
        standard = [one for one in usable if support[one] == "STANDARD_SUPPORT"]
        return (
            f"Kubernetes {wanted} is in extended support, which costs more by the hour for the cluster; "
            f"{', '.join(standard)} are in standard support."
        )
    return ""


def version_steps(now: str, wanted: str) -> list[str]:
    """The versions on the way, one minor each. Raises TrainiumError for a lower one.

    >>> version_steps("1.34", "1.36")
    ['1.35', '1.36']
    """
    if minor(wanted) < minor(now):
        raise TrainiumError(
            f"version is {wanted}, but the cluster has Kubernetes {now}, which EKS does not lower; give {now}"
        )
    major = now.split(".")[0]
    return [f"{major}.{number}" for number in range(minor(now) + 1, minor(wanted) + 1)]


def check_groups(now: str, wanted: str, groups: Mapping[str, str]) -> None:
    """Refuse several versions at once where node groups would be left behind; ``groups``: name -> version.

    A cluster is updated only where its node groups have its version (API reference of UpdateClusterVersion).
    """
    steps = version_steps(now, wanted)
    behind = sorted(name for name, version in groups.items() if len(steps) > 1 and minor(version) < minor(steps[-2]))
    if behind:
        raise TrainiumError(
            f"the node groups {', '.join(behind)} are older than {steps[-2]}; raise the cluster first to "
            f"{steps[0]}, then its node groups, and so on"
        )


# --- creation ---


def check_new(params: Params, check_mode: bool) -> None:
    """What a new cluster needs. In check mode what earlier tasks would have made may be missing."""
    for option in ("role_arn", "subnets"):
        if not params.get(option) and not check_mode:
            raise TrainiumError(f"{option} is empty; a new cluster needs it")
    if params.get("public_access") is not False and not params.get("public_access_cidrs"):
        raise TrainiumError(f"{_OPEN}; name your networks, or set public_access=false")


def creation(params: Params) -> Item:
    """The request of CreateCluster."""
    full = {**params, **{key: value for key, value in DEFAULTS.items() if params.get(key) is None}}
    network: Item = {field: full[option] for option, field in _ACCESS.items()}
    network["subnetIds"] = list(full.get("subnets") or ())
    if full.get("security_groups"):
        network["securityGroupIds"] = list(full["security_groups"])
    if full["public_access"]:
        network["publicAccessCidrs"] = sorted(full["public_access_cidrs"])
    request: Item = {
        "name": full["name"],
        "roleArn": full.get("role_arn") or "",
        "resourcesVpcConfig": network,
        "accessConfig": {
            "authenticationMode": full["authentication_mode"],
            # Whoever makes the cluster could not use it otherwise, nor let others in by kubectl.
            "bootstrapClusterCreatorAdminPermissions": True,
        },
        "logging": logging_request(full["logging"]),
        "tags": own_tags(full),
    }
    if full.get("version"):
        request["version"] = full["version"]
    if full.get("support"):
        request["upgradePolicy"] = {"supportType": full["support"]}
    if full.get("deletion_protection") is not None:
        request["deletionProtection"] = full["deletion_protection"]
    return request


def logging_request(kinds: Sequence[str]) -> Item:
    """Every type of log, on or off."""
    pairs = ((True, [kind for kind in LOGS if kind in kinds]), (False, [kind for kind in LOGS if kind not in kinds]))
    return {"clusterLogging": [{"types": some, "enabled": on} for on, some in pairs if some]}


# --- changes ---


def plan_cluster(current: Cluster | None, params: Params) -> Plan:
    """What to do. An option that is not given stays as it is. Raises TrainiumError for what EKS does not change."""
    if current is None:
        return Plan(None, [], {})
    if current["status"] == "FAILED":
        reason = "; ".join(current["issues"]) or "EKS gives no reason"
        raise TrainiumError(f"the cluster could not be made: {reason}; remove it with state=absent, then run again")
    if current["status"] == "DELETING":
        raise TrainiumError("the cluster is being deleted; wait until it is gone and run again")
    if params.get("role_arn") and params["role_arn"] != current["role_arn"]:
        raise TrainiumError(
            f"the cluster has the role {current['role_arn']}, not {params['role_arn']}, and EKS does not change it; "
            "give that one, or make another cluster"
        )
    tags = own_tags(params)
    updates = [*_config_updates(current, params)]
    steps = version_steps(current["version"], params["version"]) if params.get("version") else []
    updates += [Update(f"Kubernetes {step}", {"version": step}) for step in steps]
    return Plan(current, updates, {key: value for key, value in tags.items() if current["tags"].get(key) != value})


def _config_updates(current: Cluster, params: Params) -> Iterable[Update]:
    mode = params.get("authentication_mode")
    if mode and mode != current["authentication_mode"]:
        if MODES.index(mode) < MODES.index(current["authentication_mode"]):
            raise TrainiumError(
                f"the cluster has the authentication mode {current['authentication_mode']}, from which there is no way "
                f"back to {mode}; leave authentication_mode out"
            )
        # EKS refuses API from CONFIG_MAP at once (pulumi-eks #1493).
        for step in MODES[MODES.index(current["authentication_mode"]) + 1 : MODES.index(mode) + 1]:
            yield Update("authentication mode", {"accessConfig": {"authenticationMode": step}})
    access = {
        field: params[option] for option, field in _ACCESS.items() if params.get(option) not in (None, current[option])
    }
    public = params.get("public_access")
    public = current["public_access"] if public is None else public
    cidrs = sorted(params.get("public_access_cidrs") or ())
    if public and not current["public_access"] and not cidrs:
        raise TrainiumError(f"{_OPEN}; name your networks")
    if public and cidrs and cidrs != current["public_access_cidrs"]:
        access["publicAccessCidrs"] = cidrs
    if access:
        yield Update("endpoint access", {"resourcesVpcConfig": access})
    network = {}
    if params.get("subnets") and not set(current["subnets"]) <= set(params["subnets"]):
        network["subnetIds"] = sorted(params["subnets"])
    groups = sorted(params.get("security_groups") or ())
    if groups and groups != current["security_groups"]:
        network["securityGroupIds"] = groups
    if network:
        yield Update("subnets and security groups", {"resourcesVpcConfig": network})
    if params.get("logging") is not None and sorted(params["logging"]) != sorted(current["logging"]):
        yield Update("logging", {"logging": logging_request(params["logging"])})
    if params.get("support") and params["support"] != current["support"]:
        yield Update("support", {"upgradePolicy": {"supportType": params["support"]}})
    if params.get("deletion_protection") not in (None, current["deletion_protection"]):
        yield Update("deletion protection", {"deletionProtection": params["deletion_protection"]})


def predicted(params: Params, plan: Plan) -> Cluster:
    """The cluster as it will be; a new one has no address yet."""
    options = (*_ACCESS, "role_arn", "authentication_mode", "support", "deletion_protection", "version")
    given = {key: params[key] for key in options if params.get(key) is not None}
    given.update({key: sorted(params[key]) for key in ("subnets", "security_groups") if params.get(key)})
    if params.get("logging") is not None:
        given["logging"] = [kind for kind in LOGS if kind in params["logging"]]
    if plan.current:
        if set(plan.current["subnets"]) <= set(given.get("subnets", ())):
            given["subnets"] = plan.current["subnets"]
        after = {**plan.current, **given, "tags": {**plan.current["tags"], **plan.tags}}
    else:
        after = {**cluster_of({"name": params["name"]}), **DEFAULTS, **given, "tags": own_tags(params)}
        after["logging"] = list(after["logging"])
    cidrs = sorted(params.get("public_access_cidrs") or after["public_access_cidrs"])
    return {**after, "public_access_cidrs": cidrs if after["public_access"] else []}


def lasting(cluster: Mapping[str, Any]) -> Item:
    """Without what comes and goes by itself, which is no difference that a run made."""
    moving = ("status", "issues", "endpoint", "certificate_authority", "oidc_issuer")
    return {key: value for key, value in cluster.items() if key not in moving}
