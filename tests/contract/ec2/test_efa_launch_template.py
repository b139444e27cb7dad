"""efa_launch_template makes a template once, a new version where something else is wanted, and deletes it."""

from __future__ import annotations

from typing import Any

Account = Any
Result = dict[str, Any]


def run(cloud: Account, check: bool = False, **changes: Any) -> Result:
    base = {"name": "bert-trn", "cluster_name": "bert", "instance_type": "trn1.32xlarge"}
    full = {**base, "security_groups": [cloud.group], "volumes": [{"size": 500}], **changes}
    result: Result = cloud.run("efa_launch_template", full, check)
    return result


def versions(cloud: Account) -> list[Result]:
    found = cloud.ec2.describe_launch_template_versions(LaunchTemplateName="bert-trn")["LaunchTemplateVersions"]
    return sorted(found, key=lambda version: int(version["VersionNumber"]))


def test_made_once_changed_by_a_version_and_deleted(cloud: Account) -> None:
    promised = run(cloud, check=True)
    assert promised["changed"] and cloud.api.writes() == []
    assert len(promised["diff"]["after"]["data"]["NetworkInterfaces"]) == promised["efa_interface_count"] == 8
    first = run(cloud, user_data="#!/bin/sh\ntrue")
    assert (first["changed"], first["version"]) == (True, 1) and "true" not in str(first["diff"])
    cloud.api.clear_calls()
    again = run(cloud, user_data="#!/bin/sh\ntrue")
    assert not again["changed"] and again["diff"]["before"] == again["diff"]["after"] and cloud.api.writes() == []
    assert again["launch_template_id"] == first["launch_template_id"]
    second = run(cloud, user_data="#!/bin/sh\nfalse", tags={"team": "speech"})
    assert (second["changed"], second["version"]) == (True, 2)
    made = versions(cloud)
    assert [version["DefaultVersion"] for version in made] == [False, True]
    tags = {
        one["ResourceType"]: {t["Key"]: t["Value"] for t in one["Tags"]}
        for one in made[1]["LaunchTemplateData"]["TagSpecifications"]
    }
    assert set(tags) == {"instance", "volume", "network-interface"}
    assert (tags["instance"]["trainium:cluster"], tags["volume"]["team"]) == ("bert", "speech")
    # What it says can be launched, with a subnet from whoever launches.
    nics = [{**nic, "SubnetId": cloud.subnets[0]} for nic in made[1]["LaunchTemplateData"]["NetworkInterfaces"]]
    named = {"LaunchTemplateName": "bert-trn"}
    cloud.ec2.run_instances(LaunchTemplate=named, ImageId=cloud.image, NetworkInterfaces=nics, MinCount=1, MaxCount=1)
    assert len(cloud.instances()[0]["NetworkInterfaces"]) == 8
    assert run(cloud, state="absent")["changed"]
    assert cloud.ec2.describe_launch_templates()["LaunchTemplates"] == []
    assert not run(cloud, state="absent")["changed"]


def test_what_it_refuses_and_warns_of(cloud: Account) -> None:
    for changes, sentence in (
        ({"instance_type": "trn9.huge"}, "EC2 knows no instance type trn9.huge"),
        ({"security_groups": []}, "security_groups is empty"),
        ({"security_groups": ["sg-0123456789abcdef0"]}, "does not exist in this region"),
        ({"market": "capacity-block"}, "needs capacity_reservation.id"),
        ({"name": "a b"}, "use 3 to 128 letters"),
        ({"tags": {"trainium:cluster": "x"}}, "which is reserved"),
        ({"instance_type": "trn1.2xlarge", "interface_layout": "efa"}, "has no EFA"),
    ):
        assert sentence in run(cloud, **changes)["msg"], changes
    assert cloud.api.writes() == []
    bare = cloud.ec2.create_security_group(GroupName="bare", Description="bare", VpcId=cloud.vpc)["GroupId"]
    assert "EFA will not work" in str(run(cloud, security_groups=[bare])["warnings"])
    cloud.ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData={"InstanceType": "m5.large"})
    assert "carries no tag trainium:cluster" in run(cloud, name="theirs", state="absent")["msg"]
    assert run(cloud, name="hers", owner="ann")["changed"]
    assert "belongs to ann, and you are bob" in run(cloud, name="hers", owner="bob", state="absent")["msg"]


def test_what_is_shown_is_what_is_there(cloud: Account) -> None:
    image = cloud.image
    first = run(cloud, image_id=image, interface_layout="none")
    assert (first["efa_interface_count"], first["version"], first["diff"]["before"]) == (0, 1, {})
    (there,) = cloud.ec2.describe_launch_templates()["LaunchTemplates"]
    shown = first["launch_template"]
    assert first["launch_template_id"] == shown["launch_template_id"] == there["LaunchTemplateId"]
    assert (shown["name"], shown["version"], shown["data"]["ImageId"]) == ("bert-trn", 1, image)
    tags = {"trainium:cluster": "bert", "trainium:role": "compute"}
    assert shown["tags"] == tags == {tag["Key"]: tag["Value"] for tag in there["Tags"]}
    cloud.api.clear_calls()
    foreseen = run(cloud, check=True, image_id=image, interface_layout="none", tags={"team": "speech"})
    assert cloud.api.writes() == []
    # What is launched has the tag as well, so that it is another version.
    tagged = run(cloud, image_id=image, interface_layout="none", tags={"team": "speech"})
    assert tagged["launch_template"] == foreseen["launch_template"]
    assert (tagged["version"], tagged["launch_template"]["tags"]) == (2, {**tags, "team": "speech"})
    assert tagged["diff"]["before"] == shown
    (call,) = cloud.api.calls("CreateTags")
    sent = [call["parameters"][name] for name in ("ResourceId.1", "Tag.1.Key", "Tag.1.Value")]
    assert sent == [there["LaunchTemplateId"], "team", "speech"]
    gone = run(cloud, check=True, state="absent")
    assert (gone["changed"], gone["launch_template"], gone["version"], gone["launch_template_id"]) == (True, {}, 0, "")
    assert len(cloud.ec2.describe_launch_templates()["LaunchTemplates"]) == 1


def test_somebody_who_made_another_version_is_not_in_the_way(cloud: Account) -> None:
    """The next version is one on top of theirs, and becomes the default."""
    run(cloud)
    theirs = {"InstanceType": "m5.large"}
    cloud.ec2.create_launch_template_version(LaunchTemplateName="bert-trn", LaunchTemplateData=theirs)
    assert not run(cloud)["changed"]
    changed = run(cloud, volumes=[{"size": 600}])
    assert (changed["changed"], changed["version"]) == (True, 3)
    assert [version["DefaultVersion"] for version in versions(cloud)] == [False, False, True]
    assert not run(cloud, volumes=[{"size": 600}])["changed"]


def test_in_check_mode_an_earlier_task_may_make_the_group(cloud: Account) -> None:
    found = run(cloud, check=True, security_groups=[""])
    assert (found["changed"], found.get("failed")) == (True, None)
    assert "security_groups is empty; EFA needs one" in run(cloud, security_groups=[""])["msg"]
    assert "instance_type is missing; name one such as trn1.32xlarge" in run(cloud, instance_type="")["msg"]
    assert "does not exist or is not shared" in run(cloud, image_id="ami-0123456789abcdef0")["msg"]
