"""Updates of clusters, which are under way for a while and told of by DescribeUpdate, and all tags of EKS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from moto.core.responses import ActionResult, EmptyResult
from moto.eks.responses import EKSResponse

from sandbox.emulator.eks import addons, checks, nodegroups
from sandbox.emulator.eks import state as eks
from sandbox.emulator.eks.state import Cluster, not_now, refuse, wrong
from sandbox.emulator.records import Record

MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def _updatable(response: EKSResponse) -> Cluster:
    cluster = eks.find(response, response.params["name"])
    if cluster.shown["status"] == "UPDATING":
        refuse("ResourceInUseException", f"Cannot update: cluster {cluster.name} currently has an update in progress")
    if cluster.shown["status"] != "ACTIVE":
        not_now(f"Cluster '{cluster.name}' is not in ACTIVE status")
    return cluster


def _answer(cluster: Cluster, kind: str, params: Record, apply: Callable[[], None]) -> ActionResult:
    update = eks.new_update(cluster.updates, kind, params, apply)
    eks.SETTLE["cluster"](cluster)
    return ActionResult({"update": eks.public(update)})


def update_cluster_version(self: EKSResponse) -> ActionResult:
    cluster, version = _updatable(self), self.params["version"]
    checks.check_version(version)
    now = cluster.shown["version"]
    if int(version.split(".")[1]) != int(now.split(".")[1]) + 1:
        wrong(f"Unsupported Kubernetes minor version update from {now} to {version}")
    behind = [name for name, group in cluster.groups.items() if int(version.split(".")[1]) - group.minor > 3]
    if behind:
        not_now(f"Nodegroups {', '.join(behind)} must be updated before the cluster's version")
    return _answer(cluster, "VersionUpdate", {"Version": version}, lambda: cluster.shown.update(version=version))


def _merge(cluster: Cluster, key: str, value: Any) -> Callable[[], None]:
    def apply() -> None:
        cluster.shown[key] = value
        checks.write_logs(cluster)

    return apply


def update_cluster_config(self: EKSResponse) -> ActionResult:
    """One kind of change a call, and none that changes nothing."""
    cluster, asked = _updatable(self), self.params
    kinds = ("resourcesVpcConfig", "logging", "accessConfig", "upgradePolicy", "deletionProtection")
    given = [key for key in kinds if asked.get(key) is not None]
    if len(given) != 1:
        wrong("Only one type of update can be allowed.")
    key, shown = given[0], cluster.shown
    wanted: Any = asked[key]
    kind = {
        "logging": "LoggingUpdate",
        "accessConfig": "AccessConfigUpdate",
        "upgradePolicy": "UpgradePolicyUpdate",
    }.get(key)
    if key == "resourcesVpcConfig":
        network = {"subnetIds", "securityGroupIds"} & set(wanted)
        kind = "VpcConfigUpdate" if network else "EndpointAccessUpdate"
        if network and set(wanted) - network:
            wrong("Only one type of update can be allowed.")
        wanted = {**shown[key], **wanted}
        if network:
            checks.check_network(self, wanted)
            checks.check_zones(self, shown[key]["subnetIds"], wanted["subnetIds"])
        if not wanted["endpointPublicAccess"]:
            wanted["publicAccessCidrs"] = []
        elif not wanted["publicAccessCidrs"]:
            wanted["publicAccessCidrs"] = ["0.0.0.0/0"]
        checks.check_endpoint(wanted)
    elif key == "logging":
        wanted = checks.logging_of(wanted, shown[key])
    elif key == "accessConfig":
        before, after = shown[key]["authenticationMode"], wanted["authenticationMode"]
        if after != before and MODES.index(after) != MODES.index(before) + 1:
            wrong(f"Unsupported authentication mode update from {before} to {after}")
        wanted = {**shown[key], **wanted}
    if wanted == shown[key]:
        wrong("Cluster is already at the desired configuration")
    return _answer(cluster, kind or "DeletionProtectionUpdate", {}, _merge(cluster, key, wanted))


def _updates(response: EKSResponse) -> dict[str, Record]:
    asked = response.params
    cluster = eks.find(response, asked["name"])
    if asked.get("nodegroupName"):
        updates: dict[str, Record] = nodegroups.find(cluster, asked["nodegroupName"]).updates
        return updates
    return addons.find(cluster, asked["addonName"])["_updates"] if asked.get("addonName") else cluster.updates


def describe_update(self: EKSResponse) -> ActionResult:
    found = _updates(self).get(self.params["updateId"])
    if found is None:
        refuse("ResourceNotFoundException", f"No update found for ID: {self.params['updateId']}")
    return ActionResult({"update": eks.public(found)})


def list_updates(self: EKSResponse) -> ActionResult:
    return eks.page(self, "updateIds", list(_updates(self)))


# --- tags ---


def _tagged(response: EKSResponse) -> Record:
    """The record that an ARN names, whose ``tags`` are its tags."""
    wanted = unquote(response.params["resourceArn"])
    for cluster in list(eks.clusters_of(response.current_account, response.region).values()):
        eks.SETTLE["cluster"](cluster)
        for record, key in _taggable(cluster):
            if record[key] == wanted:
                return record
    return refuse("ResourceNotFoundException", "Resource was not found")


def _taggable(cluster: Cluster) -> Iterator[tuple[Record, str]]:
    yield cluster.shown, "arn"
    yield from ((group.shown, "nodegroupArn") for group in cluster.groups.values())
    yield from ((entry, "accessEntryArn") for entry in cluster.entries.values())
    yield from ((addon, "addonArn") for addon in cluster.addons.values())
    yield from ((one, "associationArn") for one in cluster.associations.values())


def tag_resource(self: EKSResponse) -> ActionResult:
    _tagged(self)["tags"].update(self.params["tags"])
    return EmptyResult()


def untag_resource(self: EKSResponse) -> ActionResult:
    tags = _tagged(self)["tags"]
    for key in self.params["tagKeys"]:
        tags.pop(key, None)
    return EmptyResult()


def list_tags_for_resource(self: EKSResponse) -> ActionResult:
    return ActionResult({"tags": _tagged(self)["tags"]})


ACTIONS = (
    *(update_cluster_version, update_cluster_config, describe_update, list_updates),
    *(tag_resource, untag_resource, list_tags_for_resource),
)
