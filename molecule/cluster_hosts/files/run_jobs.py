"""Runs jobs at the same time, each with an /etc/hosts of its own, and prints as JSON how each ended.

The jobs come as JSON on standard input: name, hosts (the file that stands in for /etc/hosts), argv and env of each, the
number that may run at once, and the name of the control, if there is one. What has not ended twenty seconds after the
control hangs, however busy the machine is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

LIMIT = 600
GRACE = 20
# The bind mounts are seen in this mount namespace only. Names come from the file alone, as in a VPC without DNS; a
# resolver makes up for some of the faults.
ENTER = 'mount --bind "$0" /etc/hosts && mount --bind /dev/null /etc/resolv.conf && exec "$@"'


class Job:
    """One process, and how it ended."""

    def __init__(self, name: str, hosts: str, argv: list[str], env: dict[str, str] | None = None) -> None:
        self.name = name
        self.log = os.memfd_create(name)
        self.start = time.monotonic()
        self.limit = self.start + LIMIT
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", ENTER, hosts, *argv],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def ended(self) -> dict[str, Any] | None:
        """The result, or None while it runs within its time."""
        hangs = self.process.poll() is None
        seconds = round(time.monotonic() - self.start, 1)
        if hangs:
            if time.monotonic() < self.limit:
                return None
            self.process.terminate()
            self.process.wait()
        output = os.pread(self.log, os.fstat(self.log).st_size, 0).decode(errors="replace")
        result = "hangs" if hangs else "fails" if self.process.returncode else "works"
        return {"result": result, "seconds": seconds, "output": output[-1500:]}


def main() -> None:
    request = json.load(sys.stdin)
    waiting, results = request["jobs"], {}
    running: list[Job] = []
    while waiting or running:
        while waiting and len(running) < request["at_once"]:
            running.append(Job(**waiting.pop(0)))
        for job in list(running):
            result = job.ended()
            if result is None:
                continue
            running.remove(job)
            results[job.name] = result
            if job.name == request.get("control"):
                for other in running:
                    other.limit = time.monotonic() + GRACE
        time.sleep(0.1)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
