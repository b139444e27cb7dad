"""capacity_reservation as a module: what AWS is asked in which order, what is left where it fails, and what is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common import waiting
from ansible_collections.trainium.cluster.plugins.modules import capacity_reservation

from tests.unit.aws_answers import Aws, Item
from tests.unit.in_aws import Module
from tests.unit.passing_time import Clock

KIND = "trn1.32xlarge"
USUAL: Item = {"name": "a", "cluster_name": "c1", "instance_type": KIND, "availability_zone": "us-west-2d"}
GONE: Item = {"name": "a", "cluster_name": "c1", "state": "absent"}
POOL = "AWS::EC2::CapacityReservationPool"
OURS = {"trainium:cluster": "c1", "trainium:reservation-group": "x"}


def reservation(identity: str = "cr-1", **changes: Any) -> Item:
    """As EC2 shows one that is as wanted."""
    tags = {"Name": "a", "trainium:cluster": "c1", "trainium:reservation": "a", "trainium:generation": "1"}
    return {
        "CapacityReservationId": identity,
        "CapacityReservationArn": f"arn:{identity}",
        "State": "active",
        "InstanceType": KIND,
        "AvailabilityZone": "us-west-2d",
        "TotalInstanceCount": 1,
        "AvailableInstanceCount": 1,
        "InstancePlatform": "Linux/UNIX",
        "InstanceMatchCriteria": "targeted",
        "EndDateType": "unlimited",
        "Tags": [{"Key": key, "Value": value} for key, value in {**tags, **changes.pop("tags", {})}.items()],
        **changes,
    }


def arn_of(group: str) -> str:
    return f"arn:aws:resource-groups:us-west-2:123456789012:group/{group}"


class Account(Aws):
    """Reservations and resource groups, which the calls change; ``tags`` are those of groups, by their names."""

    def __init__(self, *found: Item, groups: Mapping[str, Sequence[str]] | None = None) -> None:
        self.found = {item["CapacityReservationId"]: item for item in found}
        self.groups = {name: list(members) for name, members in (groups or {}).items()}
        self.tags = dict.fromkeys(self.groups, OURS)
        self.type = POOL
        calls: list[Callable[[Item], Any]] = [
            *(self._describe, self._create, self._cancel, self._groups_of, self._list, self._members, self._join),
            *(self._leave, self._make_group, self._drop_group, self._configuration, self._tags_of),
        ]
        names = (
            *("DescribeCapacityReservations", "CreateCapacityReservation", "CancelCapacityReservation"),
            *("GetGroupsForCapacityReservation", "ListGroups", "ListGroupResources", "GroupResources"),
            *("UngroupResources", "CreateGroup", "DeleteGroup", "GetGroupConfiguration", "GetTags"),
        )
        super().__init__(dict(zip(names, calls)))
        self.answers["GetGroup"] = lambda asked: {"Group": {"GroupArn": arn_of(asked["Group"]), "Name": "x"}}

    @property
    def done(self) -> list[str]:
        """The calls that change something, and what they are about; of a question whether one could, just that."""
        about = ("Group", "Name", "CapacityReservationId", "InstanceCount")
        return [
            f"{'could ' if asked.get('DryRun') else ''}{call} {next((asked[one] for one in about if one in asked), '')}"
            for call, asked in self.asked
            if not call.startswith(("Describe", "Get", "List"))
        ]

    def _describe(self, asked: Item) -> Item:
        ids = asked.get("CapacityReservationIds") or list(self.found)
        return {"CapacityReservations": [self.found[one] for one in ids if one in self.found]}

    def _create(self, asked: Item) -> Any:
        if asked.get("DryRun"):
            return "DryRunOperation"
        made = reservation("cr-9", TotalInstanceCount=asked["InstanceCount"])
        self.found["cr-9"] = made
        return {"CapacityReservation": made}

    def _cancel(self, asked: Item) -> Item:
        self.found[asked["CapacityReservationId"]]["State"] = "cancelled"
        return {}

    def _groups_of(self, asked: Item) -> Item:
        inside = [name for name, members in self.groups.items() if f"arn:{asked['CapacityReservationId']}" in members]
        return {"CapacityReservationGroups": [{"GroupArn": arn_of(name)} for name in inside]}

    def _list(self, _asked: Item) -> Item:
        return {"GroupIdentifiers": [{"GroupArn": arn_of(name)} for name in self.groups]}

    def _members(self, asked: Item) -> Item:
        return {"Resources": [{"Identifier": {"ResourceArn": one}} for one in self.groups[asked["Group"]]]}

    def _join(self, asked: Item) -> Item:
        self.groups[asked["Group"]] += asked["ResourceArns"]
        return {}

    def _leave(self, asked: Item) -> Item:
        self.groups[asked["Group"]] = [one for one in self.groups[asked["Group"]] if one not in asked["ResourceArns"]]
        return {}

    def _make_group(self, asked: Item) -> Item:
        self.groups[asked["Name"]], self.tags[asked["Name"]] = [], asked["Tags"]
        return {}

    def _drop_group(self, asked: Item) -> Item:
        del self.groups[asked["Group"]]
        return {}

    def _configuration(self, asked: Item) -> Any:
        if asked["Group"] not in self.groups:
            return "NotFoundException"
        return {"GroupConfiguration": {"Configuration": [{"Type": self.type}]}}

    def _tags_of(self, asked: Item) -> Item:
        return {"Tags": self.tags[asked["Arn"].rpartition("/")[2]]}


Run = Callable[..., Module]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    Clock().governs(monkeypatch, waiting)

    def made(account: Account, usual: Item | None = None) -> Module:
        clients = {name: account.client(name) for name in ("ec2", "resource-groups")}
        return Module(capacity_reservation, clients, monkeypatch, capsys, usual or USUAL)

    return made


# --- present ---


def test_it_is_made_and_shown_as_ec2_shows_it(module: Run) -> None:
    account = Account()
    result = module(account).run(count=3)
    assert account.done == ["CreateCapacityReservation 3"]
    assert (result["changed"], result["capacity_reservation_id"], result["arn"]) == (True, "cr-9", "arn:cr-9")
    assert (result["capacity_reservation"]["count"], result["capacity_reservation"]["resource_groups"]) == (3, [])
    assert (result["resource_group_arn"], result["cancelled"]) == ("", [])
    assert "diff" not in result
    # EC2 shows it once more at the end, by its id.
    assert account.last("DescribeCapacityReservations") == {"CapacityReservationIds": ["cr-9"]}


def test_one_that_is_as_wanted_is_left_alone(module: Run) -> None:
    account = Account(reservation(), groups={"other": ["arn:cr-1"]})
    result = module(account).run(diff=True)
    assert (account.done, result["changed"]) == ([], False)
    assert result["capacity_reservation"]["resource_groups"] == ["other"]
    assert result["diff"]["before"] == result["diff"]["after"] == result["capacity_reservation"]
    assert account.filters("DescribeCapacityReservations") == {
        "tag:trainium:cluster": ["c1"],
        "tag:trainium:reservation": ["a"],
    }


def test_check_mode_asks_whether_it_could_be_made_and_makes_nothing(module: Run) -> None:
    account = Account()
    result = module(account).run(check=True, diff=True, resource_group="x", count=2)
    assert account.done == ["could CreateCapacityReservation 2"]
    assert (account.found, account.groups) == ({}, {})
    assert (result["changed"], result["capacity_reservation_id"]) == (True, "")
    assert result["diff"]["before"] == {}
    assert (result["diff"]["after"]["resource_groups"], result["diff"]["after"]["count"]) == (["x"], 2)
    # Which ARN it will have is not known.
    assert result["resource_group_arn"] == ""


def test_check_mode_asks_nothing_about_one_that_is_there(module: Run) -> None:
    account = Account(reservation(), groups={"old": ["arn:cr-1"], "x": []})
    result = module(account).run(check=True, diff=True, resource_group="x", count=2)
    assert (account.done, result["changed"]) == ([], True)
    before, after = result["diff"]["before"], result["diff"]["after"]
    assert (before["resource_groups"], before["count"]) == (["old"], 1)
    assert (after["resource_groups"], after["count"], after["available_count"]) == (["x"], 2, 2)


def test_a_group_that_is_missing_is_made_before_anything_costs_money(module: Run) -> None:
    account = Account()
    result = module(account).run(resource_group="x")
    assert account.done == ["CreateGroup x", "CreateCapacityReservation 1", "GroupResources x"]
    assert account.groups == {"x": ["arn:cr-9"]}
    assert account.tags["x"] == {"trainium:cluster": "c1", "trainium:reservation-group": "x"}
    assert {"Type": POOL} in account.last("CreateGroup")["Configuration"]
    assert result["capacity_reservation"]["resource_groups"] == ["x"]
    assert result["resource_group_arn"] == arn_of("x")


@pytest.mark.parametrize("there", [False, True])
def test_without_capacity_only_a_group_that_was_there_is_left(module: Run, there: bool) -> None:
    account = Account(groups={"x": []} if there else {})
    account.answers["CreateCapacityReservation"] = "InsufficientInstanceCapacity"
    said = module(account).said(resource_group="x", count=4)
    assert said == (
        "capacity_reservation a: there is no capacity for 4 x trn1.32xlarge in us-west-2d: "
        "InsufficientInstanceCapacity it is (InsufficientInstanceCapacity); nothing was reserved, try another zone, a "
        "lower count, or later."
    )
    assert list(account.groups) == (["x"] if there else [])
    assert account.done[-1] == ("CreateCapacityReservation 4" if there else "DeleteGroup x")


def test_a_zone_without_the_type_is_told_where_to_look(module: Run) -> None:
    account = Account()
    account.answers["CreateCapacityReservation"] = "Unsupported"
    said = module(account).said(availability_zone=None, availability_zone_id="usw2-az1")
    assert "trn1.32xlarge in usw2-az1: Unsupported it is (Unsupported)" in said
    assert said.endswith("nothing was reserved, neuron_capacity_info tells the zones that offer the type.")
    account.answers["CreateCapacityReservation"] = "UnauthorizedOperation"
    said = module(account).said()
    assert said.startswith("capacity_reservation a: AWS would not make the capacity reservation: UnauthorizedOperation")
    assert "capacity for" not in said


def test_a_group_of_another_kind_is_refused_before_anything_is_made(module: Run) -> None:
    account = Account(groups={"x": []})
    account.type = "AWS::EC2::HostManagement"
    assert f"the resource group x is not of the type {POOL}" in module(account).said(resource_group="x")
    assert account.done == []


@pytest.mark.parametrize(
    ("wanted", "done"),
    [
        ("x", ["GroupResources x", "UngroupResources full", "UngroupResources old", "DeleteGroup old"]),
        ("", ["UngroupResources full", "UngroupResources old", "DeleteGroup old"]),
        (None, []),
        ("theirs", ["UngroupResources full", "UngroupResources old", "DeleteGroup old"]),
    ],
)
def test_it_leaves_other_groups_of_ours_and_these_go_where_they_are_empty(
    module: Run, wanted: str | None, done: list[str]
) -> None:
    mine = ["arn:cr-1"]
    account = Account(
        reservation(), groups={"full": ["arn:cr-7", *mine], "old": mine, "theirs": mine, "another": mine, "x": []}
    )
    # Made by somebody else, and for another cluster.
    account.tags.update(theirs={"trainium:cluster": "c1"}, another={**OURS, "trainium:cluster": "c2"})
    result = module(account).run(resource_group=wanted)
    assert (account.done, result["changed"]) == (done, bool(done))
    kept = ["another", "theirs"] if wanted is not None else ["another", "full", "old", "theirs"]
    assert result["capacity_reservation"]["resource_groups"] == sorted({*kept, *(["x"] if wanted == "x" else [])})
    assert result["resource_group_arn"] == (arn_of(wanted) if wanted else "")


def test_what_differs_is_modified_and_tagged(module: Run) -> None:
    account = Account(reservation())
    result = module(account).run(count=5, tags={"team": "ml"})
    assert account.done == ["ModifyCapacityReservation cr-1", "CreateTags "]
    assert account.last("ModifyCapacityReservation") == {"CapacityReservationId": "cr-1", "InstanceCount": 5}
    wanted = {"Resources": ["cr-1"], "Tags": [{"Key": "team", "Value": "ml"}]}
    assert account.last("CreateTags") == wanted
    assert (result["changed"], result["capacity_reservation_id"]) == (True, "cr-1")
    account.answers["ModifyCapacityReservation"] = "ReservationCapacityExceeded"
    assert "there is no capacity for 5 x trn1.32xlarge in us-west-2d" in module(account).said(count=5)


def test_a_token_that_gives_a_cancelled_one_back_is_followed_by_another(module: Run) -> None:
    account = Account(reservation("cr-0", State="cancelled"))
    answers = [reservation(f"cr-{number}", State="cancelled") for number in (2, 3)] + [reservation("cr-4")]
    account.answers["CreateCapacityReservation"] = lambda _asked: {"CapacityReservation": answers.pop(0)}
    result = module(account).run(wait=False)
    asked = [request for call, request in account.asked if call == "CreateCapacityReservation"]
    tags = [one["Value"] for request in asked for one in request["TagSpecifications"][0]["Tags"] if "gen" in one["Key"]]
    assert tags == ["2", "3", "4"]
    assert len({request["ClientToken"] for request in asked}) == 3
    assert (result["changed"], result["capacity_reservation_id"]) == (True, "cr-4")
    account.answers["CreateCapacityReservation"] = {"CapacityReservation": reservation("cr-5", State="cancelled")}
    account.asked.clear()
    assert "EC2 keeps answering with cr-5, which is cancelled" in module(account).said()
    assert len(account.done) == 5


def test_it_is_waited_for_until_it_is_active(module: Run) -> None:
    account = Account(reservation(State="pending"))
    # One that is not active yet is only looked at where nobody waits.
    assert module(account).run(wait=False)["capacity_reservation"]["state"] == "pending"
    assert "cr-1 (pending) is not active after 9 s" in module(account).said(wait_timeout=9)
    for end in ("active", "failed"):
        states = ["pending", "pending", "pending", end]
        account.answers["DescribeCapacityReservations"] = lambda _asked, states=states: {
            "CapacityReservations": [reservation(State=states.pop(0))]
        }
        if end == "active":
            assert module(account).run()["capacity_reservation"]["state"] == "active"
        else:
            assert module(account).said().startswith("capacity_reservation a: cr-1 is failed")
        assert states == []


def test_one_that_is_not_visible_yet_is_told_as_it_was_answered(module: Run) -> None:
    account = Account()
    account.answers["DescribeCapacityReservations"] = {"CapacityReservations": []}
    assert module(account).run(wait=False)["capacity_reservation_id"] == "cr-9"
    assert "cr-9 (not visible yet) is not active after 9 s" in module(account).said(wait_timeout=9)


def test_what_is_another_owner_s_is_refused_while_it_holds_capacity(module: Run) -> None:
    theirs = {"trainium:owner": "bob"}
    account = Account(reservation(tags=theirs))
    assert "the reservation cr-1" in module(account).said(owner="ada")
    assert account.done == []
    account = Account(reservation(tags=theirs, State="expired"))
    assert module(account).run(owner="ada")["capacity_reservation_id"] == "cr-9"


def test_what_costs_money_is_asked_for_once_with_the_user_s_own_settings(
    module: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, given = Account(), []
    made = module(account)

    def client(_self: object, service: str, **more: Any) -> Any:
        given.append((service, more))
        return account.client(service)

    monkeypatch.setattr(AnsibleAWSModule, "client", client)
    made.run()
    once = {"retries": {"max_attempts": 0}}
    assert given == [("ec2", {}), ("ec2", {"aws_config": once}), ("resource-groups", {})]
    given.clear()
    made.run(aws_config={"proxies": {"https": "p"}, "retries": {"max_attempts": 9}})
    assert given[1] == ("ec2", {"aws_config": {"proxies": {"https": "p"}, **once}})


# --- absent ---


def test_it_is_taken_out_of_its_groups_and_cancelled_and_they_go(module: Run) -> None:
    account = Account(reservation(), groups={"full": ["arn:cr-1", "arn:cr-7"], "x": ["arn:cr-1"], "other": []})
    result = module(account, GONE).run(diff=True)
    assert account.done == [
        *("UngroupResources full", "UngroupResources x", "CancelCapacityReservation cr-1", "DeleteGroup x"),
    ]
    assert account.groups == {"full": ["arn:cr-7"], "other": []}
    assert (result["changed"], result["cancelled"], result["deleted_groups"]) == (True, ["cr-1"], ["x"])
    assert (result["kept_groups"], result["capacity_reservation"]) == (["full"], {})
    before = result["diff"]["before"]
    assert list(before["reservations"]) == ["cr-1"] and before["resource_groups"] == ["x"]
    assert before["reservations"]["cr-1"]["resource_groups"] == ["full", "x"]
    assert result["diff"]["after"] == {"reservations": {}, "resource_groups": []}
    assert not module(account, GONE).run()["changed"]


def test_check_mode_tells_what_would_go(module: Run) -> None:
    account = Account(reservation(), groups={"x": ["arn:cr-1"]})
    result = module(account, GONE).run(check=True)
    assert (account.done, account.groups) == ([], {"x": ["arn:cr-1"]})
    assert (result["changed"], result["cancelled"], result["deleted_groups"]) == (True, ["cr-1"], ["x"])


def test_a_group_that_is_named_goes_where_it_is_empty_and_ours(module: Run) -> None:
    account = Account(groups={"x": [], "other": []})
    result = module(account, GONE).run(resource_group="x")
    assert (account.done, result["changed"], result["cancelled"]) == (["DeleteGroup x"], True, [])
    account = Account(groups={"x": []})
    account.tags["x"] = {}
    assert not module(account, GONE).run(resource_group="x")["changed"]
    assert account.done == []


def test_without_a_name_all_of_the_cluster_goes(module: Run) -> None:
    account = Account(
        reservation(), reservation("cr-2"), groups={"x": ["arn:cr-1"], "empty": [], "full": ["arn:cr-7"], "theirs": []}
    )
    account.tags["theirs"] = {**OURS, "trainium:cluster": "c2"}
    made = module(account, {**GONE, "name": None})
    result = made.run()
    assert account.done == [
        *("UngroupResources x", "CancelCapacityReservation cr-1", "CancelCapacityReservation cr-2"),
        *("DeleteGroup empty", "DeleteGroup x"),
    ]
    assert (result["cancelled"], result["kept_groups"]) == (["cr-1", "cr-2"], ["full"])
    assert made.warned == ["The resource groups full hold reservations of others and stay."]
    assert account.filters("ListGroups") == {"configuration-type": [POOL]}
    asked = [request for call, request in account.asked if call == "DescribeCapacityReservations"]
    assert [one["Name"] for one in asked[0]["Filters"]] == ["tag:trainium:cluster"]


@pytest.mark.parametrize(("state", "warned"), [("active", 1), ("expired", 0)])
def test_a_capacity_block_stays_and_says_so_while_it_is_paid_for(module: Run, state: str, warned: int) -> None:
    end = {"EndDateType": "limited", "EndDate": "2026-12-05T11:30:00Z"}
    account = Account(reservation(ReservationType="capacity-block", State=state, **end))
    made = module(account, GONE)
    assert (made.run()["changed"], account.done) == (False, [])
    said = "cr-1 is a Capacity Block and stays: EC2 cancels none, it is paid for and ends at 2026-12-05T11:30:00Z."
    assert made.warned == [said] * warned
