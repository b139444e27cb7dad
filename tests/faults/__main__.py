"""``make faults``: whether a cluster survives what goes wrong around it.

ARGS="--campaign kills --backend ec2 --count 20 --seed 2 --minutes 30". A run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.contract.conftest import Api
from tests.faults import calls, expiry, inputs, judge, kills, losses, pairs, results, sizes
from tests.faults.world import BACKENDS, World
from tests.sandbox_driver import Sandbox, execute

# Those for the emulated API alone, and the one that needs hosts: the sandbox, and no other work on the machine.
WITHOUT_HOSTS = ("inputs", "sizes", "expiry", "pairs", "kills", "calls")
CAMPAIGNS = (*WITHOUT_HOSTS, "losses")
# Those that know no backends.
ALONE = ("inputs", "sizes", "losses")
# How many tries of each, in all backends together.
COUNTS = {"inputs": 500, "expiry": 60, "pairs": 60, "kills": 120, "calls": 60, "losses": 20}
DEFAULTS = ", ".join(f"{count} {name}" for name, count in COUNTS.items())
TRIES: dict[str, judge.Attempt] = {
    "expiry": expiry.attempt,
    "pairs": pairs.attempt,
    "kills": kills.attempt,
    "calls": calls.attempt,
}
SAYING = threading.Lock()


def say(text: str) -> None:
    with SAYING:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True, file=sys.__stdout__)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--campaign", nargs="+", choices=CAMPAIGNS, default=WITHOUT_HOSTS, help="which (all but losses)"
    )
    parser.add_argument(
        "--backend", nargs="+", choices=BACKENDS, default=BACKENDS, help="of all but inputs, sizes and losses (all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another one draws other faults (%(default)s)")
    parser.add_argument(
        "--count",
        type=int,
        help=f"how many tries of each campaign but sizes; by default {DEFAULTS}",
    )
    parser.add_argument(
        "--nodes", nargs="+", type=int, default=sizes.SIZES, help="of sizes (%(default)s); doubles are compared"
    )
    parser.add_argument("--minutes", type=float, default=120, help="when to end (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time (%(default)s)")
    parser.add_argument("--only", help="the seed of one try, as it stands in docs/faults.json")
    parser.add_argument("--write", action="store_true", help="put the results into docs/faults.md")
    return parser.parse_args()


def of_inputs(book: results.Book, count: int) -> None:
    """Wrong and hostile values of all roles, and what is said to them."""
    cases = inputs.drawn(book.seed, count)
    if len(book.results) > count:
        return
    book.forget()
    api = Api(0.3)
    try:
        with tempfile.TemporaryDirectory() as folder:
            sentences = inputs.said(cases, Path(folder), api.url)
        asked = api.calls()
    finally:
        api.stop()
    for case, sentence in zip(cases, sentences, strict=True):
        wrong = inputs.fault_of(case, sentence)
        told = f"{wrong}: {case.role} {case.name}={case.value!r}: {sentence[:600]}" if wrong else ""
        if told:
            say(told)
        book.add(results.Result(book.campaign, repr(case), int(bool(sentence)), told))
    book.add(results.Result(book.campaign, "calls", 0, f"the checks called AWS: {asked[:3]}" if asked else ""))


def _waiting(book: results.Book, count: int, only: str | None) -> list[str]:
    """The seeds of the tries that the book has not got yet, or the only one."""
    seeds = [f"{book.seed} {number}" for number in range(1, count + 1)]
    return [only] if only else [seed for seed in seeds if not book.has(seed)]


def of_losses(book: results.Book, count: int, until: float, only: str | None) -> None:
    """Trainings in a sandbox that is started for it; what playbooks write is in a log beside the results."""
    waiting, log = _waiting(book, count, only), book.path.with_suffix(".log")
    if not waiting:
        return
    with log.open("a", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        if not execute([sys.executable, "-m", "sandbox", "status"], {}).returncode:
            raise SystemExit("faults: a sandbox is up, and this would delete it; end it by make teardown first.")
        try:
            cluster = losses.Cluster(Sandbox())
            say("losses: a cluster is made, and trains undisturbed")
            normal = losses.undisturbed(cluster)
            for seed in waiting:
                if time.monotonic() > until:
                    break
                result = _tried(functools.partial(losses.attempt, cluster, normal, seed), seed, book.campaign)
                if not only:
                    book.add(result)
                say(f"losses: seed {seed}: {result.broken or 'all held'}")
        except judge.BrokenError as broken:
            book.add(results.Result(book.campaign, "undisturbed", 0, str(broken)))
        except AssertionError:
            raise SystemExit(f"faults: the sandbox does not start; see the end of {log}.") from None
        finally:
            Sandbox.command("down")


def of_tries(book: results.Book, backend: str, count: int, jobs: int, until: float, only: str | None) -> None:
    """Tries of one campaign on one backend, each in a world that is used again."""
    attempt = TRIES[book.campaign.partition(" ")[0]]
    waiting = iter(_waiting(book, count, only))
    taking, adding = threading.Lock(), threading.Lock()

    def work(number: int) -> None:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            world = World(backend, Path(folder))
            try:
                try:
                    normal = judge.Undisturbed(world)
                except judge.BrokenError as broken:
                    with adding:
                        book.add(results.Result(book.campaign, f"undisturbed {number}", 0, str(broken)))
                    return
                say(
                    f"{book.campaign}: {', '.join(f'{one} {seconds:.0f} s' for one, seconds in normal.named().items())}"
                )
                while time.monotonic() < until:
                    with taking:
                        seed = next(waiting, None)
                    if seed is None:
                        return
                    result = _tried(functools.partial(attempt, world, normal, seed), seed, book.campaign)
                    if only:
                        say(f"{seed}: {result.broken or 'all held'}")
                        continue
                    with adding:
                        book.add(result)
                        say(
                            f"{book.campaign} {len(book.results)}: seed {seed}: {result.faults} faults, "
                            f"{result.broken or 'all held'}"
                        )
            finally:
                world.close()

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work, number) for number in range(jobs)]:
            done.result()


def _tried(attempt: Callable[[Callable[[str], None]], int], seed: str, name: str) -> results.Result:
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        say(f"{name}, seed {seed}: {text}")

    try:
        return results.Result(name, seed, attempt(tell), "")
    except judge.BrokenError as broken:
        return results.Result(name, seed, len(told), "; ".join([*told, str(broken)]))
    except Exception:
        # A mistake of this program's, or an answer that nobody thought of: the others go on.
        return results.Result(name, seed, len(told), "; ".join([*told, traceback.format_exc(limit=-3)]))


def main() -> int:
    asked = options()
    if asked.write and results.commit().endswith("+"):
        print(
            "faults: files differ from the commit, so that nobody could repeat it; commit them first.", file=sys.stderr
        )
        return 2
    parts = [(name, backend) for name in asked.campaign for backend in ([""] if name in ALONE else asked.backend)]
    end = time.monotonic() + 60 * asked.minutes
    rows = []
    for number, (campaign, backend) in enumerate(parts):
        wanted = asked.count or COUNTS.get(campaign, 0)
        count = -(-wanted // len(asked.backend)) if backend else wanted
        book = results.Book(f"{campaign} {backend}".strip(), asked.seed)
        # What one leaves of its share is for those after it.
        until = time.monotonic() + (end - time.monotonic()) / (len(parts) - number)
        if backend:
            of_tries(book, backend, count, asked.jobs, until, asked.only)
        elif campaign == "losses":
            of_losses(book, count, until, asked.only)
        elif campaign == "sizes":
            count = len(asked.nodes)
            sizes.measure(book, asked.nodes, until, say)
        else:
            of_inputs(book, count)
        rows.append({**book.row(), "wanted": count})
    for row in rows:
        print(
            f"{row['campaign']}: {row['tries']} of {row['wanted']} tries, {row['faults']} faults, "
            f"{len(row['broken'])} broken promises"
        )
        for one in row["broken"]:
            print(f"  {one['seed']}: {one['what']}")
    if asked.write:
        results.write([row for row in rows if row["tries"]])
    return 1 if any(row["broken"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
