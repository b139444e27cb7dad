"""EKS's managed node groups: real instances of the emulated EC2, launched through the group's launch template.

Stock moto's are ACTIVE at once and launch nothing. Sources: the user guide's pages "Customize managed nodes with launch
templates" (what a template must not have, and what the group then must not), "Create a managed node group with Capacity
Blocks for ML", "Amazon EKS node IAM role"; NodegroupIssueCode of the API reference. The group's Auto Scaling group
is not there; what it does is done here, and a node that ends is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moto.core.exceptions import AWSError
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from sandbox.emulator.ec2 import eks_images
from sandbox.emulator.eks import access
from sandbox.emulator.eks import nodegroup_checks as checks
from sandbox.emulator.eks import state as eks
from sandbox.emulator.eks.state import Cluster, not_now, refuse, wrong
from sandbox.emulator.eks.user_data import merged
from sandbox.emulator.launch import lifecycle, run_instances, templates
from sandbox.emulator.records import Record

NEEDED = (("AmazonEKSWorkerNodePolicy", "AmazonEKSWorkerNodeMinimalPolicy"),)
PULL = (
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEC2ContainerRegistryPowerUser",
)


@dataclass
class Group:
    """``shown`` is what DescribeNodegroup shows; ``data`` the fields of its template's version."""

    shown: Record
    data: Record
    ready: float
    gone: float = 0.0
    # Why it will not go, a code of its health.
    stays: str = ""
    instances: list[Any] = field(default_factory=list)
    updates: dict[str, Record] = field(default_factory=dict)

    @property
    def minor(self) -> int:
        return int(self.shown["version"].split(".")[1])


def living(group: Group) -> list[Any]:
    return [instance for instance in group.instances if instance._state.name not in ("terminated", "shutting-down")]


def settle(cluster: Cluster, group: Group) -> None:
    """Let happen what time brings."""
    shown = group.shown
    if shown["status"] == "CREATING" and eks.is_over(group.ready):
        issues = shown["health"]["issues"] or _cannot_join(cluster, group)
        shown["health"] = {"issues": issues}
        if issues:
            shown["status"] = "CREATE_FAILED"
        elif all(instance._state.name == "running" for instance in living(group)):
            shown["status"] = "ACTIVE"
    busy = eks.settle_updates(group.updates)
    if shown["status"] in ("ACTIVE", "UPDATING"):
        shown["status"] = "UPDATING" if busy else "ACTIVE"
        if not busy:
            _scale(cluster, group)
    if shown["status"] == "DELETING":
        over = all(instance._state.name == "terminated" for instance in group.instances)
        if group.stays and eks.is_over(group.gone):
            shown["status"] = "DELETE_FAILED"
            shown["health"] = {"issues": [_issue(group.stays, "The Auto Scaling group was not deleted", [])]}
        elif over and eks.is_over(group.gone):
            del cluster.groups[shown["nodegroupName"]]


def find(cluster: Cluster, name: str) -> Group:
    if name in cluster.groups:
        settle(cluster, cluster.groups[name])
    if name not in cluster.groups:
        refuse("ResourceNotFoundException", f"No node group found for name: {name}.")
    found: Group = cluster.groups[name]
    return found


def _issue(code: str, message: str, resources: list[str]) -> Record:
    return {"code": code, "message": message, "resourceIds": resources}


def _cannot_join(cluster: Cluster, group: Group) -> list[Record]:
    """Why instances that run become no nodes."""
    role = eks.role_of(cluster.account, cluster.region, group.shown["nodeRole"])
    names = {arn.rpartition("/")[2] for arn in (role.managed_policies if role else {})}
    ids = [instance.id for instance in living(group)]
    if not all(names & set(some) for some in (*NEEDED, PULL)):
        return [_issue("NodeCreationFailure", "Instances failed to join the kubernetes cluster", ids)]
    config = cluster.shown["resourcesVpcConfig"]
    own = {name for nic in group.data.get("NetworkInterfaces") or () for name in nic.get("Groups") or ()}
    own |= set(group.data.get("SecurityGroupIds") or ())
    reached = {config["clusterSecurityGroupId"], *config["securityGroupIds"]}
    if own and config["endpointPrivateAccess"] and not own & reached:
        return [_issue("NodeCreationFailure", "Instances failed to join the kubernetes cluster", ids)]
    return []


