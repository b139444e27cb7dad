"""The attempts of a launch: in which subnets, with which address, what ends it, and what is said where none runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import run_launch
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.instances import Place
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.interfaces import known_network, plan_interfaces
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.run_launch import (
    LateCapacityError,
    Launch,
    launch_nodes,
    requests,
)
from ansible_collections.trainium.cluster.plugins.module_utils._ec2.vacancies import Vacancy

from tests.in_process import told

Item = dict[str, Any]
KIND = "trn1.2xlarge"
PARAMS: Item = {
    "name": "bert",
    "cluster_name": "c1",
    "role": "compute",
    "instance_type": KIND,
    "image_id": "ami-1",
    "security_groups": ["sg-1"],
    "market": "on-demand",
    "placement_group": None,
    "capacity_reservation": None,
    "public_ip": "none",
    "wait_timeout": 600,
}
SUBNETS: list[Mapping[str, Any]] = [
    {"SubnetId": "subnet-b", "AvailabilityZone": "us-west-2b"},
    {"SubnetId": "subnet-d", "AvailabilityZone": "us-west-2d"},
]
LAUNCH = Launch(2, plan_interfaces(known_network(KIND), None), {}, SUBNETS, [])
VACANCY = Vacancy(Place(1, 0, ""), 2, "192.0.2.7", "subnet-d")


def refused(code: str, reason: str = "no") -> AwsCallError:
    return AwsCallError(f"AWS would not launch the instances: {reason} ({code})", code, reason)


class Ec2:
    """Answers of EC2 to one launch after the other, errors among them; and the subnets that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any, seen: str = "running") -> None:
        self.answers, self.asked, self.seen = list(answers), [], seen  # type: list[Any], list[Item], str
        self.filters: list[Item] = []
        monkeypatch.setattr(run_launch.ec2, "run_instances", self._run)
        monkeypatch.setattr(run_launch.ec2, "describe_instances", self._describe)
        monkeypatch.setattr(run_launch, "looks", lambda _seconds, _pace: iter(range(3)))

    def _run(self, _client: Any, request: Item) -> list[Item]:
        self.asked.append(request)
        self.seen = told(self.answers.pop(0) if self.answers else "running")
        return [self._instance(number) for number in range(request["MinCount"])]

    def _describe(self, _client: Any, filters: Item) -> list[Item]:
        self.filters.append(filters)
        return [self._instance(0)] if self.seen else []

    def _instance(self, number: int) -> Item:
        return {"InstanceId": f"i-{len(self.asked)}{number}", "State": {"Name": self.seen or "pending"}}

    @property
    def subnets(self) -> list[str]:
        return [request["NetworkInterfaces"][0]["SubnetId"] for request in self.asked]

    def launch(
        self, launch: Launch = LAUNCH, arrive: Callable[[Any, Any], None] = lambda _nodes, _seen: None
    ) -> run_launch.Launched:
        return launch_nodes(None, PARAMS, launch, 4, arrive)


def outcomes(attempts: list[Item]) -> list[tuple[str, int, str]]:
    return [(item["subnet_id"], item["generation"], item["outcome"]) for item in attempts]


def test_one_call_in_the_first_subnet(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)
    arrived: list[Any] = []
    done = ec2.launch(arrive=lambda nodes, seen: arrived.append(([n["instance_id"] for n in nodes], len(seen))))
    assert [node["instance_id"] for node in done.nodes] == ["i-10", "i-11"]
    assert arrived == [(["i-10", "i-11"], 1)]
    assert (done.generation, done.request) == (4, ec2.asked[0])
    assert done.attempts == [
        {
            "subnet_id": "subnet-b",
            "availability_zone": "us-west-2b",
            "generation": 4,
            "outcome": "launched",
            "message": "",
        }
    ]
    assert ec2.filters == [{"client-token": ec2.asked[0]["ClientToken"]}]


@pytest.mark.parametrize("code", ["InsufficientInstanceCapacity", "Unsupported", "InsufficientFreeAddressesInSubnet"])
def test_where_there_is_no_room_the_next_subnet_is_tried(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    ec2 = Ec2(monkeypatch, refused(code))
    done = ec2.launch()
    assert outcomes(done.attempts) == [("subnet-b", 4, code), ("subnet-d", 4, "launched")]
    assert done.attempts[0]["message"] == "no"


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (
            ["InsufficientInstanceCapacity", "Unsupported"],
            (
                "no capacity for 2 x trn1.2xlarge: tried subnet-b in us-west-2b (InsufficientInstanceCapacity), "
                "subnet-d in us-west-2d (Unsupported: no); nothing was started; add a subnet of another zone, reserve "
                "capacity, or try again later"
            ),
        ),
        (
            ["InsufficientFreeAddressesInSubnet"] * 2,
            (
                "no addresses for 2 x trn1.2xlarge: tried subnet-b in us-west-2b (InsufficientFreeAddressesInSubnet), "
                "subnet-d in us-west-2d (InsufficientFreeAddressesInSubnet); nothing was started; take larger subnets, "
                "or interface_layout efa-only where it is efa, or try again if instances end there"
            ),
        ),
        (["InsufficientFreeAddressesInSubnet", "InsufficientInstanceCapacity"], "no capacity for 2 x trn1.2xlarge:"),
    ],
)
def test_where_no_subnet_has_room_all_are_named(monkeypatch: pytest.MonkeyPatch, codes: list[str], said: str) -> None:
    ec2 = Ec2(monkeypatch, *map(refused, codes))
    with pytest.raises(TrainiumError) as error:
        ec2.launch()
    assert str(error.value).startswith(said)
    assert [item["outcome"] for item in error.value.details["attempts"]] == codes


