# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each about launch templates, see calls.py for errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import (
    Client,
    Item,
    filters_of,
    one_call,
    pages,
    passing_over,
    retried,
)


@one_call("list the launch templates")
def describe_templates(client: Client, filters: Mapping[str, Any]) -> list[Item]:
    """By filter and not by name, so that a missing one is no error."""
    return list(pages(client, "describe_launch_templates", Filters=filters_of(filters)).get("LaunchTemplates", ()))


@one_call("describe the launch template")
def describe_version(client: Client, named: Mapping[str, str]) -> Item:
    """The version that ``id`` or ``name`` and ``version`` name, with LaunchTemplateData; empty where there is none."""
    key = "LaunchTemplateId" if named.get("id") else "LaunchTemplateName"
    asked = {key: named.get("id") or named["name"], "Versions": [named.get("version") or "$Default"]}
    with passing_over("*NotFound*"):
        found = retried(client.describe_launch_template_versions)(**asked)["LaunchTemplateVersions"]
        return dict(next(iter(found), {}))
    return {}


@one_call("make the launch template")
@retried
def create_template(client: Client, request: Mapping[str, Any]) -> Item:
    """Safe to repeat: the request carries a ClientToken."""
    return dict(client.create_launch_template(**request)["LaunchTemplate"])


@one_call("make a version of the launch template")
@retried
def create_version(client: Client, request: Mapping[str, Any]) -> int:
    """The number of the new version. Safe to repeat like ``create_template``."""
    return int(client.create_launch_template_version(**request)["LaunchTemplateVersion"]["VersionNumber"])


@one_call("choose the version of the launch template")
@retried
def set_default(client: Client, template_id: str, version: int) -> None:
    client.modify_launch_template(LaunchTemplateId=template_id, DefaultVersion=str(version))


@one_call("delete the launch template")
@retried
def delete_template(client: Client, template_id: str) -> None:
    """One that is gone already is fine."""
    with passing_over("*NotFound*"):
        client.delete_launch_template(LaunchTemplateId=template_id)