# --- instances ---


def _image(group: Group) -> str:
    given = group.data.get("ImageId")
    if given:
        return str(given)
    version, release = group.shown["version"], group.shown["releaseVersion"].rpartition("-")[2]
    return eks_images.image_id(eks_images.KINDS[group.shown["amiType"]], version, release)


def _request(cluster: Cluster, group: Group, subnet: str) -> Record:
    """RunInstances of the Auto Scaling group's own template, which is the user's with what EKS adds."""
    shown, named = group.shown, group.shown["launchTemplate"]
    name, config = shown["nodegroupName"], cluster.shown["resourcesVpcConfig"]
    tags = {
        "eks:cluster-name": cluster.name,
        "eks:nodegroup-name": name,
        f"kubernetes.io/cluster/{cluster.name}": "owned",
        f"k8s.io/cluster-autoscaler/{cluster.name}": "owned",
        "k8s.io/cluster-autoscaler/enabled": "true",
        "aws:autoscaling:groupName": shown["resources"]["autoScalingGroups"][0]["name"],
    }
    tag_list = [{"Key": key, "Value": value} for key, value in tags.items()]
    request: Record = {
        "ImageId": _image(group),
        "InstanceType": shown["instanceTypes"][0] if shown.get("instanceTypes") else group.data["InstanceType"],
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tag_list}],
    }
    if not group.data.get("ImageId"):
        request["UserData"] = merged(cluster.shown, shown, request["ImageId"], group.data.get("UserData"))
    if shown["capacityType"] == "SPOT":
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    if group.data.get("NetworkInterfaces"):
        request["NetworkInterfaces"] = [{**nic, "SubnetId": subnet} for nic in group.data["NetworkInterfaces"]]
    else:
        request["SubnetId"] = subnet
        if not group.data.get("SecurityGroupIds"):
            nic = {"DeviceIndex": 0, "SubnetId": request.pop("SubnetId"), "DeleteOnTermination": True}
            request["NetworkInterfaces"] = [{**nic, "Groups": [config["clusterSecurityGroupId"]]}]
    if named:
        request["LaunchTemplate"] = {"LaunchTemplateId": named["id"], "Version": str(named["version"])}
    return request


def _scale(cluster: Cluster, group: Group, surplus: int = 0) -> None:
    """As many instances as are desired; the newest go, and those that have ended are replaced."""
    alive, wanted = living(group), group.shown["scalingConfig"]["desiredSize"] + surplus
    for instance in alive[wanted:]:
        instance.terminate()
    subnets = group.shown["subnets"]
    for number in range(len(alive), wanted):
        try:
            made = run_instances.run(
                cluster.account, cluster.region, _request(cluster, group, subnets[number % len(subnets)])
            )
        except (EC2ClientError, AWSError) as error:
            code, message = getattr(error, "code", None) or error.error_type, error.message
            text = f"Could not launch On-Demand Instances. {code} - {message} Launching EC2 instance failed."
            group.shown["health"] = {
                "issues": [
                    _issue(
                        "AsgInstanceLaunchFailures", text, [group.shown["resources"]["autoScalingGroups"][0]["name"]]
                    )
                ]
            }
            return
        group.instances += made.instances
    if group.shown["status"] == "ACTIVE":
        group.shown["health"] = {"issues": []}


