# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One IAM call each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    one_call,
    pages,
    passing_over,
    retried,
)


@one_call("list the IAM roles of the cluster")
def list_roles(client: Client, path: str) -> list[Item]:
    return [item for item in pages(client, "list_roles", PathPrefix=path).get("Roles", ()) if item["Path"] == path]


@one_call("list the instance profiles of the cluster")
def list_profiles(client: Client, path: str) -> list[Item]:
    """With the roles in them."""
    found = pages(client, "list_instance_profiles", PathPrefix=path).get("InstanceProfiles", ())
    return [item for item in found if item["Path"] == path]


@one_call("list the policies of the role")
def attached_policies(client: Client, role: str) -> list[str]:
    """The ARNs of its managed policies; none where the role is gone."""
    with passing_over("NoSuchEntity"):
        found = pages(client, "list_attached_role_policies", RoleName=role)
        return [policy["PolicyArn"] for policy in found.get("AttachedPolicies", ())]
    return []


@one_call("make the IAM role of the nodes")
def create_role(client: Client, name: str, path: str, trust: str, tags: Sequence[Mapping[str, str]]) -> None:
    retried(client.create_role)(RoleName=name, Path=path, AssumeRolePolicyDocument=trust, Tags=list(tags))


@one_call("give the IAM role of the nodes its policy")
def attach_policy(client: Client, role: str, policy: str) -> None:
    retried(client.attach_role_policy)(RoleName=role, PolicyArn=policy)


@one_call("make the instance profile of the nodes")
def create_profile(client: Client, name: str, path: str, tags: Sequence[Mapping[str, str]]) -> None:
    retried(client.create_instance_profile)(InstanceProfileName=name, Path=path, Tags=list(tags))


@one_call("put the IAM role into the instance profile")
def add_role(client: Client, profile: str, role: str) -> None:
    retried(client.add_role_to_instance_profile)(InstanceProfileName=profile, RoleName=role)


def delete(client: Client, operation: str, **arguments: Any) -> None:
    """One step of a deletion; what is gone already is fine."""

    @one_call(operation.replace("_", " "))
    @retried
    def call() -> None:
        with passing_over("NoSuchEntity"):
            getattr(client, operation)(**arguments)

    call()


@one_call("list the policies of the role's own")
def own_policies(client: Client, role: str) -> list[str]:
    """Their names; none where the role is gone."""
    with passing_over("NoSuchEntity"):
        return list(pages(client, "list_role_policies", RoleName=role).get("PolicyNames", ()))
    return []


def delete_role(client: Client, name: str) -> None:
    """With the policies that keep it from being deleted."""
    for policy in own_policies(client, name):
        delete(client, "delete_role_policy", RoleName=name, PolicyName=policy)
    for policy in attached_policies(client, name):
        delete(client, "detach_role_policy", RoleName=name, PolicyArn=policy)
    delete(client, "delete_role", RoleName=name)
