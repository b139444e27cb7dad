# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each of the two APIs of Elastic Load Balancing, classic and newer, and of EC2 about their interfaces."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    filters_of,
    one_call,
    pages,
    passing_over,
    retried,
)
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tags_of


@one_call("list the classic load balancers")
def classic(client: Client) -> list[Item]:
    return list(pages(client, "describe_load_balancers").get("LoadBalancerDescriptions", ()))


@one_call("list the load balancers")
def newer(client: Client) -> list[Item]:
    return list(pages(client, "describe_load_balancers").get("LoadBalancers", ()))


@one_call("list the target groups")
def target_groups(client: Client) -> list[Item]:
    return list(pages(client, "describe_target_groups").get("TargetGroups", ()))


@one_call("look at the tags of a load balancer")
def tags_of_classic(client: Client, name: str) -> dict[str, str]:
    """Each by itself, since one that is gone by now would be an error for all that are asked for."""
    return _tags(client, "LoadBalancerNames", name)


@one_call("look at the tags of a load balancer or target group")
def tags_of_newer(client: Client, arn: str) -> dict[str, str]:
    return _tags(client, "ResourceArns", arn)


def _tags(client: Client, argument: str, identity: str) -> dict[str, str]:
    found: list[Item] = []
    with passing_over("LoadBalancerNotFound", "TargetGroupNotFound"):
        found = retried(client.describe_tags)(**{argument: [identity]})["TagDescriptions"]
    return tags_of(found[0]) if found else {}


@one_call("list the interfaces of load balancers")
def interfaces(client: Client, networks: Collection[str]) -> list[Item]:
    filters = {"vpc-id": sorted(networks), "description": "ELB *"}
    return list(pages(client, "describe_network_interfaces", Filters=filters_of(filters)).get("NetworkInterfaces", ()))


def delete(client: Client, name: str, arn: str = "") -> None:
    """Delete a load balancer; one that is gone already is no error of AWS's."""

    @one_call(f"delete the load balancer {name}")
    def call() -> None:
        request = {"LoadBalancerArn": arn} if arn else {"LoadBalancerName": name}
        retried(client.delete_load_balancer)(**request)

    call()


def delete_target_group(client: Client, name: str, arn: str) -> None:
    @one_call(f"delete the target group {name}")
    def call() -> None:
        with passing_over("TargetGroupNotFound"):
            retried(client.delete_target_group)(TargetGroupArn=arn)

    call()
