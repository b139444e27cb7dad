"""efa_launch_template as a module: what EC2 is asked, what check mode leaves alone, and what is refused."""

from __future__ import annotations

import base64

import pytest
from ansible_collections.trainium.cluster.plugins.modules import efa_launch_template

from tests.unit.aws_answers import Aws, Item
from tests.unit.in_aws import Module

KIND = "trn1.32xlarge"
USUAL: Item = {"name": "bert-trn", "cluster_name": "c1", "instance_type": KIND, "security_groups": ["sg-1"]}
TAGS = {"trainium:cluster": "c1", "trainium:role": "compute"}
OPEN = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}]}]
GROUP: Item = {"GroupId": "sg-1", "VpcId": "vpc-1", "IpPermissions": OPEN, "IpPermissionsEgress": OPEN}


def listed(tags: dict[str, str]) -> list[Item]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


class Account(Aws):
    """The one template of the name, if there is one, and its default version."""

    def __init__(self) -> None:
        self.template: Item = {}
        self.version: Item = {}
        super().__init__(
            {
                "DescribeInstanceTypes": {"InstanceTypes": [{"InstanceType": KIND}]},
                "DescribeSecurityGroups": {"SecurityGroups": [GROUP]},
                "DescribeLaunchTemplates": lambda _asked: {"LaunchTemplates": [self.template] if self.template else []},
                "DescribeLaunchTemplateVersions": lambda _asked: {"LaunchTemplateVersions": [self.version]},
                "CreateLaunchTemplate": self._create,
                "CreateLaunchTemplateVersion": {"LaunchTemplateVersion": {"VersionNumber": 8}},
            }
        )

    def _create(self, asked: Item) -> Item:
        (tags,) = asked["TagSpecifications"]
        self.template = {
            "LaunchTemplateId": "lt-1",
            "LaunchTemplateName": asked["LaunchTemplateName"],
            "DefaultVersionNumber": 1,
            "LatestVersionNumber": 1,
            "Tags": tags["Tags"],
        }
        self.version = {key: asked[key] for key in ("VersionDescription", "LaunchTemplateData")}
        return {"LaunchTemplate": self.template}

    @property
    def done(self) -> list[str]:
        return [call for call, _asked in self.asked if not call.startswith("Describe")]


@pytest.fixture
def aws() -> Account:
    return Account()


