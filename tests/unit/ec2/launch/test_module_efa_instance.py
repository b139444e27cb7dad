"""efa_instance as a module: which calls a set of nodes takes, in which order, and what is left where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_addresses, run_launch
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import waiting as of_nodes
from ansible_collections.trainium.cluster.plugins.modules import efa_instance

from tests.unit.aws_answers import Aws, Item
from tests.unit.ec2.launch.test_module_launch_template import GROUP, listed
from tests.unit.in_aws import Module
from tests.unit.passing_time import Clock

KIND = "trn1.2xlarge"
USUAL: Item = {
    "name": "a",
    "cluster_name": "c1",
    "count": 2,
    "instance_type": KIND,
    "image_id": "ami-1",
    "subnets": ["subnet-a", "subnet-b"],
    "security_groups": ["sg-1"],
}
IMAGE = {"ImageId": "ami-1", "State": "available", "RootDeviceName": "/dev/sda1", "Architecture": "x86_64"}
NO_ROOM = {"Code": "Server.InsufficientInstanceCapacity", "Message": "none is left"}


class Account(Aws):
    """Instances, by their ids; ``late`` is what new ones end of, launch by launch, '' for those that run."""

    def __init__(self) -> None:
        self.nodes: dict[str, Item] = {}
        self.late: list[Item] = []
        self.addresses: dict[str, Item] = {}
        subnets = [
            {"SubnetId": f"subnet-{one}", "VpcId": "vpc-1", "AvailabilityZone": f"us-west-2{one}"} for one in "ab"
        ]
        super().__init__(
            {
                "DescribeInstanceTypes": {"InstanceTypes": [{"InstanceType": KIND}]},
                "DescribeInstanceTypeOfferings": {
                    "InstanceTypeOfferings": [{"Location": "us-west-2a"}, {"Location": "us-west-2b"}]
                },
                "DescribeSecurityGroups": {"SecurityGroups": [GROUP]},
                "DescribeSubnets": {"Subnets": subnets},
                "DescribeImages": {"Images": [IMAGE]},
                "DescribeInstances": self._describe,
                "DescribeAddresses": lambda _asked: {"Addresses": list(self.addresses.values())},
                "RunInstances": self._launch,
                "TerminateInstances": self._going("terminated", "TerminatingInstances"),
                "StopInstances": self._going("stopped", "StoppingInstances"),
                "StartInstances": self._going("running", "StartingInstances"),
                "CreateTags": self._tag,
                "AllocateAddress": self._allocate,
                "AssociateAddress": self._associate,
                "ReleaseAddress": self._release,
            }
        )

    @property
    def done(self) -> list[str]:
        """The calls that change something, and of which instances or how many."""
        told = []
        for call, asked in self.asked:
            about = asked.get("InstanceIds") or asked.get("Resources") or asked.get("MinCount") or ""
            about = " ".join(one for one in about if one[0] == "i") if isinstance(about, list) else about
            if not call.startswith("Describe"):
                told.append(f"{'could ' if asked.get('DryRun') else ''}{call} {about}".strip())
        return told

    @property
    def living(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node["State"]["Name"] != "terminated"]

    def _describe(self, asked: Item) -> Item:
        filters = {one["Name"]: one["Values"] for one in asked["Filters"]}
        found = [
            node
            for name, node in self.nodes.items()
            if node["Token"] in filters.get("client-token", [node["Token"]])
            and name in filters.get("instance-id", [name])
        ]
        return {"Reservations": [{"Instances": [{**node} for node in found]}]}

    def _launch(self, asked: Item) -> Any:
        if asked.get("DryRun"):
            return "DryRunOperation"
        subnet = asked["NetworkInterfaces"][0]["SubnetId"]
        ended = self.late.pop(0) if self.late else {}
        made = []
        for index in range(asked["MinCount"]):
            name = f"i-0000000{len(self.nodes) + 1}"
            interfaces = [
                {
                    "NetworkInterfaceId": f"eni-{name}",
                    "InterfaceType": one.get("InterfaceType", "interface"),
                    "Attachment": {"NetworkCardIndex": 0, "DeviceIndex": one["DeviceIndex"]},
                }
                for one in asked["NetworkInterfaces"]
            ]
            self.nodes[name] = {
                "InstanceId": name,
                "InstanceType": asked["InstanceType"],
                "ImageId": asked["ImageId"],
                "State": {"Name": "terminated" if ended and not index else "running"},
                "StateReason": {} if index else ended,
                "AmiLaunchIndex": index,
                "SubnetId": subnet,
                "PrivateIpAddress": f"192.0.2.{len(self.nodes) + 1}",
                "Placement": {"AvailabilityZone": f"us-west-2{subnet[-1]}"},
                "NetworkInterfaces": interfaces,
                "SecurityGroups": [{"GroupId": "sg-1"}],
                "RootDeviceName": "/dev/sda1",
                "BlockDeviceMappings": [{"Ebs": {"VolumeId": f"vol-{name}"}}],
                "Tags": asked["TagSpecifications"][0]["Tags"],
                "Token": asked["ClientToken"],
            }
            made.append({**self.nodes[name], "State": {"Name": "pending"}})
        return {"Instances": made}

    def _going(self, state: str, field: str) -> Callable[[Item], Item]:
        def change(asked: Item) -> Item:
            for name in asked["InstanceIds"]:
                self.nodes[name]["State"] = {"Name": state}
            return {field: []}

        return change

    def _tag(self, asked: Item) -> Item:
        for name in asked["Resources"]:
            if name in self.nodes:
                tags = {one["Key"]: one["Value"] for one in [*self.nodes[name]["Tags"], *asked["Tags"]]}
                self.nodes[name]["Tags"] = listed(tags)
        return {}

    def _allocate(self, asked: Item) -> Item:
        name = f"eipalloc-{len(self.addresses) + 1}"
        self.addresses[name] = {"AllocationId": name, "Tags": asked["TagSpecifications"][0]["Tags"]}
        return {"AllocationId": name, "PublicIp": "198.51.100.1"}

    def _associate(self, asked: Item) -> Item:
        more = {"AssociationId": "eipassoc-1", "NetworkInterfaceId": asked["NetworkInterfaceId"]}
        self.addresses[asked["AllocationId"]].update(more)
        return {"AssociationId": "eipassoc-1"}

    def _release(self, asked: Item) -> Item:
        del self.addresses[asked["AllocationId"]]
        return {}


@pytest.fixture
def aws() -> Account:
    return Account()


@pytest.fixture
def module(aws: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    Clock().governs(monkeypatch, of_nodes, run_launch, run_addresses)
    clients = {name: aws.client(name) for name in ("ec2", "service-quotas")}
    return Module(efa_instance, clients, monkeypatch, capsys, {**USUAL, "check_quotas": False})


def tags_of(node: Item) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in node["Tags"]}


def test_a_set_is_launched_by_one_call_and_then_left_alone(module: Module, aws: Account) -> None:
    first = module.run(diff=True)
    assert aws.done == ["RunInstances 2"]
    ids = ["i-00000001", "i-00000002"]
    assert (first["changed"], first["launched"], first["instance_ids"]) == (True, ids, ids)
    assert (first["availability_zone"], [one["outcome"] for one in first["attempts"]]) == ("us-west-2a", ["launched"])
    assert [one["state"] for one in first["instances"]] == ["running"] * 2
    assert (first["diff"]["before"]["count"], first["diff"]["after"]["count"]) == (0, 2)
    assert first["request"]["MinCount"] == 2
    second = module.run(diff=True)
    assert (aws.done, second["changed"], second["launched"]) == (["RunInstances 2"], False, [])
    assert second["instance_ids"] == ids
    assert second["diff"]["before"] == second["diff"]["after"] == first["diff"]["after"]
    # Where no volume is asked for, none is looked at.
    assert "DescribeVolumes" not in aws.names()
    assert module.warned == []


def test_check_mode_asks_ec2_and_launches_nothing(module: Module, aws: Account) -> None:
    result = module.run(check=True, diff=True)
    assert (aws.done, aws.nodes) == (["could RunInstances 2"], {})
    assert (result["changed"], result["asked"], result["instance_ids"]) == (True, True, [])
    assert list(result["diff"]["after"]["instances"]) == ["(new 1)", "(new 2)"]
    assert result["request"]["NetworkInterfaces"][0]["SubnetId"] == "subnet-a"
    result = module.run(check=True, subnets=None)
    assert (len(aws.done), result["changed"], result["asked"]) == (1, True, False)
    assert module.warned == ["EC2 was not asked about the launch: subnets would exist only then."]


def test_volumes_that_are_asked_for_are_compared_by_one_call(module: Module, aws: Account) -> None:
    module.run()
    attached = [{"InstanceId": "i-00000001", "Device": "/dev/sda1"}]
    aws.answers["DescribeVolumes"] = {"Volumes": [{"Size": 100, "VolumeType": "gp3", "Attachments": attached}]}
    assert not module.run(volumes=[{"size": 200}])["changed"]
    assert [call for call, _asked in aws.asked].count("DescribeVolumes") == 1
    assert aws.filters("DescribeVolumes") == {"tag:trainium:cluster": ["c1"], "tag:trainium:set": ["a"]}
    (said,) = module.warned
    assert "size=100" in said and "size=200" in said and "i-00000001" in said


def test_another_image_is_for_those_to_come(module: Module, aws: Account) -> None:
    module.run()
    result = module.run(image_id="ami-2")
    assert (result["changed"], len(module.warned)) == (False, 1)
    assert module.warned[0].startswith("Nodes of the set a run image ami-1; ami-2 is for nodes that are launched from")


def test_a_set_shrinks_only_where_it_may_and_the_oldest_stays(module: Module, aws: Account) -> None:
    module.run()
    assert "the set a has 2 nodes and count is 1" in module.said(count=1)
    promised = module.run(check=True, count=1, allow_shrink=True)
    assert (aws.done, promised["terminated"]) == (["RunInstances 2"], ["i-00000002"])
    result = module.run(count=1, allow_shrink=True)
    assert aws.done[1:] == ["TerminateInstances i-00000002"]
    assert (result["terminated"], result["instance_ids"]) == (["i-00000002"], ["i-00000001"])


def test_a_set_stops_starts_and_goes(module: Module, aws: Account) -> None:
    module.run()
    stopped = module.run(state="stopped")
    both = "i-00000001 i-00000002"
    assert (aws.done[1:], stopped["stopped"]) == ([f"StopInstances {both}"], both.split())
    assert [one["state"] for one in stopped["instances"]] == ["stopped"] * 2
    assert not module.run(state="stopped")["changed"]
    promised = module.run(check=True, diff=True)
    assert [one["state"] for one in promised["diff"]["after"]["instances"].values()] == ["running"] * 2
    started = module.run()
    assert (aws.done[2:], started["started"]) == ([f"StartInstances {both}"], both.split())
    assert [one["state"] for one in started["instances"]] == ["running"] * 2
    gone = module.run(state="absent", instance_type=None, subnets=None)
    assert (aws.done[3:], gone["terminated"]) == ([f"TerminateInstances {both}"], both.split())
    assert (gone["instance_ids"], gone["availability_zone"], aws.living) == ([], "", [])
    assert not module.run(state="absent")["changed"]


def test_one_that_still_stops_is_started_when_it_has_come_to_rest(module: Module, aws: Account) -> None:
    module.run(count=1)
    states = ["stopping", "stopping", "stopping", "stopped"]

    def describe(asked: Item) -> Item:
        if states:
            aws.nodes["i-00000001"]["State"] = {"Name": states.pop(0)}
        return aws._describe(asked)

    aws.answers["DescribeInstances"] = describe
    assert module.run(count=1)["started"] == ["i-00000001"]
    assert (states, aws.done[1:]) == ([], ["StartInstances i-00000001"])


def test_tags_are_set_on_all_that_carries_them(module: Module, aws: Account) -> None:
    module.run()
    promised = module.run(check=True, diff=True, tags={"team": "ml"})
    assert len(aws.done) == 1
    result = module.run(diff=True, tags={"team": "ml"})
    assert result["diff"] == promised["diff"]
    assert aws.last("CreateTags") == {
        "Resources": [f"{kind}{name}" for name in ("i-00000001", "i-00000002") for kind in ("", "vol-", "eni-")],
        "Tags": [{"Key": "team", "Value": "ml"}],
    }
    assert [one["tags"]["team"] for one in result["instances"]] == ["ml"] * 2
    assert not module.run(tags={"team": "ml"})["changed"]


def test_who_is_replaced_goes_first_and_leaves_the_place(module: Module, aws: Account) -> None:
    module.run()
    result = module.run(replace=["i-00000001"])
    assert aws.done[1:] == [
        *("could RunInstances 1", "CreateTags i-00000001", "TerminateInstances i-00000001", "RunInstances 1"),
    ]
    assert (result["replaced"], result["terminated"]) == (["i-00000001"], ["i-00000001"])
    assert (result["launched"], result["instance_ids"]) == (["i-00000003"], ["i-00000003", "i-00000002"])
    assert "trainium:vacated" in tags_of(aws.nodes["i-00000001"])
    assert "trainium:place" in tags_of(aws.nodes["i-00000003"])
    assert aws.last("RunInstances")["NetworkInterfaces"][0]["PrivateIpAddress"] == "192.0.2.1"
    # One that is gone long ago is not asked for again.
    assert not module.run(replace=["i-00000001"])["changed"]
    aws.nodes["i-00000009"] = {**aws.nodes["i-00000002"], "InstanceId": "i-00000009"}
    described = aws._describe

    def of_the_set(asked: Item) -> Item:
        ids = any(one["Name"] == "instance-id" for one in asked["Filters"])
        found = described(asked)["Reservations"][0]["Instances"]
        return {"Reservations": [{"Instances": [one for one in found if ids or one["InstanceId"] != "i-00000009"]}]}

    aws.answers["DescribeInstances"] = of_the_set
    assert "replace names i-00000009, which the set a does not have" in module.said(replace=["i-00000009"])


def test_room_that_is_missing_late_sends_all_to_the_next_zone(module: Module, aws: Account) -> None:
    aws.late = [NO_ROOM]
    result = module.run()
    assert aws.done == ["RunInstances 2", "TerminateInstances i-00000001 i-00000002", "RunInstances 2"]
    assert [one["outcome"] for one in result["attempts"]] == ["InsufficientInstanceCapacity", "launched"]
    assert (result["launched"], result["availability_zone"]) == (["i-00000003", "i-00000004"], "us-west-2b")
    assert result["attempts"][0]["message"] == "none is left"


def test_a_node_that_ends_by_itself_is_told_and_taken_back(module: Module, aws: Account) -> None:
    aws.late = [{"Code": "Client.UserInitiatedShutdown", "Message": "somebody did"}]
    result = module.run()
    assert result["failed"]
    assert "1 of 2 nodes can no longer become running: i-00000001 terminated somebody did" in result["msg"]
    assert "1 of the 2 nodes of this launch were terminated, and the next run launches as many again" in result["msg"]
    assert (result["changed"], result["launched"]) == (True, ["i-00000001", "i-00000002"])
    assert aws.done == ["RunInstances 2", "TerminateInstances i-00000001"]
    aws.nodes.clear()
    aws.late = [{"Code": "Client.UserInitiatedShutdown", "Message": "somebody did"}]
    aws.answers["TerminateInstances"] = "UnauthorizedOperation"
    said = module.said()
    assert "; cleaning up failed as well: AWS would not terminate the instances" in said
    assert said.endswith("remove i-00000001 with state=absent.")


def test_nodes_in_two_zones_are_warned_of(module: Module, aws: Account) -> None:
    module.run()
    aws.nodes["i-00000002"]["Placement"] = {"AvailabilityZone": "us-west-2b"}
    assert module.run()["availability_zone"] == ""
    assert module.warned == ["The nodes of the set a are in us-west-2a, us-west-2b; EFA does not cross zones."]


def test_each_node_gets_an_address_and_they_go_with_the_set(module: Module, aws: Account) -> None:
    result = module.run(public_ip="primary", wait=False)
    assert sorted(aws.done[:3]) == ["AllocateAddress", "AllocateAddress", "RunInstances 2"]
    assert aws.done[3:] == ["AssociateAddress"] * 2
    held = sorted(one["NetworkInterfaceId"] for one in aws.addresses.values())
    assert held == ["eni-i-00000001", "eni-i-00000002"]
    assert (result["changed"], module.run(public_ip="primary")["changed"]) == (True, False)
    # Who stops keeps the address.
    module.run(public_ip="primary", state="stopped")
    assert len(aws.addresses) == 2
    module.run(public_ip="primary", state="absent")
    assert (aws.addresses, aws.living) == ({}, [])


def test_addresses_of_a_launch_that_fails_are_given_back(module: Module, aws: Account) -> None:
    aws.answers["RunInstances"] = "UnauthorizedOperation"
    assert "AWS would not launch the instances" in module.said(public_ip="primary")
    assert (aws.addresses, aws.nodes) == ({}, {})


def test_nothing_is_launched_while_who_is_replaced_does_not_end(module: Module, aws: Account) -> None:
    module.run()
    aws.answers["TerminateInstances"] = {"TerminatingInstances": []}
    result = module.run(replace=["i-00000002"], wait_timeout=1)
    assert "0 of 1 nodes are terminated after 3 s, waiting for i-00000002; nothing was launched yet" in result["msg"]
    assert (result["replaced"], result["launched"]) == (["i-00000002"], [])
    assert aws.done[-1] == "TerminateInstances i-00000002"


def test_who_does_not_wait_gets_nodes_that_do_not_run_yet(module: Module, aws: Account) -> None:
    def launch(asked: Item) -> Any:
        answer = aws._launch(asked)
        for node in answer["Instances"]:
            aws.nodes[node["InstanceId"]]["State"] = {"Name": "pending"}
        return answer

    aws.answers["RunInstances"] = launch
    result = module.run(wait=False)
    assert [one["state"] for one in result["instances"]] == ["pending"] * 2
    # As after a run that was killed while it waited: the next one waits, and changes nothing.
    for node in aws.nodes.values():
        node["State"] = {"Name": "pending"}
    said = module.said(wait_timeout=1)
    assert "0 of 2 nodes are running after 1 s" in said
    assert aws.done == ["RunInstances 2"]


def test_a_successor_that_does_not_run_leaves_the_place_to_the_next(module: Module, aws: Account) -> None:
    module.run()

    def launch(asked: Item) -> Any:
        answer = aws._launch(asked)
        for node in [] if asked.get("DryRun") else answer["Instances"]:
            aws.nodes[node["InstanceId"]]["State"] = {"Name": "pending"}
        return answer

    aws.answers["RunInstances"] = launch
    said = module.said(replace=["i-00000001"], wait_timeout=1)
    assert "the 1 nodes of this launch were terminated again; i-00000001 ended to be replaced, and the next" in said
    assert aws.done[-2:] == ["CreateTags i-00000003", "TerminateInstances i-00000003"]
    aws.answers["RunInstances"] = aws._launch
    result = module.run()
    assert (result["launched"], result["instance_ids"]) == (["i-00000004"], ["i-00000004", "i-00000002"])
