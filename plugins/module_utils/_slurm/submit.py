# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What sbatch is told, and whether it has to be told at all. Pure.

All problems are ValueErrors of one sentence, found before sbatch is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import is_unlimited, seconds_of

DEPENDENCIES = ["after", "afterany", "afterok", "afternotok", "aftercorr", "singleton"]
COMMENT = "trainium:"
# Slurm's own limits on nodes, tasks of a node and tasks of an array are above these.
MOST_NODES = 65536
MOST_TASKS = 65535
MOST_ARRAY = 4_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029]")
# More digits than any limit has.
_TOO_LONG = re.compile(r"[0-9]{7}")
_ARRAY = re.compile(r"(?P<parts>[0-9,:-]+)(?:%(?P<most>[0-9]{1,7}))?")
_ARRAY_PART = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?")


def shown(value: Any) -> str:
    """A value in a message: quoted, and not longer than a line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(str(value))} characters)"


def limit_seconds(text: str) -> int | None:
    """A Slurm time limit ('90', '2:30', '1:00:00', '2-12', '1-2:30:00') as seconds; None for no limit.

    ValueError for anything else, and for a limit of nothing, which Slurm would take for no limit.
    """
    if is_unlimited(text):
        return None
    seconds = None if _TOO_LONG.search(text) else seconds_of(text)
    if seconds is None:
        raise ValueError(
            f"time_limit is {shown(text)}; use minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED."
        )
    if not seconds:
        raise ValueError(f"time_limit is {shown(text)}, no time at all; use at least a minute, or UNLIMITED.")
    return seconds


def checked_nodes(text: str) -> str:
    """'2' or '1-2', in numbers that Slurm can take."""
    match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    if not match:
        raise ValueError(f"nodes is {shown(text)}; use a number such as 2, or a range such as 1-2.")
    low, high = int(match[1]), int(match[2] or match[1])
    if not 1 <= low <= high <= MOST_NODES:
        raise ValueError(f"nodes is {shown(text)}; use 1 to {MOST_NODES} nodes, the smaller number first.")
    return str(low) if low == high else f"{low}-{high}"


def checked_array(text: str) -> str:
    """'0-3', '1,5,9', '0-15:4', '0-99%10': the tasks of an array and how many of them may run at once."""
    match = _ARRAY.fullmatch(text)
    parts = match["parts"].split(",") if match else []
    if not match or (match["most"] is not None and not int(match["most"])):
        raise ValueError(f"array is {shown(text)}; use numbers and ranges such as 0-3, 1,5 or 0-15:4%2.")
    count = 0
    for part in parts:
        piece = _ARRAY_PART.fullmatch(part)
        if not piece:
            raise ValueError(f"array is {shown(text)}; use numbers and ranges such as 0-3, 1,5 or 0-15:4%2.")
        low, high, step = int(piece[1]), int(piece[2] or piece[1]), int(piece[3] or 1)
        if high < low or not step or high > MOST_ARRAY:
            raise ValueError(
                f"array is {shown(text)}; a range goes from the smaller number to the larger, to {MOST_ARRAY} at most."
            )
        count += len(range(low, high + 1, step))
    if count > MOST_ARRAY:
        raise ValueError(f"array is {shown(text)}, {count} tasks; use {MOST_ARRAY} at most.")
    return text


def dependency_text(items: Sequence[Mapping[str, Any]]) -> str:
    """``[{"type": "afterok", "job_ids": [12, 13]}]`` as ``afterok:12:13``; '' for none."""
    texts = []
    for item in items:
        kind, numbers = item.get("type") or "", item.get("job_ids") or []
        if kind not in DEPENDENCIES:
            raise ValueError(f"dependency has the type {shown(kind)}; use one of {', '.join(DEPENDENCIES)}.")
        if (kind == "singleton") == bool(numbers):
            raise ValueError(
                f"dependency {kind} has {len(numbers)} job_ids; give the jobs that it waits for, and none to singleton."
            )
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"dependency {kind} names job {shown(number)}; give the numbers that sbatch printed.")
        texts.append(":".join([kind, *map(str, numbers)]))
    return ",".join(texts)


def _one_line(option: str, value: str) -> str:
    if _CONTROL.search(value):
        raise ValueError(f"{option} is {shown(value)}; remove its line breaks and control characters.")
    return value


def _path(option: str, value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"{option} is {shown(value)}; give an absolute path on the host.")
    if len(value) > 4096:
        raise ValueError(f"{option} is {shown(value)}; a path has 4096 characters at most.")
    return _one_line(option, value)


def checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"name is {shown(name)}; use up to 64 letters, digits, '.', '_' and '-', a letter or digit first."
        )
    return name


def checked_environment(environment: Mapping[Any, Any]) -> dict[str, str]:
    """Variables of the job. Those of Slurm itself would change what sbatch does."""
    texts = {str(name): str(value) for name, value in environment.items()}
    for name, value in texts.items():
        if not _VARIABLE.fullmatch(name) or name.startswith(("SLURM_", "SBATCH_")):
            raise ValueError(f"environment has {shown(name)}; use names of variables, none of Slurm's own.")
        if "\x00" in value:
            raise ValueError(f"environment has a null character in {name}; remove it.")
    return texts


def checked_script(script: str, content: bytes) -> None:
    """What sbatch would refuse with less to go by."""
    if not content.startswith(b"#!"):
        raise ValueError(f"script {script} does not begin with #!; begin it with a line such as #!/usr/bin/env bash.")
    if b"\r\n" in content or b"\x00" in content:
        raise ValueError(f"script {script} has DOS line ends or null characters; write it with Unix line ends.")


def sbatch_arguments(options: Mapping[str, Any]) -> list[str]:
    """The module's options as sbatch's, in a fixed order, without dependency, comment, script and its arguments."""
    argv = [f"--job-name={checked_name(options['name'])}"]
    for option in ("partition", "account", "qos"):
        value = options.get(option)
        if value:
            parts = value.split(",") if option == "partition" else [value]
            if not all(_PLACE.fullmatch(part) for part in parts):
                raise ValueError(f"{option} is {shown(value)}; use a name that Slurm knows.")
            argv.append(f"--{option}={value}")
    if options.get("nodes"):
        argv.append(f"--nodes={checked_nodes(str(options['nodes']))}")
    tasks = options.get("ntasks_per_node")
    if tasks is not None:
        if not 1 <= tasks <= MOST_TASKS:
            raise ValueError(f"ntasks_per_node is {tasks}; use 1 to {MOST_TASKS}.")
        argv.append(f"--ntasks-per-node={tasks}")
    if options.get("exclusive"):
        argv.append("--exclusive")
    if options.get("time_limit"):
        limit_seconds(options["time_limit"])
        argv.append(f"--time={options['time_limit']}")
    if options.get("requeue") is not None:
        argv.append("--requeue" if options["requeue"] else "--no-requeue")
    if options.get("array"):
        argv.append(f"--array={checked_array(options['array'])}")
    if options.get("output"):
        argv.append(f"--output={_path('output', options['output'])}")
    if options.get("open_mode"):
        argv.append(f"--open-mode={options['open_mode']}")
    if options.get("chdir"):
        argv.append(f"--chdir={_path('chdir', options['chdir'])}")
    return argv


def command(options: Mapping[str, Any], digest: str) -> list[str]:
    """All that follows ``sbatch``: options, script, its arguments. Meant for exec, not for a shell."""
    argv = [f"--comment={COMMENT}{digest}", *sbatch_arguments(options)]
    dependency = dependency_text(options.get("dependency") or [])
    if dependency:
        # A job that can never start would lie in the queue for ever.
        argv += [f"--dependency={dependency}", "--kill-on-invalid-dep=yes"]
    script = _path("script", options["script"] or "")
    return [*argv, script, *(_one_line("args", item) for item in options.get("args") or [])]


def digest_of(options: Mapping[str, Any], content: bytes) -> str:
    """16 hexadecimal digits for what the job does. What it waits for, and where the script lies, is no part of it."""
    described = {
        "identity": options.get("identity") or "",
        "options": sbatch_arguments(options),
        "args": list(options.get("args") or []),
        "environment": checked_environment(options.get("environment") or {}),
        "script": sha256(content).hexdigest(),
    }
    return sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def digest_in(comment: str) -> str:
    """The digest in a job's comment, or in the line with which it was submitted; '' where there is none."""
    match = re.search(rf"(?:^|--comment=){COMMENT}([0-9a-f]{{16}})(?:\s|$)", comment)
    return match[1] if match else ""


def log_path(options: Mapping[str, Any], job_id: int) -> str:
    """The file to follow: ``log``, or ``output`` where its name needs nothing but the job's number and name."""
    if options.get("log"):
        return str(options["log"])
    output = options.get("output") or ""
    known = {"%%": "%", "%j": str(job_id), "%A": str(job_id), "%x": str(options["name"])}
    text = re.sub(r"%%|%[jAx]", lambda match: known[match[0]], output)
    return "" if re.search(r"%[^%]", re.sub(r"%%|%[jAx]", "", output)) else text


def to_submit(found: Mapping[str, Any] | None, resubmit: str) -> bool:
    """Whether to submit, after an identical job was ``found`` (with ``ended`` and ``succeeded``) or none (None).

    ``succeeded`` is None where nobody knows any more how the job ended; a ValueError says so, since hours of training
    are not to be done twice by mistake.
    """
    if found is None or resubmit == "always":
        return True
    if not found["ended"] or found["succeeded"] or resubmit == "never":
        return False
    if found["succeeded"] is None:
        raise ValueError(
            f"Slurm has forgotten job {found['job_id']} and nothing tells how it ended; look at its log, and use "
            "resubmit=always to submit it again."
        )
    return True
