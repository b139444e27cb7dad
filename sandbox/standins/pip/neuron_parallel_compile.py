"""Stand-in for neuron_parallel_compile: it runs the command, and puts entries into a cache that hold nothing.

usage: neuron_parallel_compile [--command collect|compile|clean|clear-locks|analyze] [COMMAND ...]

The command is run with NEURON_EXTRACT_GRAPHS_ONLY=1, as the real tool does. SIMULATED_FAILED_COMPILATIONS sets how many
of the graphs do not compile. As with the real tool, an entry that is locked is waited for, for ever, one that has
failed is tried again only with --retry_failed_compilation in NEURON_CC_FLAGS, and where nothing is left to compile
there are no totals.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

GRAPHS = 6
FAILED = "model.failed"  # the real tool keeps that in the entry in a form of its own
CACHE = "/var/tmp/neuron-compile-cache"  # noqa: S108  # the real tool's default
RETRY = "--retry_failed_compilation"
COMMANDS = ("collect", "compile", "clean", "clear-locks", "analyze")


def say(text: str, level: str = "INFO") -> None:
    """A line in the form of the real tool's."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:06d}"
    print(f"{stamp}:  {os.getpid()}  {level} ||NEURON_PARALLEL_COMPILE||: {text}", flush=True)


def cache() -> Path:
    """The folder of the cache: the compiler's flag wins over the variable. S3 is stood in for by a local folder."""
    flag = re.search(r"--cache_dir[= ](\S+)", os.environ.get("NEURON_CC_FLAGS", ""))
    url = flag[1] if flag else os.environ.get("NEURON_COMPILE_CACHE_URL") or CACHE
    if url.startswith("s3://"):
        say(f"this stand-in keeps what belongs to {url} on this node")
        url = f"{CACHE}-of-s3/{url[5:]}"
    return Path(url)


def compiler() -> str:
    """The compiler's version; 0 where it is not installed."""
    try:
        return version("neuronx-cc")
    except PackageNotFoundError:
        return "0"


def entries(root: Path, command: list[str]) -> list[Path]:
    """The cache's entries for the graphs of a command; the same for every number of steps."""
    given = os.environ.get("NEURON_CC_FLAGS", "").replace(RETRY, "").strip()
    text = re.sub(r"\d+", "0", " ".join(command)) + given
    flags = hashlib.sha256(given.encode()).hexdigest()[:8]
    names = [hashlib.sha256(f"{text} {graph}".encode()).hexdigest()[:20] for graph in range(GRAPHS)]
    return [root / f"neuronxcc-{compiler()}" / f"MODULE_{name}+{flags}" for name in names]


def lock(entry: Path) -> Path:
    """Take the entry's lock, when it is free."""
    path = entry / "model.hlo_module.pb.lock"
    waited = 0
    while True:
        try:
            path.open("x").close()
            return path
        except FileExistsError:
            if waited % 10 == 0:
                say(f"another process must be compiling: {path} is there, waited {waited} s")
            time.sleep(1)
            waited += 1


def collect(found: list[Path], command: list[str]) -> int:
    """Run the command, which would be traced, and note the graphs. Its exit code."""
    if not command:
        say("give a command to run", "ERROR")
        return 2
    say(f"Running trial run (add option to terminate trial run early; also ignore trial run's outputs): {command}")
    try:
        # Neuron's sample for EKS gives the command as one word, which is for a shell.
        joined = len(command) == 1
        environment = {**os.environ, "NEURON_EXTRACT_GRAPHS_ONLY": "1"}
        code = subprocess.call(command[0] if joined else command, env=environment, shell=joined)
    except OSError as error:
        say(f"{command[0]} cannot be run: {error.strerror}", "ERROR")
        return 127
    if code:
        say(f"There was an error in the training script, which ended with {code}.", "ERROR")
        return code if code > 0 else 128 - code
    for entry in found:
        entry.mkdir(parents=True, exist_ok=True)
        (entry / "model.hlo_module.pb").write_text("simulated\n", encoding="utf-8")
        (entry / "compile_flags.json").write_text("[]\n", encoding="utf-8")
    return 0


def compile_all(found: list[Path]) -> int:
    """Write what the compiler would; 1 where a graph did not compile."""
    collected = [entry for entry in found if (entry / "model.hlo_module.pb").exists()]
    wanted = [entry for entry in collected if not (entry / "model.done").exists()]
    if RETRY not in os.environ.get("NEURON_CC_FLAGS", ""):
        for entry in (entry for entry in wanted if (entry / FAILED).exists()):
            say(f"Got a cached failed neff at {entry}/model.neff. Will skip compilation, please set {RETRY}")
        wanted = [entry for entry in wanted if not (entry / FAILED).exists()]
    if not wanted:
        say("No todo hlos found in cache or hlo_tasklist, parallel_compile return before spawning workers....")
        return 0
    failing = int(os.environ.get("SIMULATED_FAILED_COMPILATIONS") or 0)
    failed = min(failing, len(wanted))
    report = {}
    for place, entry in enumerate(wanted):
        if place < failed:
            say(f"Failed compilation of {entry}/model.hlo_module.pb", "ERROR")
            (entry / FAILED).touch()
        else:
            held = lock(entry)
            (entry / "model.neff").write_text("simulated\n", encoding="utf-8")
            (entry / "model.done").touch()
            held.unlink()
        report[f"{entry}/model.hlo_module.pb"] = {"status": place >= failed, "retry": 0, "compile_time": 0.0}
    say(json.dumps({"compilation_report": report}, indent=4))
    say(f"Total graphs: {len(wanted)}")
    say(f"Total successful compilations: {len(wanted) - failed}")
    say(f"Total failed compilations: {failed}")
    return 1 if failed else 0


def clear_locks(root: Path) -> int:
    for path in root.rglob("*.lock"):
        say(f"removing {path}")
        path.unlink()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="neuron_parallel_compile", allow_abbrev=False)
    parser.add_argument("--command", choices=COMMANDS)
    parser.add_argument("--analyze-output", default="result.json")
    parser.add_argument("--analyze-verbosity", default="2")
    parser.add_argument("run", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    say("this is simulated: nothing is traced or compiled")
    root = cache()
    if options.command == "clear-locks":
        return clear_locks(root)
    if options.command == "clean":
        shutil.rmtree(root, ignore_errors=True)
        say(f"removed {root}")
        return 0
    found = entries(root, options.run)
    code = 0 if options.command == "compile" else collect(found, options.run)
    if options.command == "analyze" and not code:
        Path(options.analyze_output).write_text('{"compilation_report": {}}\n', encoding="utf-8")
        return 0
    if code or options.command == "collect":
        return code
    return compile_all(found)


if __name__ == "__main__":
    sys.exit(main())
