# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What to do about a managed node group of EKS. Pure.

A *group* is a flat dict made of the ``nodegroup`` of DescribeNodegroup, see ``group_of``. What can be changed: the API
reference of UpdateNodegroupConfig and UpdateNodegroupVersion; the latter replaces every node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import own_tags

Group = dict[str, Any]
Item = dict[str, Any]
Params = Mapping[str, Any]

# Option -> field of CreateNodegroup; EKS changes none of them.
_FIXED = {
    "node_role_arn": "nodeRole",
    "ami_type": "amiType",
    "capacity_type": "capacityType",
    "instance_types": "instanceTypes",
}
# Old nodes end before new ones come; with DEFAULT EKS launches more first, for which what is reserved or scarce has no
# room (API reference of NodegroupUpdateConfig).
STRATEGY = "MINIMAL"
# What a failed group says where another zone may have what this one lacks.
_CAPACITY = ("InsufficientInstanceCapacity", "InsufficientFreeAddresses", "UnfulfillableCapacity", "sufficient")


class GroupPlan(NamedTuple):
    """``again``: a failed group goes first; ``config`` and ``version``: requests without names, empty for no change.

    ``outdated`` says in which respect the nodes are not as wanted, and stay so unless they may be replaced.
    """

    create: bool
    again: bool
    config: Item
    version: Item
    tags: dict[str, str]
    outdated: list[str]

    @property
    def changes(self) -> bool:
        return bool(self.create or self.again or self.config or self.version or self.tags)


def group_of(item: Mapping[str, Any]) -> Group:
    """The fields that matter, flat."""
    template, issues = item.get("launchTemplate") or {}, (item.get("health") or {}).get("issues") or ()
    groups = (item.get("resources") or {}).get("autoScalingGroups") or ()
    scaling, update = item.get("scalingConfig") or {}, item.get("updateConfig") or {}
    return {
        "name": item["nodegroupName"],
        "arn": item.get("nodegroupArn") or "",
        "status": item.get("status") or "",
        "version": item.get("version") or "",
        "release_version": item.get("releaseVersion") or "",
        "node_role_arn": item.get("nodeRole") or "",
        "ami_type": item.get("amiType") or "",
        "capacity_type": item.get("capacityType") or "",
        "instance_types": list(item.get("instanceTypes") or ()),
        "subnets": sorted(item.get("subnets") or ()),
        "launch_template": {key: str(template[key]) for key in ("id", "name", "version") if key in template},
        "count": int(scaling.get("desiredSize") or 0),
        "min_size": int(scaling.get("minSize") or 0),
        "max_size": int(scaling.get("maxSize") or 0),
        "labels": dict(item.get("labels") or {}),
        "taints": [_taint(one) for one in item.get("taints") or ()],
        "max_unavailable": int(update.get("maxUnavailable") or 0),
        "update_strategy": update.get("updateStrategy") or "DEFAULT",
        "node_repair": bool((item.get("nodeRepairConfig") or {}).get("enabled")),
        "autoscaling_group": next((one["name"] for one in groups), ""),
        "tags": dict(item.get("tags") or {}),
        "issues": [f"{one.get('code')}: {one.get('message')}" for one in issues],
    }


def _taint(one: Mapping[str, Any]) -> Item:
    return {"key": one["key"], "value": one.get("value") or "", "effect": one["effect"]}


def scaling(params: Params) -> Item:
    """The numbers of nodes. Raises TrainiumError where they contradict each other."""
    count = params["count"]
    least = count if params.get("min_size") is None else params["min_size"]
    most = max(count, 1) if params.get("max_size") is None else params["max_size"]
    if not 0 <= least <= count <= most or most < 1:
        raise TrainiumError(
            f"min_size {least}, count {count} and max_size {most} do not fit; give 0 <= min_size <= count <= max_size"
        )
    return {"minSize": least, "desiredSize": count, "maxSize": most}


def check_arguments(params: Params) -> None:
    """What can be seen without AWS."""
    if params["state"] != "present":
        return
    scaling(params)
    template = params.get("launch_template") or {}
    if bool(template.get("id")) == bool(template.get("name")) and template:
        raise TrainiumError("launch_template needs an id or a name, and only one of them")
    if params.get("capacity_type") == "CAPACITY_BLOCK" and not template:
        raise TrainiumError("capacity_type CAPACITY_BLOCK needs a launch_template with the market capacity-block")


def check_new(params: Params, check_mode: bool) -> None:
    """What a new group needs. In check mode what earlier tasks would have made may be missing."""
    for option in ("node_role_arn", "subnets"):
        if not params.get(option) and not check_mode:
            raise TrainiumError(f"{option} is empty; a new node group needs it")


