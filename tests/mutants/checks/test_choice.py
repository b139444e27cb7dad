"""Which tests a mutant is tried by, whose sources are whose, and what is kept of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import baseline, score, subjects
from tests.mutants.baseline import Baseline
from tests.mutants.mutant import Mutant
from tests.mutants.run import HUNG, NOTICED, SURVIVED, UNREACHED, Choice, Verdict

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "plugins/module_utils/_slurm/jobs.py"


def mutant(first: int = 5, last: int = 6, path: str = SOURCE) -> Mutant:
    return Mutant(path, 0, 1, "x", "what", first, first, last)


def learned(**changes: Any) -> Baseline:
    entry: dict[str, Any] = {
        "seconds": {"a.py::one": 2.0, "a.py::two": 1.0, "b.py::three": 0.5, "b.py::bad": 0.1},
        "failed": ["b.py::bad"],
        "files": {"roles/x/a.j2": ["a.py::one"], "roles/x/b.j2": ["b.py"]},
        "lines": {SOURCE: {"a.py": [1, 2, 20], "a.py::one": [5], "b.py::three": [7], "b.py::bad": [5]}},
        **changes,
    }
    made = Baseline()
    made.add(entry)
    return made


def test_a_line_is_tried_by_those_that_execute_it() -> None:
    known = learned()
    assert known.by_line(mutant(5, 6)) == ["a.py::one"]
    assert known.by_line(mutant(6, 7)) == ["b.py::three"]
    assert known.by_line(mutant(8, 9)) == []


def test_what_runs_at_import_is_tried_by_all_that_use_the_file() -> None:
    """The fastest first; those that fail as it is never."""
    assert learned().by_line(mutant(20, 20)) == ["b.py::three", "a.py::two", "a.py::one"]


def test_a_file_that_programs_read_is_tried_by_those_that_open_it() -> None:
    known = learned()
    assert known.by_file(mutant(path="roles/x/a.j2"), exact=True) == ["a.py::one"]
    assert known.by_file(mutant(path="roles/x/a.j2"), exact=False) == ["a.py::two", "a.py::one"]
    assert known.by_file(mutant(path="roles/x/b.j2"), exact=True) == ["b.py::three"]
    assert known.by_file(mutant(path="roles/x/c.j2"), exact=True) == []


def test_slow_tests_come_second_and_only_so_long() -> None:
    slow = learned(files={SOURCE: ["a.py::one", "a.py::two"]}, lines={})
    assert list(Choice(learned(), slow, 2.5).stages(mutant())) == [(["a.py::one"], 2.0), (["a.py::two"], 1.0)]
    assert list(Choice(learned(), slow, 3.0).stages(mutant(8, 9))) == [(["a.py::two", "a.py::one"], 3.0)]
    assert list(Choice(learned(), None, 3.0).stages(mutant(8, 9))) == []


EVERY = (*subjects.SUBJECTS, *subjects.TASKS)
PARTS = (*subjects.ROLE_PARTS, *subjects.TASK_PARTS)


def test_every_file_of_the_collection_has_one_subject() -> None:
    found = [path for subject in EVERY for path in subjects.sources(ROOT, subject)]
    assert len(found) == len(set(found))
    every = {
        str(path.relative_to(ROOT))
        for pattern in ("plugins/**/*.py", *(f"roles/*/{part}" for part in PARTS))
        for path in ROOT.glob(pattern)
        if path.is_file() and "doc_fragments" not in path.parts
    }
    assert every <= set(found)


def test_every_subject_has_tests_and_they_are_there() -> None:
    for subject in EVERY:
        paths = [*subject.tests, *subject.slow]
        assert paths
        assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("from x.module_utils._ec2.run import a\nfrom x.module_utils._common.aws import b\n", "ec2"),
        ("from x.module_utils._slurm.a import a\nfrom x.module_utils._node.b import b\n", "node"),
        ("from x.module_utils._slurm.a import a\nimport x.module_utils._slurm.c\nx.module_utils._node.b\n", "slurm"),
        ("from x.module_utils._common.aws import b\n", "controller"),
    ],
)
def test_a_plugin_belongs_to_what_it_imports_most(text: str, subject: str) -> None:
    assert subjects.subject_of(text) == subject


HEAD = {"key": "1", "tests": "1", "commit": "abc", "seed": "1"}
VERDICTS = [Verdict(mutant(one, one), what) for one, what in ((3, NOTICED), (4, HUNG), (2, SURVIVED), (1, UNREACHED))]


def test_a_run_goes_on_where_it_was_and_anew_with_other_sources(tmp_path: Path) -> None:
    place = tmp_path / "a" / "slurm.jsonl"
    made = score.Results.resumed(place, HEAD, 0, False)
    for one in VERDICTS:
        made.add(one)
    again = score.Results.resumed(place, HEAD, 0, False)
    assert again.verdicts == VERDICTS
    assert again.has(mutant(3, 3)) and not again.has(mutant(9, 9))
    assert score.Results.resumed(place, {**HEAD, "key": "2"}, 0, True).verdicts == []
    assert json.loads(place.read_text(encoding="utf-8"))["key"] == "2"


@pytest.mark.parametrize(
    ("tests", "slow", "trust", "kept"),
    [("1", 60, False, 2), ("1", 0, True, 4), ("2", 0, False, 0), ("2", 0, True, 2)],
)
def test_what_survived_is_tried_again_by_more_tests(
    tmp_path: Path, tests: str, slow: float, trust: bool, kept: int
) -> None:
    made = score.Results.resumed(tmp_path / "x", HEAD, 0, False)
    for one in VERDICTS:
        made.add(one)
    again = score.Results.resumed(tmp_path / "x", {**HEAD, "tests": tests}, slow, trust)
    assert again.verdicts == VERDICTS[:kept]


def test_the_page_has_what_was_measured_and_keeps_reasons(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / SOURCE).parent.mkdir(parents=True)
    (tmp_path / SOURCE).write_text("one\n two\nthree\nfour\n", encoding="utf-8")
    page, kept = tmp_path / "docs/testing.md", tmp_path / "docs/testing.json"
    page.write_text(f"before\n{score.BEGIN}old\n{score.END}after\n", encoding="utf-8")
    results = score.Results(tmp_path / "x", HEAD, VERDICTS)
    score.write(tmp_path, {"slurm": results})
    assert "| slurm | 4 | 2 | 1 | 50 % | 0 s | abc | 1 |" in page.read_text(encoding="utf-8")
    assert "| **all but tasks** | 4 | 2 | | 50 % | | | |" in page.read_text(encoding="utf-8")
    said = json.loads(kept.read_text(encoding="utf-8"))
    places = [(one["line"], one["text"], one["reason"]) for one in said["survivors"]]
    assert places == [(1, "one", "no test runs it"), (2, "two", "no test notices it")]
    said["survivors"][1]["reason"] = "the same in the end"
    kept.write_text(json.dumps(said), encoding="utf-8")
    # The line has moved, and another subject was run as well.
    (tmp_path / SOURCE).write_text("zero\none\n two\nthree\n", encoding="utf-8")
    moved = [Verdict(mutant(3, 3), SURVIVED)]
    score.write(tmp_path, {"slurm": score.Results(tmp_path / "x", HEAD, moved)})
    score.write(tmp_path, {"ec2": score.Results(tmp_path / "y", HEAD, VERDICTS[:1])})
    said = json.loads(kept.read_text(encoding="utf-8"))
    assert [(one["line"], one["reason"]) for one in said["survivors"]] == [(3, "the same in the end")]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert (
        "| ec2 | 1 | 1 | 0 | 100 % | 0 s | abc | 1 |" in text and "| slurm | 1 | 0 | 0 | 0 % | 0 s | abc | 1 |" in text
    )


def test_what_a_conftest_imports_is_of_the_file_that_was_run() -> None:
    said = {
        "seconds": {"a.py::one": 1.0, "b.py::two": 1.0},
        "failed": [],
        "files": {},
        "lines": {SOURCE: {"": [1, 2], "a.py::one": [5], "b.py::two": [6]}, "other.py": {"b.py::two": [1]}},
    }
    assert baseline._part(said, "a.py")["lines"] == {SOURCE: {"a.py": [1, 2], "a.py::one": [5]}}


@pytest.mark.parametrize("subject", [*subjects.SUBJECTS, *subjects.TASKS], ids=lambda subject: subject.name)
def test_the_tests_of_a_subject_exist(subject: subjects.Subject) -> None:
    """One that was moved away would be no test, and what it noticed would survive."""
    for path in (*subject.tests, *subject.slow):
        assert baseline.test_files(ROOT, [path]), path
