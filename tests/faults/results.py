"""What a campaign has found so far, kept beside the checkout's other caches, and the page docs/faults.md of it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache/faults"
PAGE, DATA = ROOT / "docs/faults.md", ROOT / "docs/faults.json"
# What a result depends on.
SOURCES = ("plugins", "roles", "playbooks", "inventory", "ansible.cfg", "sandbox", "tests")
BEGIN, END = "<!-- begin: results -->", "<!-- end: results -->"


class Result(NamedTuple):
    """One try: its campaign and seed, how many faults it had, and what did not hold, '' where all did.

    Of the campaign sizes, whose seed is a number of nodes, also what each step cost: seconds of wall time and of the
    processors, MiB, calls.
    """

    campaign: str
    seed: str
    faults: int
    broken: str
    costs: dict[str, list[float]] = {}  # noqa: RUF012 - never changed


def commit() -> str:
    """The commit's beginning, with a plus where files differ from it."""
    name = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    changed = ["git", "status", "--porcelain", "--", *SOURCES]
    differs = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return name.stdout.strip() + ("+" if differs else "")


class Book:
    """The results of one campaign at one commit and seed; those of another commit count no more."""

    def __init__(self, campaign: str, seed: int) -> None:
        self.campaign, self.seed, self.commit = campaign, seed, commit()
        self.path = CACHE / f"{campaign.replace(' ', '-')}-{seed}.jsonl"
        self.results: list[Result] = []
        if self.path.exists():
            head, *lines = self.path.read_text(encoding="utf-8").splitlines()
            # What was tried with changes that no commit has is tried anew.
            if json.loads(head)["commit"] == self.commit and not self.commit.endswith("+"):
                self.results = [Result(**json.loads(line)) for line in lines]
                return
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.results = []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"commit": self.commit}) + "\n", encoding="utf-8")

    def add(self, result: Result) -> None:
        self.results.append(result)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(result._asdict()) + "\n")

    def has(self, seed: str) -> bool:
        return any(result.seed == seed for result in self.results)

    def row(self) -> dict[str, Any]:
        """What the page shows of it."""
        costs = {one.seed: one.costs for one in self.results if one.costs}
        return {
            "campaign": self.campaign,
            "tries": len(self.results),
            "faults": sum(result.faults for result in self.results),
            "broken": [{"seed": one.seed, "what": one.broken} for one in self.results if one.broken],
            "commit": self.commit,
            "seed": self.seed,
            **({"costs": costs} if costs else {}),
        }


def write(rows: list[dict[str, Any]]) -> None:
    """Put rows into the page and its data; rows of campaigns that did not run stay as they are."""
    known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
    new = {row["campaign"] for row in rows}
    every = sorted([row for row in known if row["campaign"] not in new] + rows, key=lambda row: str(row["campaign"]))
    DATA.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join([*_table(every), *_sizes(every)])
    PAGE.write_text(
        re.sub(f"{BEGIN}.*{END}", lambda _found: f"{BEGIN}\n{table}\n{END}", text, flags=re.DOTALL), encoding="utf-8"
    )


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| campaign | tries, of those wanted | faults | broken promises | commit | seed |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        yield (
            f"| {row['campaign']} | {row['tries']} of {row['wanted']} | {row['faults']} | {len(row['broken'])} "
            f"| {row['commit']} | {row['seed']} |"
        )


def _sizes(rows: list[dict[str, Any]]) -> Iterator[str]:
    """For each step what it costs by the number of nodes."""
    for row in (one for one in rows if one.get("costs")):
        numbers = list(row["costs"])
        yield ""
        yield f"| step, with so many nodes | {' | '.join(numbers)} |"
        yield f"| --- |{' --- |' * len(numbers)}"
        for step in row["costs"][numbers[0]]:
            costs = [row["costs"][number].get(step, [0, 0, 0, 0]) for number in numbers]
            told = [
                f"{wall:.0f} s, CPU {cpu:.0f} s, {memory:.0f} MiB, {calls:.0f} calls"
                for wall, cpu, memory, calls in costs
            ]
            yield f"| {step} | {' | '.join(told)} |"
