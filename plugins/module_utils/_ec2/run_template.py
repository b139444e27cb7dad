# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What efa_launch_template does: find, plan, act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.arguments import given
from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import filters_of
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import (
    ROLE_TAG,
    check_ours,
    own_tags,
    tag_list,
    tags_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls as ec2
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import calls_template as calls
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import checks, template
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import (
    efa_count,
    network_of,
    plan_interfaces,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import shown_request

Item = dict[str, Any]
_OPTIONAL = ("image_id", "key_name", "placement_group", "user_data", "instance_type")


class EfaLaunchTemplate:
    """One launch template. ``client`` talks to EC2."""

    def __init__(self, client: Any, params: Mapping[str, Any], check_mode: bool, warn: Callable[[str], None]) -> None:
        self._client, self._check_mode, self._warn = client, check_mode, warn
        self._params = given(params, _OPTIONAL)

    def run(self) -> Item:
        """Bring the template to the wanted state; returns the module's result. Raises TrainiumError."""
        params = self._params
        if not template.NAME.fullmatch(params["name"]):
            raise TrainiumError(f"name is {params['name']!r}; use 3 to 128 letters, digits and the signs ( ) . - / _")
        filters = filters_of({"launch-template-name": params["name"]})
        found = next(iter(calls.describe_templates(self._client, Filters=filters)), None)
        check_ours(tags_of(found) if found else None, params, f"the launch template {params['name']}")
        version = calls.describe_version(self._client, {"id": found["LaunchTemplateId"]}) if found else {}
        before = _shown(found, version)
        if params["state"] == "absent":
            if found and not self._check_mode:
                calls.delete_template(self._client, LaunchTemplateId=found["LaunchTemplateId"])
            return _result(bool(found), before, {}, 0)
        data, efa = self._data()
        tags = self._tags()
        plan = template.plan_template(found, str(version.get("VersionDescription") or ""), template.digest(data), tags)
        after = {
            **before,
            "name": params["name"],
            "tags": {**before.get("tags", {}), **tags},
            "data": before.get("data"),
        }
        if plan.create or plan.version:
            latest = int(found["LatestVersionNumber"]) if found else 0
            after.update(data=shown_request(data), version=latest + 1)
        if plan.changes and not self._check_mode:
            after.update(self._act(found, plan, data, tags))
        return _result(plan.changes, before, after, efa)

    def _data(self) -> tuple[Item, int]:
        """The wanted fields, and how many interfaces carry EFA."""
        params = self._params
        name = params["instance_type"]
        if not name:
            raise TrainiumError("instance_type is missing; name one such as trn1.32xlarge")
        params["security_groups"] = [group for group in params.get("security_groups") or () if group]
        checks.check_launch(params)
        record = ec2.describe_instance_type(self._client, name)
        if record is None:
            raise TrainiumError(f"EC2 knows no instance type {name} in this region; check its name")
        image: Item = {}
        if params["image_id"]:
            image = ec2.describe_image(self._client, params["image_id"]) or {}
            checks.check_image(image or None, params["image_id"], record)
        interfaces = plan_interfaces(network_of(record), params.get("interface_layout"))
        groups = params["security_groups"]
        if groups:
            there = ec2.describe_security_groups(self._client, groups)
            checks.check_groups(groups, there, None)
            if efa_count(interfaces) and not checks.passes_efa(there):
                self._warn(
                    f"The security groups {', '.join(groups)} do not let all traffic in and out among themselves, so "
                    "that EFA will not work; add such rules."
                )
        elif not self._check_mode:
            raise TrainiumError("security_groups is empty; EFA needs one that lets all traffic pass among its members")
        return template.template_data(params, interfaces, image), efa_count(interfaces)

    def _tags(self) -> dict[str, str]:
        return {**own_tags(self._params), ROLE_TAG: self._params["role"]}

    def _act(self, found: Item | None, plan: template.TemplatePlan, data: Item, tags: dict[str, str]) -> Item:
        if found is None:
            made = calls.create_template(self._client, **template.creation(self._params, data, tag_list(tags)))
            return {"launch_template_id": made["LaunchTemplateId"], "version": int(made["LatestVersionNumber"])}
        identity, version = found["LaunchTemplateId"], int(found["DefaultVersionNumber"])
        if plan.version:
            request = template.new_version(identity, int(found["LatestVersionNumber"]), data)
            version = int(calls.create_version(self._client, **request)["VersionNumber"])
            calls.set_default(self._client, LaunchTemplateId=identity, DefaultVersion=str(version))
        if plan.tags:
            ec2.create_tags(self._client, [identity], tag_list(plan.tags))
        return {"version": version}


def _shown(found: Item | None, version: Item) -> Item:
    if found is None:
        return {}
    return {
        "launch_template_id": found["LaunchTemplateId"],
        "name": found["LaunchTemplateName"],
        "version": int(found["DefaultVersionNumber"]),
        "tags": tags_of(found),
        "data": shown_request(version.get("LaunchTemplateData") or {}),
    }


def _result(changed: bool, before: Item, after: Item, efa: int) -> Item:
    return {
        "changed": changed,
        "launch_template": after,
        "launch_template_id": after.get("launch_template_id", ""),
        "version": after.get("version", 0),
        "efa_interface_count": efa,
        "diff": {"before": before, "after": after},
    }
