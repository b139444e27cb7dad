# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A job's folder on this host: what is right is left alone, and what is missing or different is written.

The folders above it are made by root, for the user; what lies in the job's own is that user's work.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.commands import run
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import replace
from ansible_collections.trainium.cluster.plugins.module_utils._common.owned import as_user, make, user_id, why_not

PLAIN = 0o755
BLOCK = 1 << 20
# No file of a job is larger: a sparse one could be of any length.
LARGEST = 64 << 30
SECONDS = 120.0


def missing_packages(packages: Sequence[str]) -> bool:
    """Whether dpkg lacks one of these. Raises TrainiumError where it does not answer."""
    if not packages:
        return False
    reply = run(["dpkg-query", "--show", "--showformat=${db:Status-Status}\\n", "--", *packages], SECONDS)
    # A package that dpkg has never heard of is not an error here, it is installed next.
    if not reply.found or not reply.ended or reply.code not in (0, 1):
        raise TrainiumError(
            f"dpkg-query does not say which packages are installed ({reply.err.strip() or 'no answer'})"
        )
    return reply.out.split().count("installed") < len(packages)


def lacking(python: str, script: str, requirements: Sequence[str], user: int) -> list[str]:
    """What the script says of the requirements, a line for each that the environment does not have.

    Raises TrainiumError where it cannot be asked.
    """
    if not requirements:
        return []
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "cwd": "/", "timeout": SECONDS}
    if os.geteuid() == 0 and user:
        # Whoever may write into an environment would do so as root.
        with as_user(user):
            options.update(user=user, group=os.getegid(), extra_groups=os.getgroups())
    argv = [python, "-c", script, *requirements]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrainiumError(f"{python} cannot be asked for its packages ({error}); run nodes.yml first") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TrainiumError(f"{python} does not say which packages it has ({reason}); look at that environment")
    return [line for line in done.stdout.splitlines() if line.strip()]


class Files:
    """What was found and done in a job's folder; in check mode nothing is done."""

    def __init__(self, folder: str, check: bool) -> None:
        self.folder, self.check = Path(folder), check
        self.changed = False
        self.differences: list[dict[str, str]] = []

    def folders(self, paths: Sequence[str], user: int, variable: str) -> None:
        """As root: folders of all jobs, which go to the user. Raises TrainiumError."""
        for path in paths:
            try:
                self.changed = make(path, user, PLAIN, False, self.check) or self.changed
            except TrainiumError as error:
                raise TrainiumError(f"{variable}: {error}") from error
            except OSError as error:
                raise TrainiumError(f"{variable}: {why_not(path, error)}") from error

    def own_folder(self, path: Path) -> None:
        try:
            found = path.stat()
        except FileNotFoundError:
            self.changed = True
            if self.check:
                return
            path.mkdir(mode=PLAIN, parents=True, exist_ok=True)
            found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise TrainiumError(f"{path} is no folder; remove it")
        if found.st_uid not in (0, os.geteuid()):
            raise TrainiumError(f"{path} belongs to another user (uid {found.st_uid}); remove it")
        self._with_mode(path, found, PLAIN)

    def write(self, name: str, wanted: bytes, mode: int) -> None:
        """Have a file with that content. A link, or what is no file, is replaced."""
        path = self.folder / name
        found = _opened(path)
        content = None
        if found is not None:
            with os.fdopen(found, "rb") as stream:
                content, state = stream.read(len(wanted) + 1), os.fstat(stream.fileno())
        if content == wanted and _ours(state):
            self._with_mode(path, state, mode)
            return
        self.changed = True
        # Of what was longer the beginning will do.
        self.differences.append(_difference(str(path), content, wanted))
        if not self.check:
            replace(path, wanted, mode)

    def has(self, name: str, checksum: str, mode: int) -> bool:
        """Whether a file has that checksum, such as sha256:0a1b; its mode is mended."""
        path = self.folder / name
        found = _opened(path)
        if found is None:
            return False
        kind, _colon, wanted = checksum.rpartition(":")
        digest = hashlib.new(kind or "sha256")
        with os.fdopen(found, "rb") as stream:
            state = os.fstat(stream.fileno())
            if not _ours(state) or state.st_size > LARGEST:
                return False
            for block in iter(lambda: stream.read(BLOCK), b""):
                digest.update(block)
        if digest.hexdigest() != wanted.lower():
            return False
        self._with_mode(path, state, mode)
        return True

    def link(self, name: str, target: str) -> None:
        path = self.folder / name
        with suppress(OSError):
            if os.readlink(path) == target:
                return
        self.changed = True
        if self.check:
            return
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        temporary = path.with_name(f".{name}.new")
        with suppress(FileNotFoundError):
            temporary.unlink()
        temporary.symlink_to(target)
        temporary.replace(path)

    def _with_mode(self, path: Path, found: os.stat_result, mode: int) -> None:
        if stat.S_IMODE(found.st_mode) != mode:
            self.changed = True
            if not self.check:
                path.chmod(mode)


def _opened(path: Path) -> int | None:
    """A descriptor of a plain file; None for what is none, or what its user may not read."""
    try:
        found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    return None


def _ours(found: os.stat_result) -> bool:
    """Whether nobody else can write into the file: it is root's or this user's, and has no other name."""
    return found.st_uid in (0, os.geteuid()) and found.st_nlink == 1


def _has_record(path: Path) -> bool:
    """Whether a training has left its record, which scripts write: it may be anything, of any length."""
    found = _opened(path)
    if found is None:
        return False
    with os.fdopen(found, "rb") as stream:
        text = stream.read(BLOCK)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and bool(record)


def _difference(name: str, found: bytes | None, wanted: bytes) -> dict[str, str]:
    texts = {"before": (found or b"").decode("utf-8", "replace"), "after": wanted.decode("utf-8", "replace")}
    return {"before_header": name, "after_header": name, **texts}


def stage(options: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """``options``: the module's. Raises TrainiumError with one sentence, without its point."""
    user = user_id(options["owner"])
    packages = missing_packages(options["packages"])
    lacks = [] if check else lacking(options["python"], options["script"], options["requirements"], user)
    if lacks:
        environment = os.path.dirname(os.path.dirname(options["python"]))
        raise TrainiumError(f"{environment} lacks what the job requires, {', '.join(lacks)}; {options['advice']}")
    files = Files(options["folder"], check)
    files.folders(options["folders"], user, options["variable"])
    wanted = {name: text.encode("utf-8", "surrogateescape") for name, text in options["texts"].items()}
    wanted.update({name: base64.b64decode(text) for name, text in options["contents"].items()})
    modes = {name: int(mode, 8) for name, mode in options["modes"].items()}
    with as_user(user):
        try:
            below = {(files.folder / name).parent for name in [*wanted, *options["checksums"]]}
            for path in sorted({files.folder, *below}):
                files.own_folder(path)
            for name, content in wanted.items():
                files.write(name, content, modes.get(name, PLAIN))
            left = [
                name for name, sum_ in options["checksums"].items() if not files.has(name, sum_, modes.get(name, PLAIN))
            ]
            for name, target in options["links"].items():
                files.link(name, target)
            reported = bool(options["record"]) and _has_record(files.folder / options["record"])
        except OSError as error:
            raise TrainiumError(
                f"{error.filename or files.folder} cannot be written ({error.strerror}); look at its folder"
            ) from error
    return {
        "changed": files.changed,
        "diff": files.differences,
        "left": left,
        "packages_missing": packages,
        "reported": reported,
    }
