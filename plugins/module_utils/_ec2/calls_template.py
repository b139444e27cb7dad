# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call each about launch templates, see calls.py for errors."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.trainium.cluster.plugins.module_utils._common.aws import Client, Item, call_of, list_of

_ABSENT = ("*NotFound*",)

# By filter and not by name, so that a missing one is no error.
describe_templates = list_of("list the launch templates", "describe_launch_templates", "LaunchTemplates")
_versions = call_of(
    "describe the launch template", "describe_launch_template_versions", "LaunchTemplateVersions", _ABSENT
)
# These two are safe to repeat: the request carries a ClientToken.
create_template = call_of("make the launch template", "create_launch_template", "LaunchTemplate")
create_version = call_of(
    "make a version of the launch template", "create_launch_template_version", "LaunchTemplateVersion"
)
set_default = call_of("choose the version of the launch template", "modify_launch_template")
delete_template = call_of("delete the launch template", "delete_launch_template", passed=_ABSENT)


def describe_version(client: Client, named: Mapping[str, str]) -> Item:
    """The version that ``id`` or ``name`` and ``version`` name, with LaunchTemplateData; empty where there is none."""
    key = "LaunchTemplateId" if named.get("id") else "LaunchTemplateName"
    asked = {key: named.get("id") or named["name"], "Versions": [named.get("version") or "$Default"]}
    return dict(next(iter(_versions(client, **asked) or ()), {}))
