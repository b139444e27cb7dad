"""The figures of a training: what comes from its report, what from its log, and how the page shows them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.metrics import (
    averages,
    drawable,
    parse,
    steady,
    warm_up,
    window_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.page import moment, number, page, text
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.record import (
    as_csv,
    as_events,
    as_json,
    checked_prices,
    plain,
    record_of,
    safe_name,
)

Item = dict[str, Any]


def log(first: int, last: int, rate: float = 100, day: int = 21) -> str:
    return "".join(
        f"LOG Wed Dec {day} 00:00:{step:02} 2022 - (0, {step}) step_loss : {10 - step / 10:.2f} "
        f"learning_rate : 2.80e-06 throughput : {rate:.2f}\n"
        for step in range(first, last + 1)
    )


TWO_STARTS = f"JOB nodes=2 processes=64\n{log(1, 20)}JOB nodes=1 processes=32\n{log(11, 30, 50)}"


def record(logs: str, report: Item | None = None, running: bool = False, **prices: float) -> Item:
    return record_of(parse([logs], running), report or {}, prices, running)


def tiles(found: Item) -> dict[str, str]:
    """Name -> value, and behind a bar the small words below it."""
    shown = page(found).decode()
    rows = re.findall(r"<dt>(.*?)</dt><dd>(.*?)(?:<small>(.*?)</small>)?</dd>", shown)
    return {name: "|".join(filter(None, (value, note))) for name, value, note in rows}


def cells(found: Item, title: str) -> list[list[str]]:
    (table,) = re.findall(rf"<h2>{title}</h2><table.*?<tbody>(.*?)</tbody>", page(found).decode())
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def test_what_the_log_says_stands_where_a_report_says_nothing() -> None:
    found = record(TWO_STARTS)["summary"]
    assert (found["steps"], found["steps_logged"], found["steps_redone"], found["restarts"]) == (30, 30, 10, 1)
    assert (found["nodes"], found["processes"]) == (1, 32)
    assert (found["initial_loss"], found["final_loss"], found["best_loss"], found["best_loss_step"]) == (9.9, 7, 7, 30)
    assert (found["started_at"], found["ended_at"], found["seconds"]) == (1671580801, 1671580830, 29)
    assert (found["steps_wanted"], found["throughput"], found["average_window"]) == (0, 50, 1)
    whole = record(TWO_STARTS)
    assert (whole["name"], whole["job_id"], whole["state"], whole["running"]) == ("training", "", "", False)


def test_what_a_report_says_counts_more() -> None:
    given = {"nodes": "3", "processes": 96, "restarts": 4, "steps_wanted": 50, "ended_at": 1671584000}
    found = record(TWO_STARTS, {**given, "started_at": 1671580900, "versions": {"torch": "2", "jax": None, "x": ""}})
    summary = found["summary"]
    assert {name: summary[name] for name in ("nodes", "processes", "restarts", "steps_wanted")} == {
        "nodes": 3,
        "processes": 96,
        "restarts": 4,
        "steps_wanted": 50,
    }
    # The report has the last start, 10 seconds after the first.
    assert (summary["started_at"], summary["ended_at"], summary["seconds"]) == (1671580890, 1671584000, 3110)
    assert found["versions"] == {"torch": "2"}


def test_one_that_runs_has_no_end_of_a_report() -> None:
    found = record(log(1, 9), {"ended_at": 5}, running=True)
    assert (found["running"], found["summary"]["ended_at"]) == (True, 1671580809)


@pytest.mark.parametrize("strange", [None, True, "x", float("nan"), [], {}, 10**400])
def test_what_is_no_number_in_a_report_is_not_taken(strange: Any) -> None:
    names = ("nodes", "processes", "restarts", "steps_wanted", "started_at", "ended_at")
    assert record(log(1, 3), dict.fromkeys(names, strange))["summary"] == record(log(1, 3))["summary"]


@pytest.mark.parametrize("details", [None, "n1", {"name": "n1"}, [1, "n1"]])
def test_what_are_no_nodes_are_none(details: Any) -> None:
    assert record("", {"node_details": details})["nodes"] == []


def test_the_means_of_a_start_begin_with_it() -> None:
    text_ = f"JOB nodes=1 processes=1\n{log(1, 30)}JOB nodes=1 processes=1\n{log(31, 59, 50)}"
    steps = record(text_)["steps"]
    assert [steps[place]["throughput_average"] for place in (29, 30)] == [100, 50]
    assert steps[30]["loss_average"] == pytest.approx((steps[29]["loss"] + steps[30]["loss"]) / 2)


def test_the_tiles_of_a_page() -> None:
    report = {
        "started_at": 1671580811,
        "ended_at": 1671584401,
        "steps_wanted": 1000,
        "node_details": [{"name": "a", "instance_type": "x"}],
    }
    assert tiles(record(TWO_STARTS, report, x=2)) == {
        "Loss": "9.9 → 7|lowest 7 at step 30",
        "Steps": "30 of 1,000",
        "Throughput": "50 /s|examples, median when warm",
        "Duration": "1 h 0 min",
        "Size": "1 node|32 processes",
        "Restarts": "1|10 steps done again",
        "Cost, estimated": "2.00 USD|see below",
    }
    # What it took stands before how much did it, and the cost at the end.
    order = ["Loss", "Steps", "Throughput", "Duration", "Size", "Restarts", "Cost, estimated"]
    assert list(tiles(record(TWO_STARTS, report, x=2))) == order
    assert tiles(record("")) == {"Loss": "-", "Steps": "0", "Throughput": "-|examples, median when warm", "Size": "-",
                                 "Restarts": "0"}  # fmt: skip
    assert tiles(record(log(1, 3), running=True))["Duration"] == "2 s|so far"
    assert tiles(record("JOB nodes=2 processes=1\n" + log(1, 3)))["Size"] == "2 nodes|1 processes"


def test_the_starts_of_a_job_are_a_table_where_there_are_two() -> None:
    assert cells(record(TWO_STARTS), "Starts of the job") == [
        ["1", "2022-12-21 00:00 UTC", "2", "1 to 10", "10", "100"],
        ["2", "2022-12-21 00:00 UTC", "1", "11 to 30", "", "50"],
    ]
    assert "Starts of the job" not in page(record(log(1, 3))).decode()
    lost = record("JOB nodes=2 processes=4\nJOB nodes=2 processes=4\n" + log(1, 3))
    assert cells(lost, "Starts of the job")[0][2:] == ["2", "none that count", "", ""]


def test_the_cost_of_each_type() -> None:
    kinds = [{"instance_type": kind} for kind in ("b", "a", "b", "c", "")]
    report = {"started_at": 1000, "ended_at": 1000 + 5400, "node_details": kinds, "head_type": "a"}
    found = record("", report, a=1.5, b=1000)
    assert cells(found, "Cost, estimated") == [
        ["a", "2", "1.50", "1.5 USD", "4.50 USD"],
        ["b", "2", "1.50", "1000 USD", "3,000.00 USD"],
    ]
    assert "No price is given for c, unknown." in page(found).decode()


@pytest.mark.parametrize("price", [-1, True, "x", None, float("nan"), 1e6, [], 10**400])
def test_what_is_no_price_is_refused(price: Any) -> None:
    with pytest.raises(ValueError, match=r"The price of a an hour is .*; give US dollars as a number"):
        checked_prices({"a": price})
    assert checked_prices({"a": 0, "b": "2.5", "7": 999999}) == {"a": 0, "b": 2.5, "7": 999999}


@pytest.mark.parametrize(
    ("state", "running", "kind", "words"),
    [
        ("", False, "state", "Finished"),
        ("COMPLETED", False, "state", "Finished"),
        *(
            (bad, False, "state bad", f"Ended as {bad}")
            for bad in ("FAILED", "cancelled", "OUT_OF_MEMORY", "PREEMPTED")
        ),
        ("FAILED", True, "state going", "Running: figures so far"),
    ],
)
def test_the_head_of_the_page(state: str, running: bool, kind: str, words: str) -> None:
    report = {"state": state, "name": "bert", "job_id": 7, "launcher": "slurm"}
    shown = page(record(log(1, 3), report, running)).decode()
    assert f'<span class="{kind}">{words}</span> · job 7 · ' in shown
    assert "2022-12-21 00:00 UTC to 2022-12-21 00:00 UTC · by slurm</p>" in shown
    bare = page(record("", {"started_at": 1671580800})).decode()
    assert "Finished</span> · 2022-12-21 00:00 UTC</p>" in bare


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *[(999, "999"), (1000, "1,000"), (-1234.5, "-1,234"), (1e9, "1e+09"), (math.inf, "inf"), (0, "0")],
        (12.3456, "12.35"),
    ],
)
def test_a_figure_has_four_digits_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_text_and_moments_at_their_limits() -> None:
    assert text("x" * 200) == "x" * 200
    assert text("a\tb\ue000") == "a\\u0009b\\ue000"
    assert [moment(value) for value in (0, 1, 2**37, 2**37 - 1)][:3] == ["", "1970-01-01 00:00 UTC", ""]
    assert moment(2**37 - 1).startswith("6325-")


def test_json_has_a_line_for_each_step_and_csv_a_row() -> None:
    found = record(log(1, 3).replace("9.90", "nan"))
    lines = as_json(found).decode().splitlines()
    assert json.loads("\n".join(lines))["steps"][0]["loss"] is None
    assert sum(line.startswith('    {"step": ') for line in lines) == len(found["steps"])
    assert b'"name": "b\\u00e9rt"' in as_json(record("", {"name": "bért"}))
    empty = as_json(record("")).decode()
    assert json.loads(empty)["steps"] == [] and empty.endswith('\n  "steps": []\n}\n')
    rows = as_csv(found).decode().splitlines()
    assert rows[0].startswith("step,epoch,loss,loss_average,learning_rate,throughput,throughput_average,time,segment")
    assert len(rows) == 1 + len(found["steps"])
    assert plain({"a": [1.5, math.inf, {"b": math.nan}], "c": "nan"}) == {"a": [1.5, None, {"b": None}], "c": "nan"}


def test_the_name_of_the_event_file() -> None:
    name, _content = as_events(record(log(1, 3), {"name": "a b", "job_id": "7/8"}))
    assert name == "tensorboard/a_b/events.out.tfevents.1671580801.7_8.trainium"
    assert as_events(record("", {}))[0] == "tensorboard/training/events.out.tfevents.0000000000.training.trainium"
    assert [safe_name(one) for one in ("..", "", "a" * 65, ".a")] == ["training", "training", "a" * 64, "a"]


@pytest.mark.parametrize(
    ("rates", "steps"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0.1, 0.5, 0.5], 1),
        ([1, 2, 90, 100], 2),
        ([1, 89, 100, 100], 2),
        ([-1, -1], 0),
        ([math.nan] * 3, 0),
        ([1, math.nan, 1], 0),
    ],
)
def test_how_many_steps_pass_before_it_is_warm(rates: list[float], steps: int) -> None:
    assert warm_up(rates) == steps


def test_the_steady_throughput_is_the_median_of_the_second_half() -> None:
    assert steady([1, 1, 1, 7, 9, 8]) == 8
    assert steady([5, 1, 3]) == 3
    assert steady([1, 2, math.inf, 4]) == 4
    assert steady([]) is None
    assert [window_of(count) for count in (0, 19, 39, 40, 1999, 2000, 10**6)] == [1, 1, 1, 2, 99, 100, 100]


def test_means_leave_out_what_cannot_be_drawn() -> None:
    assert averages([1, math.nan, 3, math.nan, math.nan], 2) == [1, 1, 3, 3, None]
    assert averages([1, 2, 3, 4], 3) == [1, 1.5, 2, 3]
    assert [drawable(value) for value in (1e30, -1e30, 1.1e30, math.inf, math.nan)] == [True, True, False, False, False]
