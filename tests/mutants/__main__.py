"""``make mutants``: whether the tests of each subject notice small changes of its sources.

ARGS="--subject ec2 --count 40 --seed 2 --minutes 20 --jobs 2". A run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.mutants import baseline, confine, draw, run, score, subjects
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache/mutants"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def commit() -> str:
    """The commit's beginning, with a plus where files differ from it."""
    name = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    changed = ["git", "status", "--porcelain", "--", "plugins", "roles", "tests"]
    differs = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return name.stdout.strip() + ("+" if differs else "")


def options() -> argparse.Namespace:
    names = [subject.name for subject in subjects.SUBJECTS]
    every = [*names, *(subject.name for subject in subjects.TASKS)]
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", default="1", help="another one draws other mutants (%(default)s)")
    parser.add_argument("--count", type=int, default=500, help="how many in all subjects together (%(default)s)")
    parser.add_argument("--subject", nargs="+", choices=every, default=names, metavar="SUBJECT", help=", ".join(every))
    parser.add_argument("--file", default="", help="only files like this; such a run counts for no score")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="instead of the subject's; likewise")
    parser.add_argument("--minutes", type=float, default=120, help="when to end (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time (%(default)s)")
    parser.add_argument("--slow", type=float, default=60, help="seconds of slow tests for each; 0 leaves them out")
    parser.add_argument("--survivors", action="store_true", help="after tests were added: only what survived before")
    parser.add_argument("--write", action="store_true", help="put the score into docs/testing.md")
    return parser.parse_args()


def of_subject(subject: subjects.Subject, asked: argparse.Namespace, until: float) -> score.Results | None:
    """Tries the subject's share of the mutants."""
    paths = [path for path in subjects.sources(ROOT, subject) if fnmatch.fnmatch(path, f"*{asked.file}*")]
    if not paths:
        return None
    tests = baseline.test_files(ROOT, [*subject.tests, *subject.slow])
    head = {
        "key": f"{baseline.digest(ROOT, paths)} {asked.seed}",
        "tests": baseline.digest(ROOT, baseline.test_files(ROOT, asked.tests) if asked.tests else tests),
        "commit": commit(),
        "seed": asked.seed,
    }
    part = "-part" if asked.file or asked.tests else ""
    place = CACHE / f"{subject.name.replace(' ', '-')}{part}.jsonl"
    results = score.Results.resumed(place, head, asked.slow, asked.survivors)
    share = math.ceil(asked.count / len(asked.subject))
    left = share - len(results.verdicts)
    if left <= 0:
        return results
    known = CACHE / "baseline"
    fast = baseline.learn(ROOT, asked.tests or subject.tests, known, say)
    slow = baseline.learn(ROOT, subject.slow, known, say) if asked.slow and subject.slow and not asked.tests else None

    def waiting() -> Iterator[Mutant]:
        every = draw.drawn(ROOT, paths, f"{asked.seed} {subject.name}")
        return (mutant for mutant in itertools.islice(every, share) if not results.has(mutant))

    def show(verdict: run.Verdict) -> None:
        verdict.slow = asked.slow
        results.add(verdict)
        mutant = verdict.mutant
        place = f"{subject.name} {len(results.verdicts)}/{share}: {mutant.path}:{mutant.line}"
        say(f"{place}: {mutant.what}: {verdict.what} ({verdict.tests} tests, {verdict.seconds:.0f} s)")

    run.tried(ROOT, waiting(), run.Choice(fast, slow, asked.slow), asked.jobs, until, show)
    return results


def main() -> int:
    asked = options()
    until = time.monotonic() + 60 * asked.minutes
    run.warm()
    found: dict[str, score.Results] = {}
    try:
        for subject in (*subjects.SUBJECTS, *subjects.TASKS):
            if subject.name in asked.subject and time.monotonic() < until:
                results = of_subject(subject, asked, until)
                if results and results.verdicts:
                    found[subject.name] = results
    except (confine.ConfinementError, baseline.BaselineError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    for name, results in found.items():
        for one in score.survivors(results.verdicts):
            print(f"{one.mutant.path}:{one.mutant.line}: {one.mutant.what}: {one.what}")
        print(score.row(name, results.head, results.verdicts))
    if asked.write and not (asked.file or asked.tests):
        score.write(ROOT, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
