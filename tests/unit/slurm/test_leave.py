"""Which nodes leave a cluster that becomes smaller, and what Slurm is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.leave import REASON, choose, reason_for, undo
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode
from ansible_collections.trainium.cluster.plugins.modules.internal import node_leave

from tests.in_process import ended

NAMES = ["a", "b", "c", "d"]


def nodes(*states: str) -> dict[str, SlurmNode]:
    return {name: SlurmNode(state) for name, state in zip(NAMES, states) if state}


@pytest.mark.parametrize(
    ("states", "count", "leaving"),
    [
        (("idle", "idle", "idle", "idle"), 2, ["c", "d"]),
        (("idle", "allocated", "idle", "mixed"), 1, ["c"]),
        (("idle", "idle", "down*", "idle"), 2, ["c", "d"]),
        (("idle", "drained", "idle", "idle"), 1, ["b"]),
        # Slurm does not know it: nothing runs there.
        (("idle", "", "idle", "idle"), 1, ["b"]),
        # It may have missed one ping only.
        (("idle", "allocated*", "idle", "idle"), 1, ["d"]),
    ],
)
def test_the_unhealthy_go_first_and_then_the_last_idle_ones(
    states: tuple[str, ...], count: int, leaving: list[str]
) -> None:
    assert choose(NAMES, ["a"], count, nodes(*states), {}) == leaving


def test_those_that_leave_are_told_in_the_order_of_ranks() -> None:
    names = ["n1", "n2", "n10", "n9", "n11"]
    known = {name: SlurmNode("down" if name == "n11" else "idle") for name in names}
    assert choose(names, ["n1"], 3, known, {}) == ["n10", "n9", "n11"]


@pytest.mark.parametrize("state", ["allocated", "allocated*", "mixed", "completing", "draining"])
def test_a_busy_one_is_refused(state: str) -> None:
    with pytest.raises(TrainiumError, match=r"2 nodes are to leave, and only 1 may: jobs run on b, d, and a stays"):
        choose(NAMES, ["a"], 2, nodes("idle", state, "idle", state), {})


@pytest.mark.parametrize("state", ["inval", "fail", "failing", "idle", "down*", "drained"])
def test_a_job_is_seen_whatever_state_its_node_has(state: str) -> None:
    """Such as one on a node that registered with too little, or one that is suspended."""
    known, jobs = nodes("idle", state, "idle", "idle"), {"b": ["7"], "c": []}
    assert choose(NAMES, ["a"], 1, known, jobs) == ["d"]
    with pytest.raises(TrainiumError, match=r"jobs run on b \(7\), and a stays; wait for the jobs"):
        choose(NAMES, ["a"], 3, known, jobs)


SINFO = "#!/bin/sh\nsed 's/$/|root|(null)|none/' {folder}/state\n"
SQUEUE = "#!/bin/sh\n! test -e {folder}/jobs || sed 's/^\\([^ ]*\\) \\(.*\\)$/\\2|\\1/' {folder}/jobs\n"
SCONTROL = """\
#!/bin/sh
echo "$@" >> {folder}/log
{begins}
name=${{2#nodename=}}
sed -i "s/^$name|idle/$name|{drained}/" {folder}/state
"""


def leave(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drained: str,
    jobs: str = "",
    begins: str = "",
    **changes: Any,
) -> dict[str, Any]:
    """``jobs`` are there from the beginning, ``begins`` is what the first change of a node does before it counts."""
    (tmp_path / "state").write_text("a|allocated\nb|idle\nc|drained\nd|idle\n")
    (tmp_path / "log").touch()
    (tmp_path / "jobs").write_text(jobs)
    for program, text in (("sinfo", SINFO), ("squeue", SQUEUE), ("scontrol", SCONTROL), ("sbatch", "")):
        (tmp_path / program).write_text(text.format(folder=tmp_path, drained=drained, begins=begins))
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    arguments = {"names": NAMES, "stay": ["a"], "count": 2, "_ansible_remote_tmp": str(tmp_path), **changes}
    return ended(node_leave.main, arguments, capsys)[0]


def test_they_are_drained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = leave(tmp_path, monkeypatch, capsys, "drained")
    assert (result["changed"], result["leaving"]) == (True, ["c", "d"])
    assert (tmp_path / "log").read_text() == "update nodename=d state=drain reason=trainium: leaves the cluster\n"


def test_one_that_got_a_job_meanwhile_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = leave(tmp_path, monkeypatch, capsys, "draining")
    assert result["msg"] == "a job has just begun on d, which was to leave; run this again."
    assert (tmp_path / "log").read_text().splitlines()[-1] == "update nodename=d state=resume"


def test_one_whose_job_its_state_does_not_show_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begins = f"echo 'd 12|SUSPENDED' > {tmp_path}/jobs"
    result = leave(tmp_path, monkeypatch, capsys, "drained", begins=begins)
    assert result["msg"] == "a job has just begun on d (12), which was to leave; run this again."
    assert (tmp_path / "log").read_text().splitlines()[-1] == "update nodename=d state=resume"


def test_a_node_that_slurm_calls_drained_and_has_a_suspended_job_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = leave(tmp_path, monkeypatch, capsys, "drained", jobs="c 7|SUSPENDED\nd 8|COMPLETED\n")
    assert result["leaving"] == ["b", "d"]


def test_those_that_stay_after_all_are_taken_back_and_nobody_elses_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        node_leave.calls,
        "nodes",
        lambda: {
            "b": SlurmNode("drained", REASON, "root"),
            "c": SlurmNode("drained", "my own", "me"),
            # Drained as well; sinfo shows first that it registered with too little.
            "d": SlurmNode("inval", REASON, "root"),
            # It was set to FAIL by somebody; resuming it would give it jobs.
            "e": SlurmNode("fail", f"{REASON}, was ECC errors", "root"),
        },
    )
    result = leave(tmp_path, monkeypatch, capsys, "drained", state="staying", names=[*NAMES, "e"])
    assert (result["changed"], result["resumed"]) == (True, ["b", "d", "e"])
    assert (tmp_path / "log").read_text().splitlines() == [
        "update nodename=b state=resume",
        "update nodename=d state=resume",
        "update nodename=e state=drain reason=ECC errors",
    ]


@pytest.mark.parametrize(
    ("state", "reason", "told", "back"),
    [
        ("idle", "none", REASON, ["state=resume"]),
        # Slurm sets it down, or up, as it answers.
        ("down*", "Not responding", f"{REASON}, was Not responding", ["state=drain", "reason=Not responding"]),
        ("fail", "ECC errors", f"{REASON}, was ECC errors", ["state=drain", "reason=ECC errors"]),
        ("inval", "none", f"{REASON}, was it was inval", ["state=drain", "reason=it was inval"]),
    ],
)
def test_what_keeps_a_node_out_of_service_comes_back(state: str, reason: str, told: str, back: list[str]) -> None:
    assert reason_for(SlurmNode(state, reason, "root")) == told
    assert undo(told) == back
    assert undo(reason) == []


def test_names_are_needed_and_a_count_only_where_some_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = {"_ansible_remote_tmp": str(tmp_path)}
    assert ended(node_leave.main, {"count": 1, **common}, capsys)[0]["msg"] == "missing required arguments: names"
    said = ended(node_leave.main, {"names": NAMES, **common}, capsys)[0]["msg"]
    assert said == "state is leaving but all of the following are missing: count"
    monkeypatch.setattr(node_leave.calls, "installed", lambda: False)
    found = ended(node_leave.main, {"names": NAMES, "state": "staying", **common}, capsys)[0]
    assert (found["changed"], found["resumed"]) == (False, [])
    # Without Slurm nobody has jobs by it, and the last go.
    found = ended(node_leave.main, {"names": NAMES, "count": 1, **common}, capsys)[0]
    assert (found["changed"], found["leaving"]) == (False, ["d"])


def test_in_check_mode_it_is_said_and_nothing_drained_or_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = leave(tmp_path, monkeypatch, capsys, "drained", _ansible_check_mode=True)
    assert (found["changed"], found["leaving"]) == (False, ["c", "d"])
    monkeypatch.setattr(node_leave.calls, "nodes", lambda: {"b": SlurmNode("drained", REASON, "root")})
    found = leave(tmp_path, monkeypatch, capsys, "drained", state="staying", _ansible_check_mode=True)
    assert (found["changed"], found["resumed"]) == (True, ["b"])
    assert (tmp_path / "log").read_text() == ""


def test_other_names_than_slurm_s_tell_nothing_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = leave(tmp_path, monkeypatch, capsys, "drained", names=["x", "y", "z"], stay=[])
    assert found["msg"] == "Slurm knows none of the nodes by these names, so nothing tells which have no jobs."
    assert (tmp_path / "log").read_text() == ""


def test_where_all_that_leave_are_drained_already_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = leave(tmp_path, monkeypatch, capsys, "drained", count=1)
    assert (found["changed"], found["leaving"]) == (False, ["c"])
