"""The command line: ``python -m sandbox up | down | status | logs | run | env | calls | fault | capacity | purge``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from sandbox import lifecycle, machine, packages, settings
from sandbox.account import api
from sandbox.account import environment as account
from sandbox.errors import SandboxError
from sandbox.paths import Paths

LOGS = ("emulator", "reconciler", "podman", "image", "kubernetes", "image-kubernetes", "image-pod", "image-training")


def parser() -> argparse.ArgumentParser:
    """The arguments of every subcommand."""
    top = argparse.ArgumentParser(
        prog="python -m sandbox", description="An AWS account with Trainium nodes on this machine."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("up", help="start it; does nothing where it runs")
    commands.add_parser("down", help="stop it and remove hosts, networks and mounts; caches stay")
    commands.add_parser("purge", help="down, and delete the whole folder if 'up' made it: caches and reports as well")
    commands.add_parser("packages", help="make PyTorch ready for hosts that import it from a mount, as molecule's do")
    commands.add_parser("status", help="what runs; exit code 1 where it is not up")
    logs = commands.add_parser("logs", help="print a log")
    logs.add_argument("name", nargs="?", default="reconciler", choices=LOGS)
    inside = commands.add_parser("run", help="run a command whose AWS clients and Ansible talk to the sandbox")
    inside.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="COMMAND", help="for example: ansible-inventory --graph"
    )
    commands.add_parser("env", help='print the environment; e=$(python -m sandbox env) && eval "$e" && COMMAND')
    calls = commands.add_parser("calls", help="the API calls seen so far")
    calls.add_argument("--json", action="store_true", help="everything about each call, as JSON")
    calls.add_argument("--clear", action="store_true", help="forget them")
    fault = commands.add_parser("fault", help="make an API action fail or wait")
    fault.add_argument("action", nargs="?", help="for example RunInstances; without it the faults are listed")
    fault.add_argument("--code", help="error code, for example RequestLimitExceeded")
    fault.add_argument("--message", default="Injected by the sandbox.")
    fault.add_argument("--status", type=int, default=400, help="HTTP status (default: 400)")
    fault.add_argument("--times", type=int, default=1, help="how often (default: 1)")
    fault.add_argument("--delay", type=float, default=0.0, help="seconds to wait before the answer")
    fault.add_argument("--clear", action="store_true", help="remove all faults")
    capacity = commands.add_parser("capacity", help="limit the free instances of a type in a zone")
    capacity.add_argument("type", nargs="?", help="for example trn1.32xlarge; without it the limits are listed")
    capacity.add_argument("zone", nargs="?", help="for example us-west-2d")
    capacity.add_argument("count", nargs="?", type=int, help="free instances left")
    capacity.add_argument("--clear", action="store_true", help="remove all limits")
    return top


def show_calls(options: argparse.Namespace) -> None:
    if options.clear:
        api.request("calls/clear", {})
        return
    calls = api.request("calls")
    if options.json:
        print(json.dumps(calls, indent=1))
        return
    for call in calls:
        mark = "write" if call.get("write") else "read"
        print(f"{call['time']:.3f} {mark:<5} {call['service']}:{call['action']}")


def inject_fault(options: argparse.Namespace) -> Any:
    if options.clear:
        return api.request("faults", method="DELETE")
    if not options.action:
        return api.request("faults")
    if not options.code and not options.delay:
        raise SandboxError("A fault needs --code or --delay: say what should happen to the action.")
    fields = ("action", "code", "message", "status", "times", "delay")
    return api.request("faults", {name: getattr(options, name) for name in fields})


def limit_capacity(options: argparse.Namespace) -> Any:
    if options.clear:
        return api.request("capacity", method="DELETE")
    if options.type is None:
        return api.request("capacity")
    if options.count is None or options.count < 0:
        raise SandboxError(
            "Capacity needs a type, a zone and a count of 0 or more, for example: trn1.32xlarge us-west-2d 0."
        )
    return api.request("capacity", {"instance_type": options.type, "zone": options.zone, "count": options.count})


def run_inside(words: list[str], paths: Paths) -> None:
    """Become a command in the sandbox's environment. Nothing starts where that could be another account's.

    Raises:
        SandboxError: there is no command, the sandbox does not run, or the environment is not its own.
    """
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise SandboxError("Say what to run, for example: python -m sandbox run ansible-inventory --graph.")
    environment = settings.inside(paths)
    account.check(environment)
    api.request("health")
    try:
        os.execvpe(words[0], words, environment)  # noqa: S606  # a list, no shell
    except OSError as error:
        raise SandboxError(f"{words[0]} cannot be started: {error.strerror}.") from error


def run(options: argparse.Namespace, paths: Paths) -> int:
    """Do one command and return the exit code."""
    if options.command == "up":
        print(lifecycle.up(paths))
    elif options.command == "down":
        print(lifecycle.down(paths))
    elif options.command == "purge":
        print(lifecycle.purge(paths))
    elif options.command == "packages":
        machine.become_root()
        print(packages.make(paths))
    elif options.command == "status":
        machine.become_root()
        text, complete = lifecycle.status(paths)
        print(text)
        return 0 if complete else 1
    elif options.command == "logs":
        log = paths.logs / f"{options.name}.log"
        if not log.exists():
            raise SandboxError(f"There is no log '{options.name}' yet: start the sandbox with 'python -m sandbox up'.")
        print(log.read_text(encoding="utf-8"), end="")
    elif options.command == "run":
        run_inside(options.words, paths)
    elif options.command == "env":
        print(settings.exports(paths))
    elif options.command == "calls":
        show_calls(options)
    else:
        print(json.dumps({"fault": inject_fault, "capacity": limit_capacity}[options.command](options), indent=1))
    return 0


def main() -> int:
    try:
        return run(parser().parse_args(), Paths.from_environment())
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
