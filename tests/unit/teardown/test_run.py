"""What a teardown asks EC2, in which order, and what it makes of refusals."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._teardown import run
from ansible_collections.trainium.cluster.plugins.module_utils._teardown.kinds import KINDS

from tests.unit.teardown.account import MADE, Ec2, Item, Others, refused, tags, teardown, vpc

BY_NAME = {kind.name: kind for kind in KINDS}


def test_what_is_found_is_told_by_kind_and_nothing_of_empty_kinds(ec2: Ec2) -> None:
    ec2.kept = {
        "describe_vpcs": [vpc()],
        "describe_instances": [
            {"InstanceId": "i-2", "State": {"Name": "running"}, "Tags": tags()},
            {"InstanceId": "i-1", "State": {"Name": "stopped"}, "Tags": tags()},
            {"InstanceId": "i-3", "State": {"Name": "running"}, "Tags": tags("ann")},
        ],
        "describe_network_interfaces": [{"NetworkInterfaceId": "eni-1", "TagSet": tags()}],
    }
    others = Others()
    others.found = {"log groups": ["/a"], "IAM roles": []}
    found = teardown(ec2, others).look()
    assert found == {
        "instances": ["i-1", "i-2"],
        "VPCs": ["vpc-1"],
        "network interfaces": ["eni-1"],
        "log groups": ["/a"],
    }
    asked = {operation: request for operation, request in ec2.asked if operation == "describe_nat_gateways"}
    # Of all these calls this one alone has no Filters.
    assert asked == {"describe_nat_gateways": {"Filter": [{"Name": "tag:trainium:cluster", "Values": ["bert"]}]}}


@pytest.mark.parametrize("field", ["Tags", "TagSet"])
def test_what_is_another_owner_s_ends_it(ec2: Ec2, field: str) -> None:
    ec2.kept["describe_network_interfaces"] = [{"NetworkInterfaceId": "eni-1", field: tags(owner="bob")}]
    with pytest.raises(TrainiumError, match=r"eni-1 of the network interfaces .*bob"):
        teardown(ec2).look()
    assert teardown(ec2, owner=None).look() == {"network interfaces": ["eni-1"]}


def test_what_another_owner_s_has_become_since_the_look_stays(ec2: Ec2) -> None:
    """Instances may take half an hour to go, and whoever may set tags sets the cluster's meanwhile."""
    ec2.kept["describe_volumes"] = [{"VolumeId": "vol-1", "Tags": tags()}]
    mine = teardown(ec2)
    found = mine.look()
    ec2.kept["describe_volumes"] = [{"VolumeId": "vol-2", "Tags": tags(owner="bob")}]
    mine.delete(found)
    assert "delete_volume" not in [operation for operation, _request in ec2.asked]
    (reason,) = mine.reasons
    assert "vol-2 of the volumes" in reason


def test_what_carries_no_mark_is_told(ec2: Ec2) -> None:
    ec2.kept["describe_vpcs"] = [vpc("vpc-1"), vpc("vpc-2", Tags=tags(proof="true"))]
    ec2.kept["describe_volumes"] = [{"VolumeId": "vol-1", "Tags": tags(proof="")}]
    others = Others()
    others.found = {"log groups": ["/a"]}
    mine = teardown(ec2, others)
    assert mine.unmarked(mine.look(), "proof") == {"VPCs": ["vpc-1"], "log groups": ["/a"]}


def test_all_goes_in_the_order_of_the_table(ec2: Ec2) -> None:
    ec2.kept = {
        "describe_vpcs": [vpc()],
        "describe_subnets": [{"SubnetId": "subnet-1", "VpcId": "vpc-1", "Tags": tags()}],
        "describe_instances": [{"InstanceId": "i-1", "State": {"Name": "running"}, "Tags": tags()}],
    }
    others = Others()
    mine = teardown(ec2, others)
    mine.delete(mine.look())
    assert ec2.deletions() == [
        ("terminate_instances", {"InstanceIds": ["i-1"]}),
        ("delete_subnet", {"SubnetId": "subnet-1"}),
        ("delete_vpc", {"VpcId": "vpc-1"}),
    ]
    assert others.done == MADE
    assert mine.reasons == []
    assert mine.look() == {}


