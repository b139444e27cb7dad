"""How long `make test` takes in a clean clone, by part, and how much of the processors it uses.

    python -m tests.benchmarks.whole_test [--limit MINUTES]

It clones the checkout's commit into a temporary folder, runs `make test` there, and prints when each part ended, the
seconds that the machine's processors were busy meanwhile (hosts of the sandbox are no children of this process), and
the ratio to the limit, 25 minutes. Nothing else should run beside it. Its exit status is that of `make test`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Lines by which a part says that it has ended: molecule's scenarios, pytest's summary, lint's and sanity's last steps.
ENDED = re.compile(r"molecule[ :].* in \d+ s|=+ .*passed.* in [\d.]+s|^sandbox: up|^All checks passed")


def busy() -> float:
    """Seconds that all processors together have worked since the machine's start, its guests' and stolen time apart."""
    user, nice, system, _idle, _wait, irq, softirq, *_rest = map(int, Path("/proc/stat").read_text().split()[1:11])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=float, default=25, help="minutes to compare with")
    limit = parser.parse_args().limit * 60
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), folder], check=True)
        started, worked = time.monotonic(), busy()
        process = subprocess.Popen(
            ["make", "test"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert process.stdout is not None
        last: list[str] = []
        for line in process.stdout:
            last = [*last[-20:], line]
            if ENDED.search(line):
                print(
                    f"{time.monotonic() - started:7.0f} s  {busy() - worked:7.0f} s of CPU  {line.strip()}", flush=True
                )
        code = process.wait()
        wall, used = time.monotonic() - started, busy() - worked
        if code:
            print("".join(last), file=sys.stderr)
    cores = os.cpu_count() or 1
    print(f"make test: {wall:.0f} s, {used:.0f} s of CPU ({used / wall / cores:.0%} of {cores} processors)")
    print(f"ratio to {limit:.0f} s: {wall / limit:.2f}")
    return code


if __name__ == "__main__":
    sys.exit(main())