def create_nodegroup(self: EKSResponse) -> ActionResult:
    cluster, asked = eks.find_active(self), self.params
    name = asked["nodegroupName"]
    if name in cluster.groups:
        text = f"NodeGroup already exists with name {name} and cluster name {cluster.name}"
        refuse("ResourceInUseException", text)
    template, data = checks.template_of(cluster, asked.get("launchTemplate"))
    checks.check_template(data, asked)
    data = templates.merge(data, {})
    scaling = {"minSize": 1, "maxSize": 2, "desiredSize": 2, **(asked.get("scalingConfig") or {})}
    checks.check_scaling(scaling)
    role = eks.role_of(self.current_account, self.region, asked["nodeRole"])
    if role is None or not eks.trusts(role, "ec2.amazonaws.com"):
        missing = "were not found in the trust relationships of nodeRole"
        wrong(f"Following required service principals [ec2.amazonaws.com] {missing} {asked['nodeRole']}")
    version = asked.get("version") or cluster.shown["version"]
    behind = int(cluster.shown["version"].split(".")[1]) - int(version.split(".")[1])
    if not 0 <= behind <= 3:
        wrong(f"Nodegroup Kubernetes version {version} does not fit the cluster's, {cluster.shown['version']}")
    custom = bool(data.get("ImageId"))
    ami = "CUSTOM" if custom else asked.get("amiType") or "AL2023_x86_64_STANDARD"
    if not custom and ami not in eks_images.KINDS:
        wrong(f"The sandbox has no images of the amiType {ami}")
    kinds = asked.get("instanceTypes") or ([] if data.get("InstanceType") else ["t3.medium"])
    checks.check_types(kinds or [data["InstanceType"]], ami)
    checks.check_subnets(cluster, asked, data)
    group_name = f"eks-{name}-{mock_random.uuid4()}"
    shown: Record = {
        "nodegroupName": name,
        "nodegroupArn": cluster.arn("nodegroup", name, str(mock_random.uuid4())),
        "clusterName": cluster.name,
        "version": version,
        "releaseVersion": data["ImageId"]
        if custom
        else checks.check_release(asked.get("releaseVersion") or "", version),
        "createdAt": utcnow(),
        "modifiedAt": utcnow(),
        "status": "CREATING",
        "capacityType": asked.get("capacityType") or "ON_DEMAND",
        "scalingConfig": scaling,
        "subnets": asked["subnets"],
        "amiType": ami,
        "nodeRole": asked["nodeRole"],
        "labels": dict(asked.get("labels") or {}),
        "taints": list(asked.get("taints") or []),
        "resources": {"autoScalingGroups": [{"name": group_name}]},
        "health": {"issues": []},
        "updateConfig": asked.get("updateConfig") or {"maxUnavailable": 1},
        "launchTemplate": template,
        "tags": dict(asked.get("tags") or {}),
        **({"instanceTypes": kinds} if kinds else {}),
        **({} if template else {"diskSize": asked.get("diskSize") or 20}),
        **({"nodeRepairConfig": asked["nodeRepairConfig"]} if asked.get("nodeRepairConfig") else {}),
    }
    group = cluster.groups[name] = Group(shown, data, eks.later())
    access.admit_nodes(cluster, asked["nodeRole"])
    _scale(cluster, group)
    return ActionResult({"nodegroup": shown})


def _group_of(response: EKSResponse, still: bool = False) -> tuple[Cluster, Group]:
    """The group that a request names; ``still``: nothing is under way."""
    cluster = eks.find_active(response) if still else eks.find(response, response.params["clusterName"])
    group = find(cluster, response.params["nodegroupName"])
    if still and group.shown["status"] not in ("ACTIVE", "DEGRADED"):
        refuse("ResourceInUseException", f"Nodegroup {group.shown['nodegroupName']} is {group.shown['status']}")
    return cluster, group


def describe_nodegroup(self: EKSResponse) -> ActionResult:
    return ActionResult({"nodegroup": _group_of(self)[1].shown})


def list_nodegroups(self: EKSResponse) -> ActionResult:
    cluster = eks.find(self, self.params["clusterName"])
    for group in list(cluster.groups.values()):
        settle(cluster, group)
    return eks.page(self, "nodegroups", sorted(cluster.groups))


def delete_nodegroup(self: EKSResponse) -> ActionResult:
    cluster, group = _group_of(self)
    if group.shown["status"] != "DELETING":
        group.shown["status"], group.gone = "DELETING", eks.later()
        group.stays = (getattr(lifecycle.LAUNCH, "failures", None) or [""])[0]
        for instance in [] if group.stays else living(group):
            instance.terminate()
    answer = dict(group.shown)
    settle(cluster, group)
    return ActionResult({"nodegroup": answer})