def test_instances_that_are_refused_together_are_tried_by_themselves(ec2: Ec2) -> None:
    ec2.kept["describe_instances"] = [
        {"InstanceId": name, "State": {"Name": "running"}, "Tags": tags()} for name in ("i-1", "i-2")
    ]
    ec2.next["terminate_instances"] = [refused("OperationNotPermitted"), refused("OperationNotPermitted")]
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert [request["InstanceIds"] for _call, request in ec2.deletions()] == [["i-1", "i-2"], ["i-1"], ["i-2"]]
    (reason,) = mine.reasons
    assert "OperationNotPermitted it is" in reason


def test_those_that_ec2_did_not_name_are_tried_again(ec2: Ec2) -> None:
    ec2.kept["describe_instances"] = [
        {"InstanceId": name, "State": {"Name": "running"}, "Tags": tags()} for name in ("i-1", "i-2")
    ]
    ec2.next["terminate_instances"] = [{"TerminatingInstances": [{"InstanceId": "i-1"}]}]
    ec2.kept["describe_instances"][0]["State"] = {"Name": "running"}
    mine = teardown(ec2)
    calls_before = mine._together(BY_NAME["instances"], ec2.kept["describe_instances"])
    assert calls_before == {"i-1"}


def test_a_kind_that_stays_does_not_keep_the_others(ec2: Ec2) -> None:
    ec2.kept = {"describe_volumes": [{"VolumeId": "vol-1", "Tags": tags()}], "describe_vpcs": [vpc()]}
    ec2.next["delete_volume"] = [refused("VolumeInUse")]
    others = Others()
    others.fails = {"log groups": TrainiumError("not these")}
    mine = teardown(ec2, others)
    mine.delete(mine.look())
    assert mine.look() == {"volumes": ["vol-1"]}
    assert len(mine.reasons) == 2
    assert mine.reasons[1] == "not these"


def test_what_does_not_go_in_time_is_named(ec2: Ec2, monkeypatch: pytest.MonkeyPatch) -> None:
    ec2.kept["describe_volumes"] = [{"VolumeId": "vol-1", "State": "in-use", "Tags": tags()}]
    ec2.next["delete_volume"] = [{}]
    monkeypatch.setattr(run, "looks", lambda _timeout: iter([0.0, 1.0]))
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert mine.reasons == ["vol-1 did not go within 120 s"]
    # One that goes already is waited for and not deleted again.
    ec2.kept["describe_volumes"][0]["State"] = "deleting"
    ec2.asked.clear()
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert ec2.deletions() == []
    assert mine.reasons == ["vol-1 did not go within 120 s"]


def group(name: str) -> Item:
    return {"GroupId": name, "VpcId": "vpc-1", "Tags": tags()}


def test_a_group_that_another_names_goes_after_it(ec2: Ec2) -> None:
    ec2.kept["describe_security_groups"] = [group("sg-1"), group("sg-2")]
    ec2.next["delete_security_group"] = [refused("DependencyViolation")]
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert [request["GroupId"] for _call, request in ec2.deletions()] == ["sg-1", "sg-2", "sg-1"]
    assert mine.reasons == []


def test_groups_that_all_stay_are_tried_once(ec2: Ec2) -> None:
    ec2.kept["describe_security_groups"] = [group("sg-1"), group("sg-2")]
    ec2.next["delete_security_group"] = [refused("DependencyViolation") for _time in range(9)]
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert len(ec2.deletions()) == 2
    (reason,) = mine.reasons
    assert "DependencyViolation it is" in reason


