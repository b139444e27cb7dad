"""The module slurm_drain with programs that play Slurm: what it tells Slurm, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import slurm_drain

from tests.in_process import ended

# Node, state and reason lie in a file; an update rewrites the line of its node.
SINFO = "#!/bin/sh\nsed 's/|/|root|(null)|/2' {state}\n"
SCONTROL = """\
#!/bin/sh
echo "$@" >> {log}
name=${{2#nodename=}}
case $3 in
  state=drain) sed -i "s/^$name|.*/$name|drained|${{4#reason=}}/" {state} ;;
  state=resume) sed -i "s/^$name|.*/$name|idle|none/" {state} ;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with sinfo and scontrol, first on PATH."""
    names = {"state": tmp_path / "state", "log": tmp_path / "log"}
    for program, text in (("sinfo", SINFO), ("scontrol", SCONTROL)):
        file = tmp_path / program
        file.write_text(text.format(**names))
        file.chmod(0o755)
    (tmp_path / "log").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def node(name: str, *failures: str) -> dict[str, Any]:
    about = {"identity": "x", "nccom": False, "torchrun": True, "cores": 0}
    return {"name": name, "address": "127.0.0.1", "failures": list(failures), **about}


def run(capsys: pytest.CaptureFixture[str], folder: Path, **arguments: Any) -> dict[str, Any]:
    arguments = {
        "compute": ["a", "b", "c"],
        "slurmd_port": 1,
        "skip": ["ssh"],
        "record": str(folder / "record"),
        "accepted": str(folder / "there" / "accepted"),
        "_ansible_remote_tmp": str(folder),
        **arguments,
    }
    return ended(slurm_drain.main, arguments, capsys)[0]


@pytest.fixture(autouse=True)
def open_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_drain, "reach", lambda targets, timeout: dict.fromkeys(targets))


def test_the_instances_that_were_accepted_are_remembered(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(**arguments: Any) -> Any:
        run(capsys, slurm, **arguments)
        path = slurm / "there" / "accepted"
        return json.loads(path.read_text())["instances"] if path.exists() else []

    sound, bad = node("a"), node("b", "bad")
    instances = {"a": "i-1", "b": "i-2"}
    (slurm / "state").write_text("a|idle|none\nb|idle|none\n")
    assert told(nodes=[sound, bad], instances=instances, _ansible_check_mode=True) == []
    assert told(nodes=[sound, bad], instances=instances) == ["i-1"]
    assert told(nodes=[sound], instances={"a": "i-3"}) == ["i-1", "i-3"]


def test_drains_resumes_and_leaves_alone(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm / "state").write_text("a|idle|none\nb|drained|acceptance: old\nc|drained|by hand\n")
    nodes = [node("a", "15 of 16 Neuron devices"), node("b"), node("c")]
    first = run(capsys, slurm, nodes=nodes)
    assert (first["changed"], first["good"]) == (True, ["b"])
    assert first["drained"] == {"a": "acceptance: 15 of 16 Neuron devices"}
    assert first["resumed"] == ["b"]
    assert [one["result"] for one in first["nodes"]] == ["failed", "passed", "held"]
    assert (slurm / "state").read_text().splitlines() == [
        "a|drained|acceptance: 15 of 16 Neuron devices",
        "b|idle|none",
        "c|drained|by hand",
    ]
    told = (slurm / "log").read_text()
    assert not run(capsys, slurm, nodes=nodes)["changed"]
    assert (slurm / "log").read_text() == told


def test_check_mode_and_drain_off_tell_nothing(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm / "state").write_text("a|idle|none\nb|drained|acceptance: old\nc|idle|none\n")
    nodes = [node("a", "bad"), node("b"), node("c")]
    dry = run(capsys, slurm, nodes=nodes, _ansible_check_mode=True)
    assert (dry["changed"], dry["good"], dry["resumed"]) == (True, ["b", "c"], ["b"])
    off = run(capsys, slurm, nodes=nodes, drain=False)
    assert (off["changed"], off["good"], off["drained"]) == (False, ["c"], {})
    assert (slurm / "log").read_text() == ""


def test_a_lost_node_is_drained_and_a_down_one_only_named(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm / "state").write_text("a|idle|none\nb|down*|Not responding\nc|idle|none\n")
    found = run(capsys, slurm, nodes=[node("b"), node("c")], lost=["a"])
    assert found["drained"] == {"a": "acceptance: lost in the middle of the run"}
    assert [(one["name"], one["result"]) for one in found["nodes"]] == [
        ("a", "failed"),
        ("b", "failed"),
        ("c", "passed"),
    ]


def test_the_collective_waits_for_jobs_and_is_not_repeated(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm / "state").write_text("a|idle|none\nb|allocated|none\n")
    nodes, compute = [node("a"), node("b")], ["a", "b"]
    busy = run(capsys, slurm, nodes=nodes, compute=compute)["collective"]
    assert (busy["due"], busy["wanted"], busy["problem"]) == (False, False, "jobs run on b")
    (slurm / "state").write_text("a|idle|none\nb|idle|none\n")
    due = run(capsys, slurm, nodes=nodes, compute=compute)["collective"]
    assert (due["due"], due["kind"], due["nodes"]) == (True, "gloo", ["a", "b"])
    result = {"passed": True, "bus_bandwidth": 1.5}
    (slurm / "record").write_text(json.dumps({"digest": due["digest"], "result": result}))
    known = run(capsys, slurm, nodes=nodes, compute=compute)["collective"]
    assert (known["due"], known["known"]) == (False, result)
    assert run(capsys, slurm, nodes=nodes, compute=compute, collective_minimum=2.0)["collective"]["due"]


def test_slurm_that_does_not_answer(slurm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (slurm / "sinfo").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    failed = run(capsys, slurm, nodes=[node("a")])
    assert failed["failed"]
    assert "Slurm does not answer (Unable to contact slurm controller)" in failed["msg"]
    assert not run(capsys, slurm, nodes=[node("a")], _ansible_check_mode=True)["slurm"]