def creation(params: Params, subnets: Sequence[str]) -> Item:
    """The request of CreateNodegroup."""
    request: Item = {
        "clusterName": params["cluster"],
        "nodegroupName": params["name"],
        "subnets": list(subnets),
        "scalingConfig": scaling(params),
        "labels": dict(params.get("labels") or {}),
        "taints": [_taint(one) for one in params.get("taints") or ()],
        "tags": own_tags(params),
        **{name: params[option] for option, name in _FIXED.items() if params.get(option)},
    }
    optional = {
        "launchTemplate": {key: str(value) for key, value in (params.get("launch_template") or {}).items() if value},
        "releaseVersion": params.get("release_version"),
        "version": None if params.get("release_version") else params.get("version"),
        "updateConfig": {"maxUnavailable": params.get("max_unavailable") or 1, "updateStrategy": STRATEGY},
        "nodeRepairConfig": {"enabled": True} if params.get("node_repair") else None,
    }
    request.update({key: value for key, value in optional.items() if value})
    return request


def plan_group(current: Group | None, params: Params) -> GroupPlan:
    """What to do. An option that is not given stays as it is. Raises TrainiumError for what EKS does not change."""
    if current is None:
        return GroupPlan(True, False, {}, {}, {}, [])
    if current["status"] == "CREATE_FAILED":
        return GroupPlan(True, True, {}, {}, {}, [])
    if current["status"] == "DELETING":
        raise TrainiumError("the node group is being deleted; wait until it is gone and run again")
    _check_fixed(current, params)
    if params["count"] < current["count"] and not params["allow_shrink"]:
        raise TrainiumError(
            f"the node group has {current['count']} nodes and count is {params['count']}, which would terminate nodes "
            f"with whatever runs there; give count={current['count']}, or set allow_shrink=true (for the playbooks, "
            f"trainium_node_count={current['count']} or trainium_allow_shrink=true)"
        )
    version, outdated = _version(current, params)
    replaces = bool(params["replace_nodes"])
    # User guide, "Create a managed node group with Capacity Blocks for ML".
    if version and replaces and current["capacity_type"] == "CAPACITY_BLOCK" and current["count"]:
        if params["count"]:
            raise TrainiumError(_first_none(params, outdated))
        # They drain for minutes after the number has changed.
        replaces = False
    tags = own_tags(params)
    missing = {key: value for key, value in tags.items() if current["tags"].get(key) != value}
    return GroupPlan(False, False, _config(current, params), version if replaces else {}, missing, outdated)


def _first_none(params: Params, outdated: Sequence[str]) -> str:
    """How a group of a Capacity Block loses its nodes; the playbooks take no number of 0."""
    region = f" --region {params['region']}" if params.get("region") else ""
    return (
        f"the node group has {'; '.join(outdated)}, and EKS changes that of a Capacity Block only while it has no "
        "nodes; end them and what runs there with 'aws eks update-nodegroup-config --cluster-name "
        f"{params['cluster']} --nodegroup-name {params['name']}{region} --scaling-config minSize=0,desiredSize=0', and "
        "run this again when its instances are terminated"
    )