def update_nodegroup_config(self: EKSResponse) -> ActionResult:
    cluster, group = _group_of(self, still=True)
    asked, shown = self.params, group.shown
    scaling = {**shown["scalingConfig"], **(asked.get("scalingConfig") or {})}
    checks.check_scaling(scaling)
    labels, taints = dict(shown["labels"]), list(shown["taints"])
    for key in (asked.get("labels") or {}).get("removeLabels") or ():
        labels.pop(key, None)
    labels.update((asked.get("labels") or {}).get("addOrUpdateLabels") or {})
    change = asked.get("taints") or {}
    put = change.get("addOrUpdateTaints") or []
    going = [(one["key"], one["effect"]) for one in [*put, *(change.get("removeTaints") or ())]]
    taints = [one for one in taints if (one["key"], one["effect"]) not in going] + put
    new = {"scalingConfig": scaling, "labels": labels, "taints": taints}
    new.update({key: asked[key] for key in ("updateConfig", "nodeRepairConfig") if asked.get(key)})

    def apply() -> None:
        shown.update(new, modifiedAt=utcnow())
        _scale(cluster, group)

    update = eks.new_update(group.updates, "ConfigUpdate", {"DesiredSize": str(scaling["desiredSize"])}, apply)
    settle(cluster, group)
    return ActionResult({"update": eks.public(update)})


def update_nodegroup_version(self: EKSResponse) -> ActionResult:
    """Every node is replaced; unless the strategy is MINIMAL, a new one comes first (API's NodegroupUpdateConfig)."""
    cluster, group = _group_of(self, still=True)
    asked, shown = self.params, group.shown
    named = asked.get("launchTemplate")
    if named and not shown["launchTemplate"]:
        not_now("You cannot specify a launch template for a node group that was made without one.")
    template, data = checks.template_of(
        cluster,
        named or {key: shown["launchTemplate"][key] for key in ("id", "version") if shown["launchTemplate"]},
    )
    if named and template["id"] != shown["launchTemplate"]["id"]:
        not_now("You cannot use a different launch template.")
    custom = bool(data.get("ImageId"))
    if custom != (shown["amiType"] == "CUSTOM"):
        not_now("You cannot change between an own image and EKS's.")
    checks.check_template(
        data,
        {
            "capacityType": shown["capacityType"],
            **({"version": asked.get("version") or asked.get("releaseVersion")} if custom else {}),
        },
    )
    if shown["capacityType"] == "CAPACITY_BLOCK" and shown["scalingConfig"]["desiredSize"]:
        not_now("The desired size of a node group with Capacity Blocks must be 0 when it is updated.")
    version = asked.get("version") or (
        cluster.shown["version"] if not asked.get("releaseVersion") else shown["version"]
    )
    if asked.get("releaseVersion") and not asked.get("version"):
        version = ".".join(asked["releaseVersion"].split(".")[:2])
    if int(version.split(".")[1]) > int(cluster.shown["version"].split(".")[1]):
        wrong(f"Nodegroup Kubernetes version {version} is newer than the cluster's, {cluster.shown['version']}")
    release = data["ImageId"] if custom else checks.check_release(asked.get("releaseVersion") or "", version)

    def apply() -> list[Record]:
        old, before = living(group), (group.data, dict(shown))
        group.data = templates.merge(data, {})
        shown.update(version=version, releaseVersion=release, launchTemplate=template, modifiedAt=utcnow())
        if old and shown["updateConfig"].get("updateStrategy") != "MINIMAL":
            _scale(cluster, group, 1)
            if len(living(group)) <= len(old):
                text = shown["health"]["issues"][0]["message"]
                group.data = before[0]
                shown.update(before[1])
                return [{"errorCode": "NodeCreationFailure", "errorMessage": text, "resourceIds": []}]
        for instance in old:
            instance.terminate()
        _scale(cluster, group)
        return []

    update = eks.new_update(group.updates, "VersionUpdate", {"Version": version, "ReleaseVersion": release}, apply)
    settle(cluster, group)
    return ActionResult({"update": eks.public(update)})


ACTIONS = (
    *(create_nodegroup, describe_nodegroup, list_nodegroups, delete_nodegroup),
    *(update_nodegroup_config, update_nodegroup_version),
)
