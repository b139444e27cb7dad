# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asking for all that there is of a cluster's network: as much as can be at the same time, and the rest after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.at_once import at_once
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    caller_arn,
    filters_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import CLUSTER_TAG, ROLE_TAG, owner_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._network import calls, checks, plan

ATTRIBUTES = ("enableDnsSupport", "enableDnsHostnames")
LIVING = ("pending", "running", "stopping", "stopped")
Question = Callable[[], Any]


class Look:
    """What there is of the cluster that ``params`` name; ``sts`` makes a client of STS, where one is needed."""

    def __init__(self, client: Client, sts: Callable[[], Client], region: str, params: Mapping[str, Any]) -> None:
        self._client, self._sts, self._region, self._params = client, sts, region, params
        self._cluster = params["cluster_name"]
        self._mine = {f"tag:{CLUSTER_TAG}": self._cluster, f"tag:{ROLE_TAG}": "network"}

    def ask(self) -> Item:
        """The result of the module."""
        params, network = self._params, self._params.get("network")
        first = _together(self._first())
        caller = params["caller"] or first.get("caller") or ""
        owner = params["owner"] or owner_of(caller)
        # As EC2 gives them: with several the first is the one.
        vpc = first["vpcs"][0] if first["vpcs"] else None
        result = {
            "caller": caller,
            "owner": owner,
            "owners": checks.owners_of([*first["vpcs"], *first["instances"]]),
            "backends": checks.backends_of(first["instances"]),
            "vpc_ids": [item["VpcId"] for item in first["vpcs"]],
        }
        if "key" in first:
            result["key"] = checks.key_state(first["key"], params["public_key"], self._cluster)
        if network:
            result.update(self._network(network, owner, first["offered"], vpc))
        return result

    def _first(self) -> dict[str, Question]:
        params = self._params
        mine = {f"tag:{CLUSTER_TAG}": self._cluster, "instance-state-name": list(LIVING)}
        questions: dict[str, Question] = {
            # By its tags and nothing else: a VPC that has only the name or the network is somebody else's.
            "vpcs": partial(ec2.look, self._client, "vpcs", self._mine),
            # Nodes in somebody's own subnets have no VPC of the cluster's.
            "instances": partial(ec2.describe_instances, self._client, mine),
        }
        if not params["owner"] and not params["caller"]:
            questions["caller"] = partial(caller_arn, self._sts())
        if params["key_name"]:
            named = filters_of({"key-name": params["key_name"]})
            questions["key"] = partial(ec2.key_pairs, self._client, Filters=named, IncludePublicKey=True)
        if params.get("network"):
            questions["offered"] = partial(ec2.zones_offering, self._client, params["network"]["instance_type"])
        return questions

    def _network(self, asked: Mapping[str, Any], owner: str, offered: Sequence[str], vpc: Item | None) -> Item:
        questions: dict[str, Question] = self._inside(asked, vpc["VpcId"]) if vpc else {}
        if (not offered and asked["known_zone_ids"]) or (offered and len(offered) < asked["zones"]):
            questions["zones"] = partial(calls.zones, self._client)
        if not offered:
            questions["type"] = partial(ec2.describe_instance_type, self._client, asked["instance_type"])
        second = _together(questions)
        if second.pop("type", {}) is None:
            raise TrainiumError(
                f"EC2 does not know the instance type {asked['instance_type']} in this region; check instance_type"
            )
        mine, further = plan.zones_of(
            offered, second.pop("zones", ()), asked["known_zone_ids"], asked["zones"], asked["left_out_zone_ids"]
        )
        wanted = plan.Wanted(
            cluster=self._cluster,
            owner=owner,
            subnets=plan.subnets_in([*mine, *further], asked["cidr"]),
            **{name: asked[name] for name in ("cidr", "tags", "kind_tags", "nat_gateway", "s3_endpoint", "groups")},
        )
        attributes = {name: second.pop(name) for name in ATTRIBUTES if name in second}
        found = plan.Found(vpc=vpc, attributes=attributes, **second)
        cidrs = [subnet["cidr"] for subnet in wanted.subnets]
        network = asdict(plan.compare(wanted, found))
        return {
            **network,
            "differs": sorted(network["differences"]),
            "zones": mine,
            "further_zones": further,
            "strangers": checks.strangers(found, self._cluster, cidrs, asked["group_names"]),
        }

    def _inside(self, asked: Mapping[str, Any], vpc: str) -> dict[str, Question]:
        filters: dict[str, Item] = {
            "subnets": {"vpc-id": vpc},
            "internet_gateways": {"attachment.vpc-id": vpc},
            "route_tables": {"vpc-id": vpc},
            "security_groups": {"vpc-id": vpc, "group-name": asked["group_names"]},
        }
        questions: dict[str, Question] = {
            **{name: partial(calls.vpc_attribute, self._client, vpc, name) for name in ATTRIBUTES},
            **{kind: partial(ec2.look, self._client, kind, filters[kind]) for kind in filters},
        }
        if asked["nat_gateway"]:
            lives = {**self._mine, "vpc-id": vpc, "state": ["pending", "available"]}
            questions["nat_gateways"] = partial(calls.nat_gateways, self._client, Filter=filters_of(lives))
        if asked["s3_endpoint"]:
            service = f"com.amazonaws.{self._region}.s3"
            gateways = {"vpc-id": vpc, "service-name": service, "vpc-endpoint-type": "Gateway"}
            questions["vpc_endpoints"] = partial(calls.vpc_endpoints, self._client, Filters=filters_of(gateways))
        return questions


def _together(questions: Mapping[str, Question]) -> dict[str, Any]:
    """The answers to all questions, which are asked at the same time; the first that fails is raised."""
    return dict(zip(questions, at_once(*questions.values())))
