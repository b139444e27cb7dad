"""What each test runs, learned from runs that are green: which lines of which files, in how many seconds.

It is kept for each file of tests, until the file or one that it uses changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants import confine, session
from tests.mutants.mutant import Mutant


class BaselineError(Exception):
    """Tests could not be run as they are."""


def file_of(test: str) -> str:
    return test.split("::")[0]


def test_files(root: Path, paths: Iterable[str]) -> list[str]:
    """The files of tests in some folders, as paths from the root."""
    found: list[str] = []
    for path in paths:
        place = root / path
        files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        found += [str(file.relative_to(root)) for file in files]
    return list(dict.fromkeys(found))


def digest(root: Path, paths: Iterable[str]) -> str:
    """Of the contents of files; one that is gone counts as empty."""
    made = hashlib.sha256()
    for path in sorted(set(paths)):
        data = (root / path).read_bytes() if (root / path).is_file() else b""
        made.update(f"{path}\0{len(data)}\0".encode() + data)
    return made.hexdigest()


@dataclass
class Baseline:
    """What is known of tests, of all their files."""

    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, set[str]] = field(default_factory=dict)
    lines: dict[str, dict[str, set[int]]] = field(default_factory=dict)

    def add(self, entry: dict[str, Any]) -> None:
        failed = set(entry["failed"])
        self.seconds.update({name: taken for name, taken in entry["seconds"].items() if name not in failed})
        for path, tests in entry["files"].items():
            self.files.setdefault(path, set()).update(tests)
        for path, by_test in entry["lines"].items():
            for test, lines in by_test.items():
                self.lines.setdefault(path, {}).setdefault(test, set()).update(lines)

    def _fast_first(self, tests: Iterable[str]) -> list[str]:
        return sorted(
            (test for test in set(tests) if test in self.seconds), key=lambda test: (self.seconds[test], test)
        )

    def _all_of(self, files: set[str]) -> list[str]:
        return [test for test in self.seconds if file_of(test) in files]

    def by_line(self, mutant: Mutant) -> list[str]:
        """The tests that execute the statement in their own process; those of one that runs at import, by the file."""
        by_test = self.lines.get(mutant.path, {})
        span = range(mutant.first, mutant.last + 1)
        met = {test for test, lines in by_test.items() if any(line in lines for line in span)}
        if any("::" not in test for test in met):
            met |= set(by_test)
            met |= set(self._all_of({test for test in by_test if "::" not in test}))
        return self._fast_first(met)

    def by_file(self, mutant: Mutant, exact: bool) -> list[str]:
        """The tests while which the file was opened; all of their files' unless ``exact``."""
        met = self.files.get(mutant.path, set())
        whole = {test for test in met if "::" not in test} if exact else {file_of(test) for test in met}
        return self._fast_first([*met, *self._all_of(whole)])


def learn(root: Path, paths: Sequence[str], cache: Path, say: Any) -> Baseline:
    """Of the tests in some folders; those that are not known yet are run, and those that fail are left out."""
    cache.mkdir(parents=True, exist_ok=True)
    known, entries = Baseline(), {}
    wanted = test_files(root, paths)
    for name in wanted:
        kept = cache / f"{name.replace('/', '.')}.json"
        if kept.is_file():
            entry = json.loads(kept.read_text(encoding="utf-8"))
            if entry["digest"] == digest(root, entry["uses"]):
                entries[name] = entry
    missing = [name for name in wanted if name not in entries]
    for number, name in enumerate(missing, 1):
        say(f"learning what tests run: {name} ({number} of {len(missing)})")
        # Each by itself, so that a run that is ended has not learned for nothing.
        entries[name] = _run(root, name, cache)
    for name in wanted:
        known.add(entries[name])
        if entries[name]["failed"]:
            say(f"not used, since they fail as it is: {', '.join(entries[name]['failed'])}")
    return known


def _run(root: Path, name: str, cache: Path) -> dict[str, Any]:
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as log:
        pid = confine.start(root, lambda: session.baseline(root, [name], answer.fileno(), log.fileno()))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answer.seek(0)
        log.seek(0)
        said = json.loads(answer.read() or b"{}")
        # Failed tests are left out, but a file that can not be collected is a mistake.
        if code or said.get("code") not in (0, 1, 5):
            raise BaselineError(f"{name} can not be run: {log.read().decode(errors='replace')[-2000:]}")
    entry = _part(said, name)
    entry["uses"] = sorted({name, *entry["files"], *entry["lines"]})
    entry["digest"] = digest(root, entry["uses"])
    (cache / f"{name.replace('/', '.')}.json").write_text(json.dumps(entry), encoding="utf-8")
    return entry


def _part(said: dict[str, Any], name: str) -> dict[str, Any]:
    """What was learned of one file of tests."""

    def own(tests: Iterable[str]) -> list[str]:
        return [test for test in tests if file_of(test) == name]

    def lines(by_test: dict[str, list[int]]) -> dict[str, list[int]]:
        # What ran before any test was collected, where a conftest imports it, is this file's, which was run alone.
        first = {name: [*by_test.get("", []), *by_test.get(name, [])]}
        return {test: found for test, found in {**by_test, **first}.items() if file_of(test) == name and found}

    return {
        "seconds": {test: said["seconds"][test] for test in own(said["seconds"])},
        "failed": own(said["failed"]),
        "files": {path: own(tests) for path, tests in said["files"].items() if own(tests)},
        "lines": {path: lines(by_test) for path, by_test in said["lines"].items() if lines(by_test)},
    }
