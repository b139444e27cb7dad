"""Which nodes are replaced, what Slurm is told of it, and that a run which was killed is gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.drain import (
    LONGEST_REASON,
    mark_of,
    plan_gate,
    reason_for,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.jobs import present
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.nodes import SlurmNode
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.replace import (
    choose,
    is_new,
    refuse_busy,
    stays,
    told,
)
from ansible_collections.trainium.cluster.plugins.modules.internal import node_replace
from hypothesis import given
from hypothesis import strategies as st

from tests.in_process import ended

INSTANCES = {"a": "i-1", "b": "i-2", "c": "i-3", "d": "i-4"}
ACCEPTED = [*INSTANCES.values()]
STATES = [
    "idle",
    "allocated",
    "mixed",
    "idle*",
    "allocated*",
    "down",
    "down*",
    "drained",
    "drained*",
    "draining",
    "inval",
]
clusters = st.dictionaries(
    st.sampled_from(sorted(INSTANCES)),
    st.builds(
        SlurmNode,
        st.sampled_from(STATES),
        st.sampled_from(["none", "bad fan", "acceptance: no driver"]),
        st.sampled_from(["", "slurm", "anna"]),
    ),
    min_size=1,
)


def nodes(*states: str) -> dict[str, SlurmNode]:
    return {name: SlurmNode(state) for name, state in zip(INSTANCES, states) if state}


@pytest.mark.parametrize(
    ("states", "wanted", "due"),
    [
        (("idle", "drained", "idle", "down*"), [], ["b", "d"]),
        # It registered with fewer Neuron devices than slurm.conf says, which sinfo shows before all else.
        (("idle", "idle", "inval", "idle"), [], ["c"]),
        (("idle", "idle", "idle*", "allocated"), [], []),
        # Named ones may be healthy, and are taken in the order of the ranks.
        (("idle", "drained", "idle", "idle"), ["d", "c"], ["c", "d"]),
        # Slurm does not know it: nothing runs there.
        (("idle", "", "idle", "idle"), ["b"], ["b"]),
    ],
)
def test_the_drained_and_the_down_go_or_those_that_are_named(
    states: tuple[str, ...], wanted: list[str], due: list[str]
) -> None:
    assert choose(INSTANCES, ["a"], wanted, nodes(*states), ACCEPTED) == due


@pytest.mark.parametrize(
    ("states", "wanted", "message"),
    [
        (("drained", "drained", "idle", "idle"), [], "a has Slurm's controller, whose queue would go with it"),
        (("idle", "idle", "idle", "idle"), ["a"], "a has Slurm's controller"),
        (("idle", "idle", "idle", "idle"), ["b", "x", "y"], "trainium_replace names x, y, no compute node"),
        # All at once: rather the head has lost them.
        (
            ("idle", "down*", "down*", "down*"),
            [],
            "3 of 4 nodes are out of service.*; run nodes.yml, or name them in",
        ),
    ],
)
def test_what_may_not_go_is_refused(states: tuple[str, ...], wanted: list[str], message: str) -> None:
    with pytest.raises(TrainiumError, match=message) as caught:
        choose(INSTANCES, ["a"], wanted, nodes(*states), ACCEPTED)
    assert "\n" not in str(caught.value)


def test_many_go_where_they_are_named_and_so_does_the_only_one() -> None:
    assert choose(INSTANCES, ["a"], ["b", "c", "d"], nodes("idle", "down*", "down*", "down*")) == ["b", "c", "d"]
    assert choose({"b": "i-2"}, ["a"], [], {"b": SlurmNode("down*")}, ACCEPTED) == ["b"]


def test_two_of_three_are_more_than_half() -> None:
    three = {name: INSTANCES[name] for name in ("b", "c", "d")}
    known = {"b": SlurmNode("idle"), "c": SlurmNode("down*"), "d": SlurmNode("down*")}
    with pytest.raises(TrainiumError, match="2 of 3 nodes are out of service"):
        choose(three, ["a"], [], known, ACCEPTED)


def test_who_was_drained_by_somebody_goes_only_where_it_is_named() -> None:
    known = {
        "a": SlurmNode("drained", "bad fan", "anna"),
        "b": SlurmNode("drained", "gres/neuron count reported lower than configured (15 < 16)", "slurm"),
        "c": SlurmNode("down", "HBM errors", "anna"),
        "d": SlurmNode("drained", "trainium: leaves the cluster", "root"),
    }
    assert choose(INSTANCES, [], [], known) == ["b"]
    assert choose(INSTANCES, [], ["a", "c"], known) == ["a", "c"]
    assert [name for name in known if stays(known[name])] == ["a", "c", "d"]
    assert "a (drained, bad fan), c (down, HBM errors)" in told(["b"], INSTANCES, known)
    assert "stays, out of service by anna, root; name it in trainium_replace" in told(["b"], INSTANCES, known)


def test_a_new_instance_that_is_not_set_up_yet_is_not_taken_for_a_broken_one() -> None:
    known = {"b": SlurmNode("down*", "Not responding", "slurm"), "c": SlurmNode("drained", "acceptance: bad", "root")}
    assert choose(INSTANCES, ["a"], [], known, accepted=["i-1", "i-4"]) == ["c"]
    assert choose(INSTANCES, ["a"], [], known, accepted=["i-1", "i-2"]) == ["b", "c"]
    assert choose(INSTANCES, ["a"], ["b"], known, accepted=["i-1"]) == ["b"]
    # Nothing was ever accepted here: what Slurm calls down may just start.
    assert choose(INSTANCES, ["a"], [], known) == ["c"]


def test_a_name_that_was_replaced_before_and_has_gone_is_no_error() -> None:
    assert choose(INSTANCES, ["a"], ["x", "b"], nodes("idle", "idle"), replaced=["x"]) == ["b"]


@pytest.mark.parametrize(
    ("state", "jobs", "message"),
    [
        ("draining", [], "jobs run on b, which would be replaced; wait for them"),
        ("allocated*", [], "jobs run on b"),
        # Slurm's state does not tell: these have jobs that run, are suspended, or expected to fail.
        ("inval", ["12", "13"], r"jobs run on b \(12, 13\), which"),
        ("idle", ["12"], r"jobs run on b \(12\)"),
        ("failing", ["12_3"], r"jobs run on b \(12_3\)"),
    ],
)
def test_a_node_with_jobs_goes_only_where_that_is_said(state: str, jobs: list[str], message: str) -> None:
    known = nodes("idle", state)
    with pytest.raises(TrainiumError, match=message):
        refuse_busy(["b"], known, {"b": jobs})
    refuse_busy(["a"], known, {"a": []})


def test_which_jobs_are_on_a_node() -> None:
    lines = ["1|RUNNING", "2|SUSPENDED", "3|COMPLETING", "4|COMPLETED", "5|PENDING", "6|CONFIGURING", "7|CANCELLED"]
    told = [f"{line}|n[1-2]" for line in (*lines, "8|STOPPED", "9|NODE_FAIL", "10|REQUEUED", "1|RUNNING")]
    # Those that wait have no node.
    found = present("\n".join([*told, "", "11|PENDING|", "12|RUNNING|n2,n7"]), ["n1", "n2", "n3"])
    assert found == {"n1": ["1", "2", "3", "6", "8"], "n2": ["1", "2", "3", "6", "8", "12"], "n3": []}


@given(clusters, st.lists(st.sampled_from(sorted(INSTANCES)), unique=True))
def test_wherever_a_run_is_killed_the_next_replaces_what_is_left_and_nothing_twice(
    known: dict[str, SlurmNode], wanted: list[str]
) -> None:
    try:
        due = choose(INSTANCES, ["a"], wanted, known, ACCEPTED)
    except TrainiumError:
        return
    assert "a" not in due
    assert due == sorted(due)
    assert set(due) == (set(wanted) or {name for name in known if known[name].out and not stays(known[name])})
    # Killed when they were drained: they are still to go, and taking them back tells what they were drained for.
    drained = {
        name: SlurmNode("inval" if node.state == "inval" else "drained*", reason_for(INSTANCES[name], node), "root")
        if name in due
        else node
        for name, node in known.items()
    }
    assert choose(INSTANCES, ["a"], wanted, drained) == due
    for name in set(due) & set(known):
        mark = mark_of(drained[name])
        assert mark is not None
        assert mark.instance_id == INSTANCES[name]
        # What Slurm says of a node that is down it says again by itself.
        passing = not known[name].out or (known[name].state.startswith("down") and known[name].user != "anna")
        assert mark.before == ("" if passing or known[name].reason == "none" else known[name].reason)
        assert reason_for(INSTANCES[name], drained[name]) == drained[name].reason
    # Killed when the instances had ended, so that the inventory does not show them.
    rest = {name: instance for name, instance in INSTANCES.items() if name not in due or name not in known}
    assert not set(choose(rest, ["a"], [*wanted], drained)) & set(rest) & set(due) & set(known)
    # Killed when they had others: they wait for the acceptance, which resumes them.
    after = {name: f"{instance}0" if name in due else instance for name, instance in INSTANCES.items()}
    marked = set(due) & set(known)
    assert all(is_new(name, after, drained) for name in marked)
    assert not set(choose(after, ["a"], wanted, drained)) & marked
    assert set(plan_gate({name: [] for name in marked}, drained, after).resume) == marked


def test_a_reason_fits_and_keeps_what_was_there_as_far_as_it_fits() -> None:
    long = reason_for("i-1", SlurmNode("drained", "x" * 300))
    assert len(long) == LONGEST_REASON
    assert mark_of(SlurmNode("drained", long)) == ("i-1", "x" * (LONGEST_REASON - len("trainium: replaces i-1, was ")))
    # A node in service is not about to go, whatever reason was left on it; nor is one with another's reason.
    assert mark_of(SlurmNode("idle", long)) is None
    assert mark_of(SlurmNode("drained", "bad fan")) is None


def test_it_is_told_what_goes_and_what_an_earlier_run_left() -> None:
    marked = SlurmNode("drained", "trainium: replaces i-9")
    known = {"b": SlurmNode("drained", "bad fan", "slurm"), "c": marked, "x": marked}
    assert told(["b"], INSTANCES, known) == (
        "To be replaced by another instance: b (drained, bad fan), i-2; c has a new instance already, which was not "
        "accepted yet; x has no instance any more and is launched anew."
    )
    assert told([], INSTANCES, {}) == "No node is to be replaced."


SINFO = "#!/bin/sh\nsed 's/$/|slurm|(null)|bad fan/' {folder}/state\n"
# Jobs by node; scontrol's drain is no end of them, its down is.
SQUEUE = "#!/bin/sh\n! test -e {folder}/jobs || sed 's/^\\([^ ]*\\) \\(.*\\)$/\\2|\\1/' {folder}/jobs\n"
SCONTROL = """\
#!/bin/sh
echo "$@" >> {folder}/log
name=${{2#nodename=}}
sed -i "s/^$name|.*/$name|{drained}/" {folder}/state
"""


def replace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drained: str,
    jobs: str = "",
    **changes: Any,
) -> dict[str, Any]:
    (tmp_path / "state").write_text("a|idle\nb|idle\nc|drained\nd|allocated\n")
    (tmp_path / "log").touch()
    (tmp_path / "jobs").write_text("d 7|RUNNING\n" + jobs)
    for program, text in (("sinfo", SINFO), ("squeue", SQUEUE), ("scontrol", SCONTROL), ("sbatch", "")):
        (tmp_path / program).write_text(text.format(folder=tmp_path, drained=drained))
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    arguments = {"instances": INSTANCES, "stay": ["a"], "_ansible_remote_tmp": str(tmp_path), **changes}
    arguments = {"record": str(tmp_path / "record"), "accepted": str(tmp_path / "accepted"), **arguments}
    return ended(node_replace.main, arguments, capsys)[0]


def test_slurm_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(tmp_path, monkeypatch, capsys, "drained", _ansible_check_mode=True)
    assert (result["names"], result["instance_ids"], result["changed"]) == (["c"], ["i-3"], False)
    assert (tmp_path / "log").read_text() == ""
    result = replace(tmp_path, monkeypatch, capsys, "drained", wanted=["d", "b"], busy=True)
    assert (result["names"], result["changed"]) == (["b", "d"], True)
    assert json.loads((tmp_path / "record").read_text()) == {"b": "i-2", "d": "i-4"}
    # The job of the second one ends, or goes back into the queue.
    assert (tmp_path / "log").read_text().splitlines() == [
        "update nodename=b state=drain reason=trainium: replaces i-2",
        "update nodename=d state=drain reason=trainium: replaces i-4",
        "update nodename=d state=down reason=trainium: replaces i-4",
        "update nodename=d state=drain reason=trainium: replaces i-4",
    ]


def test_a_job_on_a_node_that_slurm_calls_invalid_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = replace(tmp_path, monkeypatch, capsys, "inval", "b 12|RUNNING\n", wanted=["b"])
    assert result["msg"].startswith("jobs run on b (12), which would be replaced;")
    assert (tmp_path / "log").read_text() == ""
    replace(tmp_path, monkeypatch, capsys, "inval", "b 12|RUNNING\n", wanted=["b"], busy=True)
    assert "update nodename=b state=down reason=trainium: replaces i-2" in (tmp_path / "log").read_text()


def test_one_that_got_a_job_meanwhile_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = SlurmNode("draining", "trainium: replaces i-2", "root")
    looks = iter([{"b": SlurmNode("idle")}, {"b": marked}])
    monkeypatch.setattr(node_replace.calls, "nodes", lambda: next(looks))
    jobs = iter([{"b": []}, {"b": ["12"]}])
    monkeypatch.setattr(node_replace.calls, "jobs_on", lambda names: next(jobs))
    result = replace(tmp_path, monkeypatch, capsys, "draining", wanted=["b"])
    assert result["msg"] == "a job has just begun on b (12), which was to be replaced; run this again."
    assert (tmp_path / "log").read_text().splitlines()[-1] == "update nodename=b state=resume"


def test_those_that_stay_after_all_are_as_they_were_but_not_those_that_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {
        "b": SlurmNode("drained", "trainium: replaces i-2", "root"),
        "c": SlurmNode("drained", "trainium: replaces i-3, was bad fan", "root"),
        "d": SlurmNode("drained", "trainium: replaces i-9", "root"),
    }
    monkeypatch.setattr(node_replace.calls, "nodes", lambda: known)
    result = replace(tmp_path, monkeypatch, capsys, "drained", state="staying")
    assert (result["changed"], result["names"]) == (True, ["b", "c"])
    assert (tmp_path / "log").read_text().splitlines() == [
        "update nodename=b state=resume",
        "update nodename=c state=drain reason=bad fan",
    ]


def test_without_slurm_nothing_tells_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_replace.calls, "installed", lambda: False)
    assert "Slurm is not installed here" in replace(tmp_path, monkeypatch, capsys, "drained", wanted=["b"])["msg"]
    result = replace(tmp_path, monkeypatch, capsys, "drained", wanted=["b"], busy=True)
    assert (result["names"], result["changed"]) == (["b"], False)
