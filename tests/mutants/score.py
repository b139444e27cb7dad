"""What a run found, kept while it goes on; and the page of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.mutants.mutant import Mutant
from tests.mutants.run import HUNG, Verdict
from tests.mutants.subjects import OF_TASKS

BEGIN, END = "<!-- begin: score -->\n", "<!-- end: score -->\n"


@dataclass
class Results:
    """Of one subject: a line in a file for each mutant, behind one that says of which sources, tests and seed."""

    path: Path
    head: dict[str, Any]
    verdicts: list[Verdict] = field(default_factory=list)

    @classmethod
    def resumed(cls, path: Path, head: dict[str, Any], slow: float, trust: bool) -> Results:
        """What the file has of the same sources, seed and tests; with ``trust`` also of others what was noticed.

        What survived fewer slow tests than are asked for is tried again.
        """
        made = cls(path, head)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        before = json.loads(lines[0]) if lines else {}
        if before.get("key") == head["key"]:
            same = before["tests"] == head["tests"]
            for line in lines[1:]:
                said = json.loads(line)
                verdict = Verdict(Mutant(**said.pop("mutant")), **said)
                if (same or trust) if verdict.noticed else (same and verdict.slow >= slow):
                    made.verdicts.append(verdict)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"{json.dumps(one)}\n" for one in (head, *map(asdict, made.verdicts))), encoding="utf-8"
        )
        return made

    def add(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")

    def has(self, mutant: Mutant) -> bool:
        return any(one.mutant == mutant for one in self.verdicts)


def survivors(verdicts: Iterable[Verdict]) -> list[Verdict]:
    found = [one for one in verdicts if not one.noticed]
    return sorted(found, key=lambda one: (one.mutant.path, one.mutant.line, one.mutant.what))


def row(name: str, head: dict[str, Any], verdicts: list[Verdict]) -> str:
    """A subject's line of the table."""
    hung, every = Counter(one.what for one in verdicts)[HUNG], len(verdicts)
    good = sum(one.noticed for one in verdicts)
    # Whether those that the fast tests let pass were tried by the slow ones.
    slow = min((one.slow for one in verdicts if not one.noticed), default=max(one.slow for one in verdicts))
    part = f"{100 * good / every:.0f} %"
    return f"| {name} | {every} | {good} | {hung} | {part} | {slow:.0f} s | {head['commit']} | {head['seed']} |"


def entries(root: Path, subject: str, verdicts: Iterable[Verdict], reasons: dict[str, str]) -> list[dict[str, Any]]:
    """The survivors as docs/testing.json has them; a reason that somebody gave stays with its line."""
    found = []
    for one in survivors(verdicts):
        mutant = one.mutant
        line = (root / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
        entry = {"subject": subject, "file": mutant.path, "line": mutant.line, "text": line, "what": mutant.what}
        reason = reasons.get(
            key_of(entry), "no test runs it" if one.what.startswith("no test") else "no test notices it"
        )
        found.append({**entry, "reason": reason})
    return found


def key_of(entry: dict[str, Any]) -> str:
    """What a survivor is known by when lines move."""
    return f"{entry['file']}\0{entry['text']}\0{entry['what']}"


def write(root: Path, results: dict[str, Results]) -> None:
    """The table and the survivors into docs/testing.md and .json; subjects that did not run stay as they are."""
    kept = root / "docs/testing.json"
    old = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {"rows": {}, "survivors": []}
    given = {key_of(entry): entry["reason"] for entry in old["survivors"] if not entry["reason"].startswith("no test ")}
    rows = {**old["rows"]}
    left = [entry for entry in old["survivors"] if entry["subject"] not in results]
    for name, result in results.items():
        if result.verdicts:
            rows[name] = row(name, result.head, result.verdicts)
            left += entries(root, name, result.verdicts, given)
    left.sort(key=lambda entry: (entry["subject"], entry["file"], entry["line"], entry["what"]))
    kept.write_text(
        json.dumps({"rows": dict(sorted(rows.items())), "survivors": left}, indent=1) + "\n", encoding="utf-8"
    )
    page = root / "docs/testing.md"
    text = page.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    page.write_text(before + BEGIN + table(dict(sorted(rows.items())), left) + after, encoding="utf-8")


def table(rows: dict[str, str], left: list[dict[str, Any]]) -> str:
    """What stands between the marks of the page."""
    names = ["subject", "mutants", "noticed", "of them by a hang", "score", "slow tests", "commit", "seed"]
    lines = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += rows.values()
    summed = [line for name, line in rows.items() if not name.startswith(OF_TASKS)]
    numbers = [list(map(int, re.findall(r"\| (\d+) (?=\|)", line)[:2])) for line in summed]
    every, good = sum(one[0] for one in numbers), sum(one[1] for one in numbers)
    if every:
        lines.append(f"| **all but tasks** | {every} | {good} | | {100 * good / every:.0f} % | | | |")
    reasons = Counter(entry["reason"] for entry in left if not entry["subject"].startswith(OF_TASKS))
    lines += ["", "| why one survived | how many |", "| --- | --- |"]
    lines += [f"| {reason} | {number} |" for reason, number in reasons.most_common()]
    return "\n".join(lines) + "\n"
