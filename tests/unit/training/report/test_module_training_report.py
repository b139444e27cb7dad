"""The module training_report on real files: what it writes, that it does so once, and what check mode leaves alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules import training_report

from tests.in_process import ended

LOG = "JOB nodes=2 processes=4\n" + "".join(
    f"LOG Wed Dec 21 00:51:{step:02} 2022 - (0, {step}) step_loss : {'nan' if step == 5 else 10 - step / 10} "
    f"learning_rate : 2.80e-06 throughput : {100 + step}.00\n"
    for step in range(1, 31)
)
REPORT = {"name": "bert", "job_id": 7, "nodes": 2, "processes": 4, "initial_loss": 9.9, "final_loss": float("nan")}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "bert.log"
    path.write_text(LOG, encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], folder: Path, log: Path, **options: Any) -> dict[str, Any]:
    """The module's result, with its exit code as ``rc``."""
    arguments = {
        "directory": str(folder / "reports"),
        "logs": [str(log)],
        "report": REPORT,
        "_ansible_remote_tmp": str(folder),
        **options,
    }
    result, code = ended(training_report.main, arguments, capsys)
    return {**result, "rc": code}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_written_once(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(capsys, tmp_path, log)
    assert (first["rc"], first["changed"]) == (0, True)
    written = files(tmp_path / "reports")
    assert sorted(written) == [
        "metrics.csv",
        "metrics.json",
        "report.html",
        "tensorboard/bert/events.out.tfevents.1671583861.7.trainium",
    ]
    assert set(first["files"].values()) == {str(tmp_path / "reports" / name) for name in written}
    assert first["summary"]["not_a_number"] == [{"step": 5, "loss": "nan"}]
    second = run(capsys, tmp_path, log)
    assert (second["changed"], second["diff"]) == (False, [])
    assert files(tmp_path / "reports") == written


def test_json_and_csv_have_every_step(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, tmp_path, log)["files"]
    known = json.loads(Path(found["json"]).read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert [step["step"] for step in known["steps"]] == list(range(1, 31))
    assert known["steps"][4]["loss"] is None
    with open(found["csv"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == [str(step) for step in range(1, 31)]
    assert rows[4]["loss"] == "nan"
    assert float(rows[9]["throughput"]) == 110.0


def test_check_mode_says_what_it_would_write(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, tmp_path, log, _ansible_check_mode=True, _ansible_diff=True)
    assert result["changed"]
    assert not (tmp_path / "reports").exists()
    shown = {part["after_header"]: part["after"] for part in result["diff"]}
    assert json.loads(shown["metrics.json"])["summary"]["steps"] == 30
    assert "steps" not in json.loads(shown["metrics.json"])


def test_a_later_run_takes_the_place_of_an_earlier_one(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, tmp_path, log)
    other = tmp_path / "reports" / "tensorboard" / "bert" / "events.out.tfevents.1.mine"
    other.write_bytes(b"")
    run(capsys, tmp_path, log, report={**REPORT, "job_id": 8})
    names = sorted(path.name for path in other.parent.iterdir())
    assert names == ["events.out.tfevents.1.mine", "events.out.tfevents.1671583861.8.trainium"]


def test_a_running_training_grows(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(LOG[: LOG.index("(0, 20)")], encoding="utf-8")
    assert run(capsys, tmp_path, log, running=True)["summary"]["steps"] == 19
    before = (tmp_path / "reports" / "metrics.csv").read_bytes()
    log.write_text(LOG, encoding="utf-8")
    assert run(capsys, tmp_path, log)["summary"]["steps"] == 30
    assert len((tmp_path / "reports" / "metrics.csv").read_bytes()) > len(before)


def test_the_cost_is_shown_where_prices_are_given(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"name": name, "instance_type": "trn1.32xlarge"} for name in ("a", "b")]
    report = {**REPORT, "started_at": 1000, "ended_at": 4600, "node_details": nodes}
    run(capsys, tmp_path, log, report=report)
    assert b"Cost" not in (tmp_path / "reports" / "report.html").read_bytes()
    run(capsys, tmp_path, log, report=report, price_per_hour={"trn1.32xlarge": "21.50"})
    assert b"43.00 USD" in (tmp_path / "reports" / "report.html").read_bytes()
    # A head node that trains nothing is paid for as well.
    report["head_type"] = "m5.2xlarge"
    run(capsys, tmp_path, log, report=report, price_per_hour={"trn1.32xlarge": 21.5, "m5.2xlarge": 0.384})
    assert b"0.38 USD" in (tmp_path / "reports" / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"price_per_hour": {"trn1.32xlarge": "cheap"}},
            "The price of trn1.32xlarge an hour is 'cheap'; give US dollars",
        ),
        ({"price_per_hour": {"trn1.32xlarge": -1}}, "give US dollars as a number"),
        ({"logs": ["/nowhere/bert.log"]}, "The log /nowhere/bert.log cannot be read (No such file or directory)"),
        ({"directory": "/dev/null/reports"}, "cannot be read (Not a directory); set another directory."),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], words: str
) -> None:
    result = run(capsys, tmp_path, log, **options)
    assert result["rc"] == 1
    assert result["msg"].startswith("training_report: ")
    assert words in result["msg"]
    assert not (tmp_path / "reports").exists()


def test_a_hostile_name_leaves_the_folder_alone(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, tmp_path, log, report={**REPORT, "name": "../../../x/<b>", "job_id": "../7"})
    events = [name for name in files(tmp_path / "reports") if "tfevents" in name]
    assert events == ["tensorboard/_.._.._x_b_/events.out.tfevents.1671583861._7.trainium"]
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("ansible")) == [
        "bert.log",
        "reports",
    ]
