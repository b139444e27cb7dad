"""The report's page: complete, harmless whatever it is made of, and the same bytes each time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import parse
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import (
    moment,
    number,
    page,
    text,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import record_of, safe_name
from hypothesis import given
from hypothesis import strategies as st

HOSTILE = "</script><script>alert(1)</script><img src=https://192.0.2.1/x onerror=alert(1)>\"'`&<!--\0\u202e\ud800"
VOID = {"meta", "br", "line"}


def log(first: int, last: int, loss: str = "") -> str:
    return "".join(
        f"LOG Wed Dec 21 00:{step // 60 % 60:02}:{step % 60:02} 2022 - (0, {step}) "
        f"step_loss : {loss or 10 - step / 100} learning_rate : 2.80e-06 throughput : {6000 + step % 7}.00\n"
        for step in range(first, last + 1)
    )


class Reader(HTMLParser):
    """Collects tags and their attributes; fails where tags do not fit together."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(content: bytes) -> Reader:
    reader = Reader()
    reader.feed(content.decode())
    reader.close()
    assert reader.open == []
    return reader


def made(logs: list[str], report: dict[str, Any], prices: dict[str, Any] | None = None, running: bool = False) -> str:
    content = page(record_of(parse(logs, running), report, prices or {}, running))
    assert content == page(record_of(parse(logs, running), report, prices or {}, running))
    read(content)
    return content.decode()


FULL = {
    "name": "bert",
    "job_id": 12,
    "launcher": "slurm",
    "started_at": 1671580000,
    "ended_at": 1671587200,
    "steps_wanted": 300,
    "node_details": [
        {
            "name": f"ip-192-0-2-{n}",
            "address": f"192.0.2.{n}",
            "instance_type": "trn1.32xlarge",
            "availability_zone": "z",
        }
        for n in (5, 6)
    ],
    "versions": {"torch": "2.9.0"},
}
STARTS = (
    "JOB nodes=2 processes=64\n"
    + log(1, 200)
    + "JOB nodes=1 processes=32\ntraining: resumed from step 150\n"
    + log(151, 300)
)


def test_the_page_says_it_all() -> None:
    first, second = (part.started_at for part in parse([STARTS]).segments)
    assert first is not None and second is not None
    # Slurm's report has the last start.
    report = {**FULL, "started_at": 1671580000 + second - first}
    shown = made([STARTS], report, {"trn1.32xlarge": 21.5})
    for words in (
        "<h1>bert</h1>",
        "Finished",
        "job 12",
        "2022-12-20 23:46 UTC to 2022-12-21 01:46 UTC",
        "300 of 300",
        "2 h 0 min",
        "50 steps done again",
        "ip-192-0-2-5",
        "192.0.2.6",
        "86.00 USD",
        "trainium_price_per_hour",
        "2.9.0",
        "started again",
        "mean of 15 steps",
    ):
        assert words in shown, words
    assert shown.count("<path") == 5


def test_nothing_is_fetched_and_only_our_own_script_runs() -> None:
    for content in (made([STARTS], FULL), made([STARTS], {"name": HOSTILE})):
        tags = read(content.encode()).tags
        assert [tag for tag, _attributes in tags].count("script") == 1
        assert {tag for tag, _attributes in tags}.isdisjoint({"img", "link", "iframe", "object", "embed", "base"})
        addresses = [value for _tag, attributes in tags for key, value in attributes.items() if key in ("src", "href")]
        assert addresses == ["metrics.json", "metrics.csv"]
        assert not [key for _tag, attributes in tags for key in attributes if key.startswith("on") or key == "style"]
        policy = next(a["content"] for _tag, a in tags if a.get("http-equiv") == "Content-Security-Policy") or ""
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy


def hostile_report(value: str) -> dict[str, Any]:
    node = {"name": value, "address": value, "instance_type": value, "availability_zone": value}
    known = ("name", "job_id", "launcher", "state", "steps_wanted", "restarts", "started_at", "ended_at", "nodes")
    return {**dict.fromkeys(known, value), "node_details": [node, value], "versions": {value: value}}


def test_hostile_words_are_words() -> None:
    shown = made([STARTS], hostile_report(HOSTILE))
    assert "<script>alert" not in shown and "<img" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "\\u202e" in shown and "\u202e" not in shown and "\0" not in shown


@given(st.text(st.characters()), st.text())
def test_whatever_a_report_holds_the_page_has_the_same_tags(value: str, line: str) -> None:
    content = page(record_of(parse([STARTS + "JOB versions " + line]), hostile_report(value), {"trn1": 1}))
    harmless = page(record_of(parse([STARTS]), hostile_report("word"), {"trn1": 1}))
    known = {tag for tag, _attributes in read(harmless).tags} | {"small", "table", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _attributes in read(content).tags} <= known


@pytest.mark.parametrize("loss", ["nan", "inf", "-inf"])
def test_losses_that_are_no_number_are_named(loss: str) -> None:
    shown = made([log(1, 9) + log(10, 11, loss) + log(12, 20)], {"name": "bert"})
    assert f"2 steps: 10 ({loss}), 11 ({loss})." in shown
    assert "not a number</span>" in shown
    many = made([log(1, 50, loss)], {"name": "bert"})
    assert "50 steps: 1 (" in many and " and 30 more." in many


def test_a_running_training_and_one_without_steps_have_a_page() -> None:
    assert "Running: figures so far" in made([log(1, 3)], {}, running=True)
    assert "The log shows no step" in made([""], {"name": "bert"}, running=True)
    assert "Ended as TIMEOUT" in made([log(1, 3)], {"state": "TIMEOUT"})


def test_thousands_of_steps_are_thinned() -> None:
    small, large = made([log(1, 3000)], {}), made([log(1, 60000)], {})
    assert len(large) < 1.5 * len(small) < 300_000


def test_without_prices_or_a_duration_there_is_no_cost() -> None:
    assert "Cost" not in made([STARTS], FULL)
    assert "Cost" not in made(["JOB nodes=1 processes=1\n"], {**FULL, "ended_at": None}, {"trn1.32xlarge": 1})
    other = made([STARTS], FULL, {"trn2.48xlarge": 1})
    assert (
        "No price is given for trn1.32xlarge." in other and "USD" not in other.split("</style>")[1].split("<script>")[0]
    )


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, ""), (18, "18 s"), (198.7, "3 min 18 s"), (11520, "3 h 12 min"), (356400, "4 d 3 h")]
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_figures() -> None:
    assert [number(value) for value in (None, 10.7011, 6449.36, 2.8e-6, float("nan"))] == [
        "-",
        "10.7",
        "6,449",
        "2.8e-06",
        "nan",
    ]
    assert (moment(None), moment(1671583861), moment(1e300)) == ("", "2022-12-21 00:51 UTC", "")
    assert text("x" * 10_000) == "x" * 200 + "…"


@given(st.text())
def test_a_folder_is_one_folder(name: str) -> None:
    found = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", found)
