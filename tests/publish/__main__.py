"""``make publish-check``: what somebody gets who has the archive of the collection, and nothing of this checkout.

Each step says its name, its result and its seconds; all are run, and a table at the end sums them up. What is checked
is what git has committed, from a plain clone. ``STEPS="site importer"`` takes some; what they need is made first.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.publish import archive, cluster, documents, rules, versions
from tests.publish.check import Check
from tests.publish.users import REPOSITORY, FailedError

STEPS: dict[str, Callable[[Check], str]] = {
    "archive": archive.archive,
    "install": archive.install,
    "documentation": documents.documentation,
    "playbooks": documents.playbooks,
    "validate": documents.validate,
    "environment": archive.environment,
    "changelog": archive.changelog,
    "site": documents.site,
    "release": archive.release,
    "licences": archive.licences,
    "workflows": archive.workflows,
    "lint": rules.lint,
    "importer": documents.importer,
    "sanity": rules.sanity,
    "matrix": versions.matrix,
    "sanity-of-users": rules.sanity_of_users,
    "cluster": cluster.cluster,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], metavar="STEP", help=", ".join(STEPS))
    parser.add_argument("--folder", type=Path, default=REPOSITORY / ".cache/publish")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    check = Check(options.folder.resolve())
    results: dict[str, tuple[str, float]] = {}
    for name in dict.fromkeys(["archive", *(options.steps or STEPS)]):
        check.log = check.folder / f"{name}.log"
        check.log.unlink(missing_ok=True)
        print(f"{name}: {STEPS[name].__doc__} ...", flush=True)
        started = time.monotonic()
        try:
            said, result = STEPS[name](check), "green"
        except FailedError as error:
            said, result = str(error), "FAILED"
        results[name] = (result, time.monotonic() - started)
        print(f"{name}: {result} in {results[name][1]:.0f} s: {said}", flush=True)
        if result == "FAILED" and name in ("archive", "install"):
            break
    print("\npublish-check")
    for name, (result, seconds) in results.items():
        print(f"  {name:16} {result:7} {seconds:6.0f} s")
    failed = [name for name, (result, _seconds) in results.items() if result == "FAILED"]
    print(f"{', '.join(failed)} failed." if failed else f"All {len(results)} steps are green.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
