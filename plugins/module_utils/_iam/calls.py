# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One IAM call each."""

from __future__ import annotations

from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    call_of,
    list_of,
    one_call,
    pages,
)

_GONE = ("NoSuchEntity",)


@one_call("list the IAM roles of the cluster")
def list_roles(client: Client, path: str) -> list[Item]:
    return [item for item in pages(client, "list_roles", PathPrefix=path).get("Roles", ()) if item["Path"] == path]


@one_call("list the instance profiles of the cluster")
def list_profiles(client: Client, path: str) -> list[Item]:
    """With the roles in them."""
    found = pages(client, "list_instance_profiles", PathPrefix=path).get("InstanceProfiles", ())
    return [item for item in found if item["Path"] == path]


# None where the role is gone.
_attached = list_of("list the policies of the role", "list_attached_role_policies", "AttachedPolicies", _GONE)
_own_policies = list_of("list the policies of the role's own", "list_role_policies", "PolicyNames", _GONE)
create_role = call_of("make the IAM role of the nodes", "create_role")
attach_policy = call_of("give the IAM role of the nodes its policy", "attach_role_policy")
create_profile = call_of("make the instance profile of the nodes", "create_instance_profile")
add_role = call_of("put the IAM role into the instance profile", "add_role_to_instance_profile")


def attached_policies(client: Client, role: str) -> list[str]:
    """The ARNs of its managed policies."""
    return [policy["PolicyArn"] for policy in _attached(client, RoleName=role)]


def delete(client: Client, operation: str, **arguments: Any) -> None:
    """One step of a deletion; what is gone already is fine."""
    call_of(operation.replace("_", " "), operation, passed=_GONE)(client, **arguments)


def delete_role(client: Client, name: str) -> None:
    """With the policies that keep it from being deleted."""
    for policy in _own_policies(client, RoleName=name):
        delete(client, "delete_role_policy", RoleName=name, PolicyName=policy)
    for policy in attached_policies(client, name):
        delete(client, "detach_role_policy", RoleName=name, PolicyArn=policy)
    delete(client, "delete_role", RoleName=name)
