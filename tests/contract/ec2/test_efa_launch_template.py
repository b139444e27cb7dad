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
