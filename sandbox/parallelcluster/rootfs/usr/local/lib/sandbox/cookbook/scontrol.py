"""scontrol of the distribution, with the instance ids that newer releases of Slurm keep for each node.

A machine has started long before its slurmd; here slurmd says that they started together, in whole seconds and as of
the time at which its word arrives. On a busy machine that may be later than slurmctld first heard of the node, which is
a reboot to it, and the node is down. Who asks for the nodes finds it resumed: clustermgtd would replace it, and after
ten such nodes take the queue for broken.
"""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
from pathlib import Path

REAL = "/usr/bin/scontrol"
KNOWN = Path("/var/spool/slurm.state/instance-ids.json")


def _expand(hostlist: str) -> list[str]:
    done = subprocess.run([REAL, "show", "hostnames", hostlist], capture_output=True, text=True, check=False)
    return done.stdout.split()


def _remember(names: list[str], ids: list[str]) -> None:
    with KNOWN.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _read()
        known.update(zip(names, ids))
        KNOWN.write_text(json.dumps(known), encoding="utf-8")


def _read() -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(KNOWN.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def main(arguments: list[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments if "=" in word)
    if arguments[:1] == ["update"] and "nodename" in options:
        names = _expand(options["nodename"])
        if "instanceid" in options:
            _remember(names, options["instanceid"].split(","))
        elif options.get("state", "").lower() in ("power_down", "power_down_force", "power_down_asap"):
            # Whatever backs the node now is not its instance any more.
            _remember(names, [""] * len(names))
        rest = [word for word in arguments if not word.startswith("instanceid=")]
        # Nothing is left to be done where only the id was given.
        return subprocess.run([REAL, *rest], check=False).returncode if len(rest) > 2 else 0
    if arguments[:1] == ["show"] and arguments[1:2] in (["node"], ["nodes"]):
        done = subprocess.run([REAL, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        if _resumed(done.stdout):
            done = subprocess.run([REAL, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        known = _read()
        sys.stdout.write(re.sub(r"^NodeName=(\S+).*$", lambda line: _with_id(line, known), done.stdout, flags=re.M))
        return done.returncode
    return subprocess.run([REAL, *arguments], check=False).returncode


def rebooted(shown: str) -> list[str]:
    """The nodes that are down for a reboot that was none, of what ``scontrol show nodes`` says."""
    nodes = re.split(r"^(?=NodeName=)", shown, flags=re.M)
    down = [one for one in nodes if re.search(r"\bState=\S*DOWN", one) and "Reason=Node unexpectedly rebooted" in one]
    return [one.split(None, 1)[0].partition("=")[2] for one in down]


def _resumed(shown: str) -> bool:
    """Resume them, if this user may; whether there were any."""
    names = rebooted(shown)
    if names:
        resume = [REAL, "update", f"nodename={','.join(names)}", "state=resume", "reason=Node start up"]
        subprocess.run(resume, capture_output=True, check=False)
    return bool(names)


def _with_id(line: re.Match[str], known: dict[str, str]) -> str:
    found = known.get(line.group(1))
    return f"{line.group(0)}\n   InstanceId={found}" if found else line.group(0)
