"""The order in which a Capacity Block is bought, and what is made of an answer that says nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._capacity import run_block
from ansible_collections.trainium.cluster.plugins.module_utils._common import waiting
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import AwsCallError, TrainiumError

from tests.in_process import told
from tests.unit.capacity.test_block import FIRST, PARAMS, Item, offering, reservation
from tests.unit.capacity.test_block_arguments import DEFAULTS
from tests.unit.passing_time import Clock

LOST = AwsCallError("cannot buy the Capacity Block: no answer", transient=True)
MADE = {"CapacityReservationId": "cr-9", "State": "payment-pending", "ReservationType": "capacity-block"}


class Shop(Clock):
    """What EC2 shows at each look, the last one for ever, and what it answers to a purchase; and all that was done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seen: list[Any], answer: Any = None) -> None:
        super().__init__()
        self.done: list[str] = []
        self.warned: list[str] = []
        self._seen, self._answer = list(seen) or [[]], MADE if answer is None else answer
        monkeypatch.setattr(run_block, "find", self._find)
        monkeypatch.setattr(run_block.calls_market, "block_offerings", self._offer)
        monkeypatch.setattr(run_block.calls_market, "purchase", self._buy)
        self.governs(monkeypatch, run_block, pace=waiting.every(1))
        monkeypatch.setattr(run_block, "datetime", SimpleNamespace(now=lambda _zone: FIRST))

    def _find(self, client: Any, _params: Item) -> list[Any]:
        assert client.name == "client"
        self.done.append("look")
        return told(self._seen.pop(0) if len(self._seen) > 1 else self._seen[0])

    def _offer(self, client: Any, **request: Any) -> list[Item]:
        assert (client.name, request["InstanceCount"]) == ("client", 4)
        self.done.append("offers")
        return [offering(3, "950"), offering(5, "900")]

    def _buy(self, client: Any, request: Item) -> Item:
        # The client that does not repeat a call by itself.
        assert client.name == "maker"
        self.done.append(f"buy {request['CapacityBlockOfferingId']}")
        if isinstance(self._answer, Exception):
            raise self._answer
        answer: Item = self._answer
        return answer

    def run(self, check: bool = False, **changes: Any) -> Item:
        meta = SimpleNamespace(region_name="us-west-2")
        client, maker = (SimpleNamespace(name=name, meta=meta) for name in ("client", "maker"))
        params = {**PARAMS, **DEFAULTS, "owner": "", "purchase_pause": 0, "wait_timeout": 1, **changes}
        return run_block.CapacityBlock(client, maker, params, check, self.warned.append).run()


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_it_is_looked_for_again_before_it_is_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(monkeypatch)
    result = shop.run()
    assert shop.done == ["look", "offers", "look", "buy cb-5-48"]
    assert (result["changed"], result["capacity_reservation_id"]) == (True, "cr-9")
    assert (result["offering"]["id"], result["diff"]["before"], shop.warned) == ("cb-5-48", {}, [])
    assert result["capacity_reservation"]["resource_groups"] == []


@pytest.mark.parametrize("late", [False, True])
def test_one_that_is_there_is_not_bought(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    shop = Shop(monkeypatch, *([[]] if late else []), [reservation()])
    result = shop.run()
    assert shop.done == (["look", "offers", "look"] if late else ["look"])
    assert (result["changed"], result["capacity_reservation_id"], result["offering"]) == (False, "cr-2", {})
    assert result["diff"]["before"] == result["diff"]["after"] == result["capacity_reservation"]


def test_one_that_has_ended_is_told_and_not_bought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(monkeypatch, [reservation(state="expired")])
    assert not shop.run()["changed"]
    assert shop.warned == ["cr-2, which ends at 2026-12-05T11:30:00Z, is expired; nothing is bought again."]


def test_check_mode_shows_what_would_be_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(monkeypatch)
    result = shop.run(check=True)
    assert shop.done == ["look", "offers"]
    assert (result["changed"], result["offering"]["id"]) == (True, "cb-5-48")
    assert (result["capacity_reservation"]["count"], shop.warned) == (4, [])
    shop.run(check=True, accept_price_up_to=None)
    (said,) = shop.warned
    assert said.startswith("Without check mode the Capacity Block cb-5-48") and said.endswith("or more to buy it.")


def test_without_a_price_nothing_is_bought_and_the_offering_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(monkeypatch)
    with pytest.raises(TrainiumError, match=r"set accept_price_up_to to 900\.00 or more") as error:
        shop.run(accept_price_up_to=None)
    assert error.value.details["offering"]["id"] == "cb-5-48"
    assert shop.done == ["look", "offers"]


@pytest.mark.parametrize("answer", [LOST, {}])
def test_an_answer_that_says_nothing_is_looked_for_and_not_asked_twice(
    monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    shop = Shop(monkeypatch, [], [], [reservation()], answer=answer)
    result = shop.run()
    assert (result["changed"], result["capacity_reservation_id"]) == (True, "cr-2")
    assert shop.done == ["look", "offers", "look", "buy cb-5-48", "look"]


@pytest.mark.parametrize(
    ("answer", "begin", "seen", "why"),
    [
        (
            LOST,
            "cannot buy the Capacity Block: no answer; whether",
            [],
            "since no reservation shows the tags of block:",
        ),
        ({}, "AWS's answer to the purchase names no reservation; whether", [], "since no reservation shows the tags"),
        (LOST, "cannot buy", TrainiumError("EC2 is gone"), "since EC2 is gone: look at the account's"),
    ],
)
def test_what_is_not_known_is_said(
    monkeypatch: pytest.MonkeyPatch, answer: Any, begin: str, seen: Any, why: str
) -> None:
    shop = Shop(monkeypatch, [], [], seen, answer=answer)
    with pytest.raises(TrainiumError) as error:
        shop.run(wait_timeout=3)
    said = str(error.value)
    assert said.startswith(begin) and why in said
    assert "the Capacity Block cb-5-48 in us-west-2d from 2026-12-06T11:30:00Z" in said
    assert "error_code" in error.value.details
    looks = ["look"] if isinstance(seen, Exception) else ["look"] * 4
    assert shop.done == ["look", "offers", "look", "buy cb-5-48", *looks]


def test_it_is_looked_for_as_long_as_the_pause_before_it_is_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(monkeypatch)
    shop.run(purchase_pause=2)
    assert shop.done == ["look", "offers", *["look"] * 3, "buy cb-5-48"]
