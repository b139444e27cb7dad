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
BEGIN, END = "<!-- begin: results -->", "<!-- end: results -->"


class Result(NamedTuple):
    """One try: its campaign and seed, how many faults it had, and what did not hold, '' where all did."""

    campaign: str
    seed: str
    faults: int
    broken: str


def commit() -> str:
    """The commit's beginning, with a plus where files differ from it."""
    name = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    changed = ["git", "status", "--porcelain", "--", "plugins", "roles", "playbooks", "sandbox", "tests"]
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
        return {
            "campaign": self.campaign,
            "tries": len(self.results),
            "faults": sum(result.faults for result in self.results),
            "broken": [{"seed": one.seed, "what": one.broken} for one in self.results if one.broken],
            "commit": self.commit,
            "seed": self.seed,
        }


def write(rows: list[dict[str, Any]]) -> None:
    """Put rows into the page and its data; rows of campaigns that did not run stay as they are."""
    known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
    new = {row["campaign"] for row in rows}
    every = sorted([row for row in known if row["campaign"] not in new] + rows, key=lambda row: str(row["campaign"]))
    DATA.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(_table(every))
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
