# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the definition of a training job can be run, or the one sentence that says what to write instead. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import PurePosixPath
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import is_unlimited, seconds_of

# What is in a job's folder beside its own files.
RESERVED = frozenset(
    {
        "environment.json",
        "job.sh",
        "restart.sh",
        "tensorboard",
        "compile.exit",
        "train.exit",
        "compile.batch",
        "train.batch",
        "compile.log",
        "train.log",
        "compile.json",
        "train.json",
        "report.json",
    }
)
SHOWN = 60  # characters of a value that a sentence quotes
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+~:-]+)?")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][^\x00-\x1f\x7f]*")
_CHECKSUM = re.compile(r"sha256:[0-9a-fA-F]{64}")
_PARTITIONS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*(,[A-Za-z0-9][A-Za-z0-9_.+-]*)*")
# What datetime reads, which takes any sign between date and time.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,+-]+Z?)?")
_URL = re.compile(r"(https?|s3)://[^\s\"'\\]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Slurm and systemd read more than the sign itself into these.
_TAKEN_SIGNS = re.compile(r"[\"'\\%$]")
# Slurm sets these for the job, and the job script sets the others after those of the definition; the one that is left
# out is read by the script of the preset.
_TAKEN = re.compile(r"SLURM_.*|TRAINIUM_(?!TORCH_COMPILE$).*|BASH_ENV|ENV|IFS|SHELLOPTS|BASHOPTS|PS4|LD_PRELOAD")


def shown(value: Any) -> str:
    """A value as a sentence quotes it: on one line and not long."""
    text = value if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    text = "".join(character if character.isprintable() else "?" for character in text)
    return f"'{text if len(text) <= SHOWN else text[:SHOWN] + '...'}'"


class RefusedError(ValueError):
    """A definition that cannot be run; the message is the sentence."""

    def __init__(self, key: str, value: Any, advice: str) -> None:
        super().__init__(f"{key} of the training job is {shown(value)}; {advice}.")


def limit_seconds(value: Any) -> int:
    """Seconds of a time limit as Slurm takes it; 0 for UNLIMITED. Raises ValueError for anything else.

    ``90`` are minutes, ``1:30`` minutes and seconds, ``1:30:00`` hours first, ``2-0`` days and hours.
    """
    text = str(value)
    if is_unlimited(text):
        return 0
    seconds = seconds_of(text) if len(text) < SHOWN else None
    if seconds is None:
        raise ValueError(text)
    return seconds


def end_epoch(value: Any) -> int:
    """Seconds since 1970 of an ISO time, which is UTC where it names no zone; 0 for ''. Raises ValueError."""
    if value in ("", None):
        return 0
    if not isinstance(value, datetime) and not _TIME.fullmatch(str(value)):
        raise ValueError(str(value))
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return int(moment.timestamp())


def is_text(value: Any) -> bool:
    """Whether a value is text that a program can be given: no NUL, and nothing that UTF-8 cannot write."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check(definition: Mapping[str, Any]) -> None:
    """Raise RefusedError for the first thing that is wrong; ``definition`` has all keys."""
    _check_names(definition)
    _check_files(definition)
    _check_fetched(definition)
    _check_arguments(definition)
    _check_numbers(definition)
    _check_times(definition)
    _check_cache(definition)
    _check_compile(_mapping(definition, "compile"))


def check_path(what: str, value: Any) -> None:
    """A folder that Slurm, systemd and scripts are given must be one that none of them takes for something else."""
    if not is_text(value) or not value.startswith("/") or _CONTROL.search(value) or _TAKEN_SIGNS.search(value):
        raise RefusedError(what, value, "use an absolute path without line breaks and the signs \" ' \\ % $")


def check_partition(value: Any) -> None:
    """The name of a partition, or several; it comes into a script, where more than a name would be run."""
    if value != "" and (not isinstance(value, str) or not _PARTITIONS.fullmatch(value)):
        raise RefusedError("training_job_partition", value, "use a partition's name, or several with commas between")


def arguments(values: Mapping[str, Any], key: str = "args") -> list[str]:
    """Arguments as argparse takes them: true is the name alone, false nothing, a list several values."""
    words: list[str] = []
    for name, value in values.items():
        if not isinstance(name, str) or not _ARGUMENT.fullmatch(name):
            raise RefusedError(
                f"an argument's name in {key}", name, "use letters, digits, dots, underscores and hyphens"
            )
        if value is False:
            continue
        words.append(f"--{name}")
        if value is not True:
            words.extend(_words(f"{key}.{name}", value))
    return words


def _words(key: str, value: Any) -> list[str]:
    words = [str(one) if _is_number(one) else one for one in (value if isinstance(value, list) else [value])]
    for word in words:
        if not is_text(word):
            raise RefusedError(key, value, "use text, a number, true, false or a list of texts and numbers")
    return words


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(definition: Mapping[str, Any], key: str, least: int, name: str = "") -> None:
    value = definition[key]
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,12}", str(value)) or int(value) < least:
        raise RefusedError(name or key, value, f"use a whole number of {least} or more")


def _mapping(definition: Mapping[str, Any], key: str, name: str = "") -> Mapping[str, Any]:
    if not isinstance(definition[key], Mapping):
        raise RefusedError(name or key, definition[key], "use a dictionary")
    return definition[key]


def _flag(definition: Mapping[str, Any], key: str, name: str = "") -> None:
    if not isinstance(definition[key], bool):
        raise RefusedError(name or key, definition[key], "use true or false")


def _list(definition: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(definition[key], list):
        raise RefusedError(key, definition[key], "use a list")
    return definition[key]


def _file_name(key: str, path: Any) -> str:
    """The name in the job's folder of one of its files."""
    name = PurePosixPath(path).name if is_text(path) and not _CONTROL.search(path) else ""
    if not name or name == ".." or len(name.encode()) > 200:
        raise RefusedError(key, path, "name a file, without line breaks and with at most 200 characters")
    if name in RESERVED or name.startswith("-"):
        raise RefusedError(key, path, "use another name, since the job has such a file or tools take it for an option")
    return name


def _check_names(definition: Mapping[str, Any]) -> None:
    name = definition["name"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RefusedError("name", name, "use at most 64 letters, digits, dots, underscores and hyphens")
    for variable, value in _mapping(definition, "env").items():
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise RefusedError("env", variable, "use names of environment variables")
        if _TAKEN.fullmatch(variable):
            raise RefusedError(
                "env", variable, "use another variable, since Slurm, bash or the job script sets this one"
            )
        if not is_text(value) and not _is_number(value):
            # The value may be a secret.
            raise RefusedError(f"env.{variable}", type(value).__name__, "use text or a number")
    for variable, path in _mapping(definition, "secrets").items():
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable) or _TAKEN.fullmatch(variable):
            raise RefusedError("secrets", variable, "use names of environment variables that the job does not set")
        if not is_text(path) or not path:
            advice = "name the file here that holds it, as ~/.cache/huggingface/token for a token of Hugging Face"
            raise RefusedError(f"secrets.{variable}", path if path == "" else type(path).__name__, advice)
    for package in _list(definition, "packages"):
        if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
            raise RefusedError("packages", package, "use names of packages of the distribution")
    for requirement in _list(definition, "requirements"):
        if not is_text(requirement) or not _REQUIREMENT.fullmatch(requirement):
            raise RefusedError(
                "requirements", requirement, "use requirements as pip takes them, for example h5py==3.11.0"
            )


def _check_files(definition: Mapping[str, Any]) -> None:
    names = [_file_name("files", path) for path in _list(definition, "files")]
    fetched = [_target(one) for one in _list(definition, "fetch")]
    for name in sorted(set(names)):
        if names.count(name) > 1 or name in fetched:
            raise RefusedError("files", name, "give each file of the job another name, since all come into one folder")
    prepare = _mapping(definition, "prepare")
    for key, script in (("script", definition["script"]), ("prepare.script", prepare.get("script"))):
        if key == "prepare.script" and not prepare:
            continue
        if not isinstance(script, str) or script not in {*names, *fetched}:
            raise RefusedError(key, script, "name one of its files, or the dest of one that is fetched")


def _target(fetched: Any) -> str:
    """Where in the job's folder a fetched file comes to lie."""
    dest = fetched.get("dest") if isinstance(fetched, Mapping) else None
    if not is_text(dest) or not dest:
        raise RefusedError("fetch", fetched, "give each file a url, a checksum and a dest")
    parts = PurePosixPath(dest).parts
    if dest.startswith("/") or ".." in parts or str(PurePosixPath(dest)) != dest:
        raise RefusedError("fetch.dest", dest, "use a path in the job's folder")
    for part in parts:
        _file_name("fetch.dest", part)
    return dest


def _check_fetched(definition: Mapping[str, Any]) -> None:
    for fetched in definition["fetch"]:
        url, checksum = fetched.get("url"), fetched.get("checksum")
        if not is_text(url) or not _URL.fullmatch(url) or url.startswith("s3:"):
            raise RefusedError("fetch.url", url, "use an http or https address")
        if not isinstance(checksum, str) or not _CHECKSUM.fullmatch(checksum):
            raise RefusedError("fetch.checksum", checksum, "use sha256: and the 64 digits of the file")
    targets = [fetched["dest"] for fetched in definition["fetch"]]
    if len(set(targets)) < len(targets):
        raise RefusedError("fetch.dest", targets, "give each fetched file another one")


def _check_arguments(definition: Mapping[str, Any]) -> None:
    arguments(_mapping(definition, "args"))
    arguments(_mapping({"args": {}, **definition["prepare"]}, "args", "prepare.args"), "prepare.args")


def _check_numbers(definition: Mapping[str, Any]) -> None:
    for key, least in (("steps", 0), ("nodes", 0), ("min_nodes", 0), ("stop_before", 0), ("reserved_port", 0)):
        _whole(definition, key, least)
    if int(definition["reserved_port"]) > 65535:
        raise RefusedError("reserved_port", definition["reserved_port"], "use a TCP port, or 0 for none")
    if definition["processes_per_node"] != "auto":
        processes = definition["processes_per_node"]
        if isinstance(processes, bool) or not re.fullmatch(r"[1-9][0-9]{0,5}", str(processes)):
            raise RefusedError("processes_per_node", processes, "use auto or a number of 1 or more")
    checkpoint = _mapping(definition, "checkpoint")
    _whole(checkpoint, "steps", 0, "checkpoint.steps")
    _whole(checkpoint, "keep", 1, "checkpoint.keep")
    _flag(checkpoint, "resume", "checkpoint.resume")
    _flag(checkpoint, "shared", "checkpoint.shared")
    _flag(definition, "requeue")
    _flag(definition, "driver_reload")


def _check_times(definition: Mapping[str, Any]) -> None:
    if definition["stopped_by"] not in ("script", "job"):
        raise RefusedError("stopped_by", definition["stopped_by"], "use script or job")
    seconds = _limit("time_limit", definition["time_limit"])
    if seconds and seconds <= int(definition["stop_before"]):
        advice = f"use less than the time limit, which is {seconds} s, or the job stops before it has begun"
        raise RefusedError("stop_before", definition["stop_before"], advice)
    try:
        end_epoch(definition["ends_at"])
    except (ValueError, OverflowError):
        advice = "use a time as 2030-01-31T11:00:00Z, or nothing where the nodes stay"
        raise RefusedError("ends_at", definition["ends_at"], advice) from None


def _limit(key: str, value: Any) -> int:
    try:
        seconds = limit_seconds(value)
    except ValueError:
        seconds = -1
    if seconds < 0 or (seconds == 0 and str(value).isascii() and not str(value).isalpha()):
        raise RefusedError(key, value, "use minutes, hours:minutes:seconds or days-hours")
    return seconds


def _check_cache(definition: Mapping[str, Any]) -> None:
    cache = _mapping(definition, "cache")
    directory = cache["directory"]
    if isinstance(directory, str) and directory.startswith("s3://"):
        if not _URL.fullmatch(directory):
            raise RefusedError("cache.directory", directory, "use s3://bucket/prefix or an absolute path")
    else:
        check_path("cache.directory", directory)
        # What is old is removed there.
        if len(PurePosixPath(directory).parts) < 3 or ".." in PurePosixPath(directory).parts:
            raise RefusedError("cache.directory", directory, "use a folder of its own, as /var/tmp/my-compile-cache")
    _whole(cache, "keep_days", 0, "cache.keep_days")
    _flag(cache, "clear_locks", "cache.clear_locks")


def _check_compile(compiling: Mapping[str, Any]) -> None:
    _flag(compiling, "enabled", "compile.enabled")
    _whole(compiling, "steps", 1, "compile.steps")
    command = compiling["command"]
    if not isinstance(command, list) or not command or not all(is_text(word) and word for word in command):
        raise RefusedError("compile.command", command, "use a list of the command and its arguments")
    arguments(_mapping(compiling, "args", "compile.args"), "compile.args")
    name = compiling["steps_argument"]
    if name != "" and (not isinstance(name, str) or not _ARGUMENT.fullmatch(name)):
        raise RefusedError("compile.steps_argument", name, "name the argument that limits the steps, or nothing")
    success = compiling["success"]
    try:
        if not is_text(success) or _CONTROL.search(success):
            raise ValueError(success)
        re.compile(success)
    except (ValueError, re.error):
        raise RefusedError("compile.success", success, "use a regular expression on one line") from None
    _limit("compile.time_limit", compiling["time_limit"])