@pytest.fixture
def module(aws: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(efa_launch_template, {"ec2": aws.client("ec2")}, monkeypatch, capsys, USUAL)


def test_it_is_made_once_and_then_left_alone(module: Module, aws: Account) -> None:
    first = module.run(diff=True)
    assert aws.done == ["CreateLaunchTemplate"]
    assert (first["changed"], first["launch_template_id"], first["version"]) == (True, "lt-1", 1)
    assert first["efa_interface_count"] == 8
    assert first["launch_template"]["tags"] == TAGS
    assert first["diff"] == {"before": {}, "after": first["launch_template"]}
    data = aws.last("CreateLaunchTemplate")["LaunchTemplateData"]
    assert [one["Groups"] for one in data["NetworkInterfaces"]] == [["sg-1"]] * 8
    second = module.run(diff=True)
    assert (aws.done, second["changed"]) == (["CreateLaunchTemplate"], False)
    assert second["diff"]["before"] == second["diff"]["after"]
    assert second["launch_template"] == first["launch_template"]
    assert aws.last("DescribeLaunchTemplateVersions") == {"LaunchTemplateId": "lt-1", "Versions": ["$Default"]}
    assert module.warned == []


def test_other_fields_are_another_version_which_becomes_the_default(module: Module, aws: Account) -> None:
    module.run()
    aws.template.update(LatestVersionNumber=7, DefaultVersionNumber=5)
    promised = module.run(check=True, key_name="k", tags={"team": "ml"})
    assert (aws.done, promised["changed"], promised["version"]) == (["CreateLaunchTemplate"], True, 8)
    result = module.run(key_name="k", tags={"team": "ml"})
    assert aws.done[1:] == ["CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "CreateTags"]
    assert aws.last("CreateLaunchTemplateVersion")["LaunchTemplateData"]["KeyName"] == "k"
    assert aws.last("ModifyLaunchTemplate") == {"LaunchTemplateId": "lt-1", "DefaultVersion": "8"}
    assert aws.last("CreateTags") == {"Resources": ["lt-1"], "Tags": [{"Key": "team", "Value": "ml"}]}
    assert (result["changed"], result["version"], result["launch_template_id"]) == (True, 8, "lt-1")
    assert result["launch_template"] == promised["launch_template"]
    assert result["launch_template"]["data"]["KeyName"] == "k"


def test_tags_that_are_missing_need_no_version(module: Module, aws: Account) -> None:
    module.run()
    aws.template.update(DefaultVersionNumber=5, Tags=listed({**TAGS, "trainium:role": "login", "other": "x"}))
    result = module.run()
    assert aws.done[1:] == ["CreateTags"]
    assert aws.last("CreateTags")["Tags"] == [{"Key": "trainium:role", "Value": "compute"}]
    assert (result["version"], result["launch_template"]["tags"]) == (5, {**TAGS, "other": "x"})


def test_check_mode_makes_nothing_and_needs_no_groups(module: Module, aws: Account) -> None:
    result = module.run(check=True, diff=True, security_groups=None)
    assert (aws.done, result["changed"], result["launch_template_id"], result["version"]) == ([], True, "", 1)
    assert result["diff"]["before"] == {}
    assert len(result["diff"]["after"]["data"]["NetworkInterfaces"]) == 8
    said = "efa_launch_template bert-trn: security_groups is empty; EFA needs one that lets all traffic pass among its"
    assert module.said(security_groups=None).startswith(said)
    # Empty text, as roles pass it, is none.
    assert module.said(security_groups=[""]).startswith(said)
    assert aws.done == []


def test_it_goes_and_is_not_missed(module: Module, aws: Account) -> None:
    assert not module.run(state="absent")["changed"]
    module.run()
    promised = module.run(check=True, diff=True, state="absent")
    result = module.run(diff=True, state="absent")
    assert result == promised
    assert aws.done == ["CreateLaunchTemplate", "DeleteLaunchTemplate"]
    assert aws.last("DeleteLaunchTemplate") == {"LaunchTemplateId": "lt-1"}
    assert (result["changed"], result["launch_template"], result["launch_template_id"]) == (True, {}, "")
    assert (result["version"], result["efa_interface_count"]) == (0, 0)
    assert (result["diff"]["before"]["version"], result["diff"]["after"]) == (1, {})


def test_what_is_another_cluster_s_is_refused(module: Module, aws: Account) -> None:
    module.run(cluster_name="c2")
    for state in ("present", "absent"):
        said = module.said(state=state)
        assert "the launch template bert-trn belongs to the cluster c2; take another name" in said
    assert aws.done == ["CreateLaunchTemplate"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "a b"}, "name is 'a b'; use 3 to 128 letters, digits and the signs ( ) . - / _"),
        ({"name": "ab"}, "name is 'ab'; use 3 to"),
        ({"instance_type": None}, "instance_type is missing; name one such as trn1.32xlarge"),
        ({"instance_type": ""}, "instance_type is missing; name one such as trn1.32xlarge"),
        ({"instance_type": "trn9.48xlarge"}, "EC2 knows no instance type trn9.48xlarge in this region; check its name"),
        ({"market": "capacity-block"}, "market capacity-block needs capacity_reservation.id"),
        ({"security_groups": ["sg-1", "sg-2"]}, "sg-2"),
        ({"image_id": "ami-1"}, "ami-1"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_made(
    module: Module, aws: Account, arguments: Item, said: str
) -> None:
    assert said in module.said(**arguments)
    assert aws.done == []


@pytest.mark.parametrize(("layout", "warned"), [(None, 1), ("none", 0)])
def test_groups_that_stop_efa_are_warned_of(module: Module, aws: Account, layout: str | None, warned: int) -> None:
    aws.answers["DescribeSecurityGroups"] = {"SecurityGroups": [{**GROUP, "IpPermissions": []}]}
    assert module.run(interface_layout=layout)["efa_interface_count"] == 8 * warned
    said = (
        "The security groups sg-1 do not let all traffic in and out among themselves, so that EFA will not work; add "
        "such rules."
    )
    assert module.warned == [said] * warned


def test_an_image_tells_the_root_device(module: Module, aws: Account) -> None:
    image = {"ImageId": "ami-1", "State": "available", "RootDeviceName": "/dev/sda1", "Architecture": "x86_64"}
    aws.answers["DescribeImages"] = {"Images": [image]}
    module.run(image_id="ami-1", user_data="#!/bin/sh\ntrue\n")
    data = aws.last("CreateLaunchTemplate")["LaunchTemplateData"]
    assert (data["ImageId"], data["BlockDeviceMappings"][0]["DeviceName"]) == ("ami-1", "/dev/sda1")
    assert b"text/x-shellscript" in base64.b64decode(data["UserData"])
