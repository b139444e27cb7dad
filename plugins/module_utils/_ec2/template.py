# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A launch template whose instances have EFA on every network card: its fields, and when it needs a new version. Pure.

A version cannot be changed once it is made. So each carries a digest of what it was made from in its description, and a
template is as wanted where its default version carries the wanted digest. What a template for a managed node group of
EKS must not have: "Customize managed nodes with launch templates" in the EKS user guide.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common.tags import client_token, tags_of
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import Interface
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.request import launch_fields, set_tags
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.user_data import Part, archive, is_archive

Item = dict[str, Any]
# EC2's rule for names (CreateLaunchTemplate).
NAME = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
BOUNDARY = "==trainium=="
# Amazon Linux 2023's, whose images EKS chooses by itself where the template names none.
ROOT_DEVICE = "/dev/xvda"


class TemplatePlan(NamedTuple):
    """``create``: there is none yet; ``version``: it needs another version; ``tags``: those to set on it."""

    create: bool
    version: bool
    tags: dict[str, str]

    @property
    def changes(self) -> bool:
        return bool(self.create or self.version or self.tags)


def mime(text: str) -> str:
    """User data as a MIME multi-part archive, the only form to which EKS can add its own; one that is one stays.

    >>> mime("#!/bin/sh").splitlines()[1]
    'Content-Type: multipart/mixed; boundary="==trainium=="'
    """
    if is_archive(text):
        return text
    # nodeadm reads its NodeConfig from parts of this type alone (user guide, "Customize managed nodes with templates").
    config = re.search(r"^apiVersion:\s*node\.eks\.aws/", text, re.MULTILINE)
    other = "application/node.eks.aws" if config else "text/cloud-config"
    return archive([Part("text/x-shellscript" if text.startswith("#!") else other, text)], BOUNDARY)


def template_data(params: Mapping[str, Any], interfaces: Sequence[Interface], image: Mapping[str, Any]) -> Item:
    """``LaunchTemplateData``: no subnet and no instance profile, which whoever launches gives.

    Args:
        params: the arguments of efa_launch_template.
        image: the item of DescribeImages, or empty.
    """
    image = image or {"RootDeviceName": ROOT_DEVICE}
    tags = {**set_tags(params), "Name": params["name"]}
    data = launch_fields(params, interfaces, image, "", tags)
    if params.get("user_data"):
        data["UserData"] = base64.b64encode(mime(params["user_data"]).encode()).decode()
    return data


def digest(data: Mapping[str, Any]) -> str:
    """What the version of these fields is described as."""
    return client_token(data).replace("trainium-", "trainium.cluster ")


def plan_template(
    found: Mapping[str, Any] | None, description: str, wanted: str, tags: Mapping[str, str]
) -> TemplatePlan:
    """What to do.

    Args:
        found: the item of DescribeLaunchTemplates.
        description: that of its default version.
        wanted: the digest of the wanted fields.
    """
    if found is None:
        return TemplatePlan(True, False, {})
    there = tags_of(found)
    return TemplatePlan(False, description != wanted, {key: tags[key] for key in tags if there.get(key) != tags[key]})


def creation(params: Mapping[str, Any], data: Item, tags: Sequence[Item]) -> Item:
    """The request of CreateLaunchTemplate; the same request has the same ClientToken."""
    request: Item = {
        "LaunchTemplateName": params["name"],
        "VersionDescription": digest(data),
        "LaunchTemplateData": data,
        "TagSpecifications": [{"ResourceType": "launch-template", "Tags": list(tags)}],
    }
    request["ClientToken"] = client_token(request)
    return request


def new_version(template_id: str, latest: int, data: Item) -> Item:
    """The request of CreateLaunchTemplateVersion on top of the ``latest`` version."""
    request: Item = {
        "LaunchTemplateId": template_id,
        "VersionDescription": digest(data),
        "LaunchTemplateData": data,
    }
    request["ClientToken"] = client_token({**request, "after": latest})
    return request