def test_another_error_ends_it_with_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, refused("InsufficientInstanceCapacity"), refused("UnauthorizedOperation"))
    with pytest.raises(AwsCallError) as error:
        ec2.launch()
    assert [item["outcome"] for item in error.value.details["attempts"]] == [
        "InsufficientInstanceCapacity",
        "UnauthorizedOperation",
    ]
    ec2 = Ec2(monkeypatch, AwsCallError("cannot launch the instances: lost"))
    with pytest.raises(AwsCallError) as error:
        ec2.launch()
    assert [item["outcome"] for item in error.value.details["attempts"]] == ["failed"]


@pytest.mark.parametrize("answer", ["terminated", "shutting-down", refused("IdempotentInstanceTerminated")])
def test_a_token_of_nodes_that_are_gone_is_stepped_over(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    ec2 = Ec2(monkeypatch, answer, answer)
    done = ec2.launch()
    assert outcomes(done.attempts) == [
        ("subnet-b", 4, "replayed"),
        ("subnet-b", 5, "replayed"),
        ("subnet-b", 6, "launched"),
    ]
    assert len({request["ClientToken"] for request in ec2.asked}) == 3
    assert done.generation == 6


def test_tokens_of_nodes_that_are_gone_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, *["terminated"] * 99)
    with pytest.raises(TrainiumError, match="EC2 answered 20 launches with nodes that are gone; wait an hour or"):
        ec2.launch()
    assert len(ec2.asked) == 20


def test_one_that_is_not_seen_yet_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Ec2(monkeypatch, "").launch().generation == 4


def test_room_that_is_missing_late_sends_it_to_the_next_subnet(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)

    def arrive(nodes: Any, _seen: Any) -> None:
        if nodes[0]["instance_id"] == "i-10":
            raise LateCapacityError("none is left")

    done = ec2.launch(arrive=arrive)
    assert outcomes(done.attempts) == [("subnet-b", 4, "InsufficientInstanceCapacity"), ("subnet-d", 4, "launched")]
    assert done.attempts[0]["message"] == "none is left"


def test_what_fails_while_they_arrive_tells_which_were_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch)

    def arrive(_nodes: Any, _seen: Any) -> None:
        raise TrainiumError("no")

    with pytest.raises(TrainiumError) as error:
        ec2.launch(arrive=arrive)
    assert error.value.details["launched"] == ["i-10", "i-11"]
    assert error.value.details["request"]["ClientToken"] == ec2.asked[0]["ClientToken"]
    assert len(error.value.details["attempts"]) == 1


# --- the place of another ---


def test_who_takes_a_place_is_asked_for_at_home_first_with_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = requests(PARAMS, LAUNCH._replace(nodes=1, vacancy=VACANCY), 4)
    shown = [(place["SubnetId"], request["NetworkInterfaces"][0].get("PrivateIpAddress")) for place, request in wanted]
    assert shown == [("subnet-d", "192.0.2.7"), ("subnet-d", None), ("subnet-b", None)]
    assert all(
        {"Key": "trainium:place", "Value": "1/0/"} in request["TagSpecifications"][0]["Tags"] for _p, request in wanted
    )
    # Whose subnet is not among those that are given, or is not known, has no home.
    for subnet in ("subnet-x", ""):
        elsewhere = requests(PARAMS, LAUNCH._replace(nodes=1, vacancy=VACANCY._replace(subnet=subnet)), 4)
        assert [place["SubnetId"] for place, _request in elsewhere] == ["subnet-b", "subnet-d"]


@pytest.mark.parametrize("code", ["InvalidIPAddress.InUse", "InvalidParameterValue"])
def test_an_address_that_cannot_be_had_is_asked_for_no_more(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    # An interface lags behind its instance, so that one in use is asked for as long as it may.
    times = 3 if code.endswith("InUse") else 1
    ec2 = Ec2(monkeypatch, *[refused(code)] * times)
    done = ec2.launch(LAUNCH._replace(nodes=1, vacancy=VACANCY))
    assert outcomes(done.attempts) == [("subnet-d", 4, code), ("subnet-d", 4, "launched")]
    assert len(ec2.asked) == times + 1
    assert "PrivateIpAddress" not in ec2.asked[-1]["NetworkInterfaces"][0]


def test_a_home_without_room_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Ec2(monkeypatch, refused("InsufficientInstanceCapacity"))
    ec2.launch(LAUNCH._replace(nodes=1, vacancy=VACANCY))
    assert ec2.subnets == ["subnet-d", "subnet-b"]


def test_each_place_is_a_launch_and_the_rest_is_one() -> None:
    other = VACANCY._replace(address="192.0.2.8")
    parts = LAUNCH._replace(nodes=5).parts([VACANCY, other])
    assert [(part.nodes, part.vacancy) for part in parts] == [(1, VACANCY), (1, other), (3, None)]
    assert [part.vacancy for part in LAUNCH._replace(nodes=1).parts([VACANCY, other])] == [VACANCY]
    assert [(part.nodes, part.vacancy) for part in LAUNCH.parts([])] == [(2, None)]