def _check_fixed(current: Group, params: Params) -> None:
    template, subnets = params.get("launch_template") or {}, sorted(params.get("subnets") or ())
    problems = [
        f"has {option} {_text(current[option])}, not {_text(params[option])}, which EKS cannot change"
        for option in _FIXED
        if params.get(option) and params[option] != current[option]
    ]
    # Further ones are a choice for new groups: a network that got another zone does not end a group that works.
    if subnets and not set(current["subnets"]) <= set(subnets):
        there, wanted = _text(current["subnets"]), _text(subnets)
        problems.append(f"is in the subnets {there}, not in {wanted}, which EKS cannot change")
    if template and not current["launch_template"]:
        problems.append("was made without a launch template, which EKS cannot add")
    for key in ("id", "name"):
        known = current["launch_template"].get(key)
        if template.get(key) and known not in (None, template[key]):
            problems.append(f"has the launch template {known}, not {template[key]}, which EKS cannot change")
    if problems:
        raise TrainiumError(f"the node group {problems[0]}; remove it with state=absent first, or choose another name")


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _config(current: Group, params: Params) -> Item:
    """The request of UpdateNodegroupConfig, as far as something changes."""
    request: Item = {}
    wanted = scaling(params)
    if wanted != {"minSize": current["min_size"], "desiredSize": current["count"], "maxSize": current["max_size"]}:
        request["scalingConfig"] = wanted
    if params.get("labels") is not None:
        put = {key: value for key, value in params["labels"].items() if current["labels"].get(key) != value}
        gone = sorted(set(current["labels"]) - set(params["labels"]))
        labels = {"addOrUpdateLabels": put, "removeLabels": gone}
        request.update({"labels": {key: value for key, value in labels.items() if value}} if put or gone else {})
    if params.get("taints") is not None:
        taints = [_taint(one) for one in params["taints"]]
        put_taints = [one for one in taints if one not in current["taints"]]
        keys = [(one["key"], one["effect"]) for one in taints]
        gone_taints = [one for one in current["taints"] if (one["key"], one["effect"]) not in keys]
        change = {"addOrUpdateTaints": put_taints, "removeTaints": gone_taints}
        if put_taints or gone_taints:
            request["taints"] = {key: value for key, value in change.items() if value}
    number = params.get("max_unavailable") or current["max_unavailable"] or 1
    if number != current["max_unavailable"] or current["update_strategy"] != STRATEGY:
        request["updateConfig"] = {"maxUnavailable": number, "updateStrategy": STRATEGY}
    if params.get("node_repair") is not None and params["node_repair"] != current["node_repair"]:
        request["nodeRepairConfig"] = {"enabled": params["node_repair"]}
    return request


def _version(current: Group, params: Params) -> tuple[Item, list[str]]:
    """The request of UpdateNodegroupVersion, and what it would change; both empty where the nodes are as wanted."""
    request: Item = {}
    outdated = []
    wanted = params.get("release_version")
    if wanted and wanted != current["release_version"]:
        request["releaseVersion"] = wanted
        outdated.append(f"release {current['release_version']} of the image, not {wanted}")
    version = None if wanted else params.get("version")
    if version and version != current["version"]:
        request["version"] = version
        outdated.append(f"Kubernetes {current['version']}, not {version}")
    template = str((params.get("launch_template") or {}).get("version") or "")
    if template and template != current["launch_template"].get("version"):
        request["launchTemplate"] = {"id": current["launch_template"]["id"], "version": template}
        outdated.append(f"version {current['launch_template'].get('version')} of the launch template, not {template}")
    # Without a release EKS takes the latest image of the version (API reference of UpdateNodegroupVersion).
    if request and "version" not in request and current["ami_type"] != "CUSTOM":
        request.setdefault("releaseVersion", current["release_version"])
    return request, outdated


def warning(plan: GroupPlan, name: str, may: bool = False) -> str:
    """For nodes that are not as wanted and may not be replaced, or ``may``, but not before they are ended."""
    if may:
        return (
            f"{name} has {'; '.join(plan.outdated)}; run this again when its instances are terminated to change that."
        )
    return (
        f"The nodes of {name} have {'; '.join(plan.outdated)}. EKS would replace every one of them, with what runs "
        "there; set replace_nodes=true to let it (for the playbooks, eks_cluster_replace_nodes)."
    )


def is_lack(issues: Sequence[str]) -> bool:
    """Whether a group failed for what another zone may have."""
    return any(word in issue for issue in issues for word in _CAPACITY)


def predicted(params: Params, plan: GroupPlan, current: Group | None) -> Group:
    """The group as it will be."""
    numbers = scaling(params)
    sizes = {"count": numbers["desiredSize"], "min_size": numbers["minSize"], "max_size": numbers["maxSize"]}
    options = (*_FIXED, "release_version", "version", "labels", "node_repair")
    given = {key: params[key] for key in options if params.get(key) is not None}
    given["update_strategy"] = STRATEGY
    given["max_unavailable"] = params.get("max_unavailable") or (current or {}).get("max_unavailable") or 1
    if params.get("taints") is not None:
        given["taints"] = [_taint(one) for one in params["taints"]]
    if current is None or plan.again:
        template = {key: str(value) for key, value in (params.get("launch_template") or {}).items() if value}
        new = group_of({"nodegroupName": params["name"], "subnets": params.get("subnets"), "launchTemplate": template})
        return {**new, **given, **sizes, "tags": own_tags(params)}
    if not plan.version:
        given = {key: value for key, value in given.items() if key not in ("release_version", "version")}
    return {**current, **given, **sizes, "tags": {**current["tags"], **plan.tags}}


def lasting(group: Mapping[str, Any]) -> Item:
    """Without what comes and goes by itself."""
    return {key: value for key, value in group.items() if key not in ("status", "issues", "autoscaling_group")}
