"""Runs jobs at the same time, each with an /etc/hosts of its own, and prints as JSON how each ended.

The jobs come as JSON on standard input: name, hosts (the file that stands in for /etc/hosts), and either options of
torchrun, for a process of all_reduce.py, or argv and env of a command; the number that may run at once, and the name of
the control, if there is one. What has not ended twenty seconds after the control hangs, however busy the machine is.

It runs in the environment that has PyTorch.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from typing import Any

import all_reduce
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args

LIMIT = 600
GRACE = 20
# Seconds for a launcher to end its workers.
PATIENCE = 60
CLONE_NEWNS = 0x20000
# The bind mounts are seen in this mount namespace only. Names come from the file alone, as in a VPC without DNS; a
# resolver makes up for some of the faults.
MOUNT = 'mount --make-rprivate / && mount --bind "$0" /etc/hosts && mount --bind /dev/null /etc/resolv.conf'


def run_torchrun(options: list[str]) -> None:
    """What the command torchrun does, but its worker is forked: PyTorch is imported once, by this file."""
    config, _command, _arguments = config_from_args(parse_args([*options, all_reduce.__file__]))
    config.start_method = "fork"
    elastic_launch(config=config, entrypoint=work)()


def work() -> None:
    """The worker: a signal ends it, as one that was not forked from the launcher with its handlers."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    all_reduce.main()


class Job:
    """One process, and how it ended."""

    def __init__(
        self,
        name: str,
        hosts: str,
        options: list[str] | None = None,
        argv: list[str] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = os.memfd_create(name)
        self.start = time.monotonic()
        self.limit = self.start + LIMIT
        self.stopped: float | None = None
        self.process = os.fork()
        if self.process == 0:
            self._become(hosts, options or [], argv, env or {})

    def _become(self, hosts: str, options: list[str], argv: list[str] | None, environment: dict[str, str]) -> None:
        """The job's own process; never returns."""
        code = 1
        try:
            # A group of its own, all of which is ended with it.
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self.log, 1)
            os.dup2(self.log, 2)
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
                raise OSError(ctypes.get_errno(), "unshare")
            subprocess.run(["sh", "-c", MOUNT, hosts], check=True)
            os.environ.update(environment)
            if argv:
                # Which Python ignores, and a shell would go on ignoring.
                for number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                os.execvp(argv[0], argv)  # noqa: S606
            run_torchrun(options)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(code)

    def ended(self) -> dict[str, Any] | None:
        """The result, or None while it runs; past its limit it is ended, and never waited for."""
        pid, status = os.waitpid(self.process, os.WNOHANG)
        now = time.monotonic()
        if not pid:
            if now >= self.limit and self.stopped is None:
                self.stopped = now
                os.kill(self.process, signal.SIGTERM)
            elif self.stopped is not None and now > self.stopped + PATIENCE:
                os.killpg(self.process, signal.SIGKILL)
            return None
        # What it has left running.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        output = os.pread(self.log, os.fstat(self.log).st_size, 0).decode(errors="replace")
        result = "hangs" if self.stopped is not None else "fails" if status else "works"
        return {"result": result, "seconds": round(now - self.start, 1), "output": output[-1500:]}


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
