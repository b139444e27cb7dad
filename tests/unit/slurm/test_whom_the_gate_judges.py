"""Which nodes the gate to Slurm reaches, by which services, and of whom it asks that Slurm takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import node_replace, slurm_drain

from tests.in_process import ended
from tests.unit.slurm.played_slurm import Played


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What was reached for, and how long it was waited for an answer; all answer."""
    seen: list[Any] = []

    def reach(targets: list[tuple[str, int]], timeout: float) -> dict[tuple[str, int], None]:
        seen.append((sorted(targets), timeout))
        return dict.fromkeys(targets)

    monkeypatch.setattr(slurm_drain, "reach", reach)
    yield seen


def node(name: str, number: int) -> dict[str, Any]:
    about = {"identity": "x", "nccom": False, "torchrun": True, "cores": 2}
    return {"name": name, "address": f"127.0.0.{number}", "failures": [], **about}


def gate(capsys: pytest.CaptureFixture[str], folder: Path, **changes: Any) -> dict[str, Any]:
    arguments = {
        "nodes": [node("a", 1), node("b", 2), node("head", 3)],
        "compute": ["a", "b"],
        "record": str(folder / "record"),
        "accepted": str(folder / "accepted"),
        "_ansible_remote_tmp": str(folder),
        **changes,
    }
    return ended(slurm_drain.main, arguments, capsys)[0]


def states(slurm: Played, **nodes: str) -> None:
    slurm.says("sinfo", "".join(f"{name}|{state}|root|(null)|none\n" for name, state in nodes.items()))


def test_ssh_of_all_and_slurmd_of_those_that_slurm_knows(
    tmp_path: Path, slurm: Played, reached: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    states(slurm, a="idle", b="idle")
    gate(capsys, tmp_path)
    ssh = [(f"127.0.0.{number}", 22) for number in (1, 2, 3)]
    assert reached == [(sorted([*ssh, ("127.0.0.1", 6818), ("127.0.0.2", 6818)]), 5.0)]
    gate(capsys, tmp_path, skip=["ssh"], slurmd_port=7000)
    assert reached[1][0] == [("127.0.0.1", 7000), ("127.0.0.2", 7000)]
    gate(capsys, tmp_path, skip=["slurm"], ssh_port=2222)
    assert reached[2][0] == [(f"127.0.0.{number}", 2222) for number in (1, 2, 3)]


def test_a_head_node_that_trains_nothing_needs_no_place_in_slurm(
    tmp_path: Path, slurm: Played, reached: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    states(slurm, a="idle")
    found = gate(capsys, tmp_path)
    assert [(one["name"], one["result"]) for one in found["nodes"]] == [
        *(("a", "passed"), ("b", "failed"), ("head", "passed")),
    ]
    assert found["good"] == ["a"]
    assert found["slurm"] is True


def test_where_there_is_no_slurm_nothing_is_asked_of_it(
    tmp_path: Path, slurm: Played, reached: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    found = gate(capsys, tmp_path, skip=["slurm"], instances={"a": "i-1"})
    assert ([one["result"] for one in found["nodes"]], found["slurm"]) == (["passed"] * 3, False)
    assert slurm.asked("sinfo") == []
    # Who was never judged by Slurm is not remembered as accepted.
    assert not (tmp_path / "accepted").exists()


@pytest.mark.parametrize(
    ("drain", "told"), [(True, ["update nodename=a state=drain reason=acceptance: bad"]), (False, [])]
)
def test_a_node_that_fails_is_drained_if_it_is_one_of_slurms(
    tmp_path: Path, slurm: Played, reached: list[Any], capsys: pytest.CaptureFixture[str], drain: bool, told: list[str]
) -> None:
    states(slurm, a="idle", b="idle", head="idle")
    nodes = [{**node("a", 1), "failures": ["bad"]}, node("b", 2), {**node("head", 3), "failures": ["bad"]}]
    found = gate(capsys, tmp_path, nodes=nodes, drain=drain)
    assert slurm.asked("scontrol") == told
    assert found["changed"] == drain
    assert found["good"] == ["b"]


def test_an_instance_without_an_id_is_not_remembered(
    tmp_path: Path, slurm: Played, reached: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    states(slurm, a="idle", b="idle")
    gate(capsys, tmp_path, instances={"a": "i-1", "b": ""})
    assert json.loads((tmp_path / "accepted").read_text()) == {"instances": ["i-1"]}
    # Nothing new: the file is left alone.
    (tmp_path / "accepted").write_text('{"instances": ["i-1", "i-0"]}')
    gate(capsys, tmp_path, instances={"a": "i-1"})
    assert (tmp_path / "accepted").read_text() == '{"instances": ["i-1", "i-0"]}'


# --- who is replaced ---


def leaving(capsys: pytest.CaptureFixture[str], folder: Path, **changes: Any) -> dict[str, Any]:
    arguments = {
        "instances": {"a": "i-1", "b": "i-2"},
        "record": str(folder / "replaced"),
        "accepted": str(folder / "accepted"),
        "_ansible_remote_tmp": str(folder),
        **changes,
    }
    return ended(node_replace.main, arguments, capsys)[0]


@pytest.mark.parametrize(("wanted", "busy"), [([], True), (["b"], False), ([], False)])
def test_a_job_that_begins_meanwhile_ends_only_where_both_were_said(
    tmp_path: Path, slurm: Played, capsys: pytest.CaptureFixture[str], wanted: list[str], busy: bool
) -> None:
    """Which node, and that its jobs may end."""
    (tmp_path / "accepted").write_text('{"instances": ["i-1", "i-2"]}')
    states(slurm, a="idle", b="drained")
    # From the first change of a node on, a job is there.
    scontrol = slurm.folder / "bin" / "scontrol"
    scontrol.write_text(
        scontrol.read_text().replace("word=scontrol.$2", f"echo '7|RUNNING|b' > {slurm.folder}/squeue.out")
    )
    found = leaving(capsys, tmp_path, wanted=wanted, busy=busy)
    assert found["msg"] == "a job has just begun on b (7), which was to be replaced; run this again."
    assert "state=down" not in "".join(slurm.asked("scontrol"))


def test_check_mode_says_who_goes_and_tells_nobody(
    tmp_path: Path, slurm: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "accepted").write_text('{"instances": ["i-1", "i-2"]}')
    states(slurm, a="idle", b="drained")
    found = leaving(capsys, tmp_path, _ansible_check_mode=True)
    assert (found["changed"], found["names"], found["instance_ids"]) == (False, ["b"], ["i-2"])
    assert slurm.asked("scontrol") == []
    assert not (tmp_path / "replaced").exists()
    assert leaving(capsys, tmp_path)["names"] == ["b"]
    assert json.loads((tmp_path / "replaced").read_text()) == {"b": "i-2"}


def test_nodes_of_which_slurm_knows_none_are_not_guessed_at(
    tmp_path: Path, slurm: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    states(slurm, x="drained")
    assert leaving(capsys, tmp_path)["msg"].startswith("Slurm knows none of the nodes by these names")
