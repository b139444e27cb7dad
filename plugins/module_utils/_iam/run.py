# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster's instance profile and the role in it: look, make, delete."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import tag_list
from ansible_collections.trainium.cluster.plugins.module_utils._iam import calls
from ansible_collections.trainium.cluster.plugins.module_utils._iam.plan import POLICY, TRUST, path_of


class NodeProfile:
    """What lies at the path of a cluster in a region; roles of EKS are there as well, made by role eks_cluster."""

    def __init__(self, client: Any, region: str, cluster: str) -> None:
        self._client, self._path = client, path_of(region, cluster)

    def profiles(self) -> list[str]:
        """The names of the instance profiles there."""
        return sorted(item["InstanceProfileName"] for item in calls.list_profiles(self._client, self._path))

    def roles(self) -> list[str]:
        """The names of the roles there."""
        return sorted(item["RoleName"] for item in calls.list_roles(self._client, self._path))

    def make(self, name: str, tags: Mapping[str, str], check_mode: bool) -> bool:
        """Make what of role, policy and profile is missing, all of one name; whether something was."""
        client, policy = self._client, POLICY.format(partition=self._client.meta.partition)
        profiles = {item["InstanceProfileName"]: item for item in calls.list_profiles(client, self._path)}
        roles = {item["RoleName"]: item for item in calls.list_roles(client, self._path)}
        # Somebody who may make roles here, but not give them to others, could have made it.
        if name in roles and roles[name].get("AssumeRolePolicyDocument") != json.loads(TRUST):
            raise TrainiumError(
                f"the IAM role {name} does not trust EC2 alone, so that others could use what nodes may; see who made "
                "it, delete it and run again"
            )
        held = [role["RoleName"] for role in profiles.get(name, {}).get("Roles") or ()]
        steps: list[Callable[[], None]] = []
        tagged = {"Path": self._path, "Tags": tag_list(tags)}
        if name not in roles:
            steps.append(partial(calls.create_role, client, RoleName=name, AssumeRolePolicyDocument=TRUST, **tagged))
        if name not in roles or policy not in calls.attached_policies(client, name):
            steps.append(partial(calls.attach_policy, client, RoleName=name, PolicyArn=policy))
        if name not in profiles:
            steps.append(partial(calls.create_profile, client, InstanceProfileName=name, **tagged))
        if name not in held:
            steps.append(partial(calls.add_role, client, InstanceProfileName=name, RoleName=name))
        for step in [] if check_mode else steps:
            step()
        return bool(steps)

    def delete_profiles(self) -> None:
        """Delete the instance profiles, without the roles that were in them."""
        client = self._client
        for profile in calls.list_profiles(client, self._path):
            name = profile["InstanceProfileName"]
            for role in profile.get("Roles") or ():
                calls.delete(
                    client, "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=role["RoleName"]
                )
            calls.delete(client, "delete_instance_profile", InstanceProfileName=name)

    def delete_roles(self) -> None:
        """Delete the roles, of which none is in an instance profile any more."""
        for name in self.roles():
            calls.delete_role(self._client, name)