def test_a_refusal_of_another_kind_is_not_tried_again(ec2: Ec2) -> None:
    ec2.kept["describe_security_groups"] = [group("sg-1"), group("sg-2")]
    ec2.next["delete_security_group"] = [refused("UnauthorizedOperation")]
    mine = teardown(ec2)
    mine.delete(mine.look())
    assert [request["GroupId"] for _call, request in ec2.deletions()] == ["sg-1", "sg-2"]
    assert len(mine.reasons) == 1


@pytest.mark.parametrize(("gone", "tries"), [("file systems", 3), ("EFS file systems", 3), ("log groups", 1)])
def test_interfaces_of_file_systems_that_are_gone_are_waited_for(ec2: Ec2, gone: str, tries: int) -> None:
    """EC2 has them for some seconds longer, and refuses their security groups meanwhile."""
    ec2.kept["describe_security_groups"] = [group("sg-1")]
    ec2.next["delete_security_group"] = [refused("DependencyViolation"), refused("DependencyViolation")]
    others = Others()
    others.found = {gone: ["one"]}
    mine = teardown(ec2, others)
    mine.delete(mine.look())
    assert len(ec2.deletions()) == tries
    assert bool(mine.reasons) == (tries == 1)


def test_what_is_kept_in_a_network_keeps_its_frame(ec2: Ec2) -> None:
    ec2.kept = {
        "describe_vpcs": [vpc(), vpc("vpc-2")],
        "describe_subnets": [{"SubnetId": "subnet-1", "VpcId": "vpc-1", "Tags": tags()}],
        "describe_internet_gateways": [
            {"InternetGatewayId": "igw-1", "Attachments": [{"VpcId": "vpc-1"}], "Tags": tags()}
        ],
        "describe_volumes": [{"VolumeId": "vol-1", "VpcId": "vpc-1", "Tags": tags()}],
    }
    assert teardown(ec2, held=lambda: ["vpc-1"]).look() == {"VPCs": ["vpc-2"], "volumes": ["vol-1"]}
    # Whose it is matters of what is to go alone.
    ec2.kept["describe_vpcs"][0]["Tags"] = tags(owner="bob")
    assert teardown(ec2, held=lambda: ["vpc-1"]).look() == {"VPCs": ["vpc-2"], "volumes": ["vol-1"]}


def of_kubernetes(name: str, network: str) -> Item:
    return {"GroupId": name, "VpcId": network, "Tags": [{"Key": "kubernetes.io/cluster/bert", "Value": "owned"}]}


def test_groups_of_kubernetes_count_in_a_network_of_the_cluster(ec2: Ec2) -> None:
    """Somebody else's cluster may have the same name elsewhere; and they carry no tag of an owner."""
    ec2.kept["describe_security_groups"] = [of_kubernetes("sg-1", "vpc-1"), of_kubernetes("sg-2", "vpc-2")]
    assert teardown(ec2, networks=lambda: {"vpc-1"}).look() == {"security groups of Kubernetes": ["sg-1"]}
    assert teardown(ec2).look() == {}


def test_where_the_cluster_of_eks_stays_its_nodes_stay(ec2: Ec2) -> None:
    """Its Auto Scaling groups would make new ones."""
    ec2.kept = {
        "describe_instances": [
            {"InstanceId": "i-1", "State": {"Name": "running"}, "Tags": tags(**{"eks:cluster-name": "bert"})},
            {"InstanceId": "i-2", "State": {"Name": "running"}, "Tags": tags()},
        ],
        "describe_launch_templates": [{"LaunchTemplateId": "lt-1", "Tags": tags()}],
    }
    others = Others()
    others.fails = {"EKS clusters": AwsCallError("not now", "ResourceInUse", "not now")}
    mine = teardown(ec2, others)
    mine.delete(mine.look())
    assert ec2.deletions() == [("terminate_instances", {"InstanceIds": ["i-2"]})]
    assert [name for name in MADE if name not in others.done] == [
        *("EKS clusters", "load balancers", "interfaces of load balancers", "IAM roles"),
    ]
    assert mine.reasons == ["not now"]
