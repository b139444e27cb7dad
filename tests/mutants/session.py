"""One run of pytest in a confined process: of a baseline, which tells what each test executes, or of a mutant."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.mutants.opened import Opened

# Nothing of the collection is imported here, since each run is forked from this process and may have other sources.
PLAIN = ("-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no")


class _Chosen:
    """Only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {name: number for number, name in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )


class _Watch:
    """What each test executes, opens, and takes."""

    def __init__(self, root: Path, covered: coverage.Coverage) -> None:
        self._covered, self._opened = covered, Opened(root)
        self.seconds: dict[str, float] = {}
        self.files: dict[str, set[str]] = {}
        self.failed: list[str] = []

    def _take(self, test: str) -> None:
        for name in self._opened.since():
            self.files.setdefault(name, set()).add(test)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        self._covered.switch_context(collector.nodeid.split("::")[0] or ".")
        self._take("")
        result = yield
        self._take(collector.nodeid.split("::")[0])
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._covered.switch_context(item.nodeid)
        self._take("")
        started = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = round(time.monotonic() - started, 3)
        self._take(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _pytest(arguments: Sequence[str], plugins: Sequence[object], log: int) -> int:
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ.pop("PYTEST_ADDOPTS", None)
    # Where a test started this: what it has imported is what is mutated.
    for name in [name for name in sys.modules if name.startswith("ansible_collections.trainium")]:
        del sys.modules[name]
    return int(pytest.main([*PLAIN, *arguments], plugins=list(plugins)))


def baseline(root: Path, paths: Sequence[str], answer: int, log: int) -> int:
    """Runs the tests, and writes what it learns of them to the file ``answer``."""
    covered = coverage.Coverage(
        data_file=None, include=[f"{root}/plugins/*", f"{root}/roles/*"], config_file=False, messages=False
    )
    covered.start()
    watch = _Watch(root, covered)
    code = _pytest(paths, [watch], log)
    covered.stop()
    data = covered.get_data()
    lines: dict[str, dict[str, list[int]]] = {}
    for name in data.measured_files():
        by_test: dict[str, list[int]] = {}
        for line, contexts in data.contexts_by_lineno(name).items():
            for context in contexts:
                by_test.setdefault(context, []).append(line)
        lines[os.path.relpath(name, root)] = by_test
    said = {
        "code": code,
        "seconds": watch.seconds,
        "failed": sorted(set(watch.failed)),
        "files": {name: sorted(tests - {""}) for name, tests in watch.files.items()},
        "lines": lines,
    }
    with os.fdopen(os.dup(answer), "w", encoding="utf-8") as file:
        json.dump(said, file)
    return 0


def mutated(changed: Mapping[Path, str], tests: Collection[str], log: int) -> int:
    """Runs tests with other contents of files until one fails."""
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    files = list(dict.fromkeys(name.split("::")[0] for name in tests))
    return _pytest(["-x", *files], [_Chosen(list(tests))], log)
