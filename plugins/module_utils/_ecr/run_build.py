# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Build an image and push it by podman, buildah or docker, whichever is there.

The password goes to the program's standard input and, from there, into a file of a folder that is deleted at the end,
also where we are told to end, and by the next run where we were killed: it is in no log, no list of arguments, and not
among what the user has logged in to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ansible_collections.trainium.cluster.plugins.module_utils._common import commands
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.progress import REPEAT_SECONDS, Progress
from ansible_collections.trainium.cluster.plugins.module_utils._common.time_limits import duration
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_context as context

PROGRAMS = ("podman", "buildah", "docker")
# Where a base may lie that only a login lets in, by a password of its region; in all partitions, and of both stacks.
_ECR = re.compile(
    r"[0-9]{12}\.dkr[.-]ecr(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.(?:com(?:\.cn)?|eu)|on\.aws"
    r"|on\.amazonwebservices\.(?:com\.cn|eu)|c2s\.ic\.gov|sc2s\.sgov\.gov)"
)
_FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*([^\s/]+)/", re.IGNORECASE | re.MULTILINE)
_LOGIN_SECONDS = 120.0
_KEPT_LINES = 40
_FOLDER = "trainium-image-"
# What passes: limits of public registries, and trouble on the way.
_PASSES = re.compile(
    r"toomanyrequests|rate exceeded|too many requests|i/o timeout|TLS handshake timeout|connection reset by peer"
    r"|unexpected EOF|\b50[0234] (Internal|Bad|Service|Gateway)",
    re.IGNORECASE,
)
# Of docker's own settings: logins are not needed, and helpers would keep ours for later.
_LOGINS = ("auths", "credsStore", "credHelpers")


class Job(NamedTuple):
    """``image`` is the whole name; ``digests`` are those of the contents, by their names."""

    image: str
    dockerfile: str
    contents: Sequence[context.Content]
    digests: dict[str, str]
    platform: str
    options: Sequence[str]
    timeout: float


def chosen(builder: str) -> str:
    """The program to build with. Raises TrainiumError where there is none."""
    for name in PROGRAMS if builder == "auto" else (builder,):
        if commands.find(name):
            return name
    wanted = "none of podman, buildah and docker" if builder == "auto" else f"no {builder}"
    raise TrainiumError(
        f"there is {wanted} on this machine to build the image with; install one of podman, buildah and docker, or "
        "name an image that is there as image of the training"
    )


@contextmanager
def _telling(progress: Progress, what: str, done: int) -> Iterator[None]:
    """Say again and again that a step goes on."""
    stopped = threading.Event()

    def tell() -> None:
        passed = 0.0
        while True:
            note = f"since {duration(passed)}" if passed else ""
            progress.report("steps of the image done", done, 3, [what], note)
            if stopped.wait(REPEAT_SECONDS):
                return
            passed += REPEAT_SECONDS

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _with_us() -> list[str]:
    """What a program is begun with, so that it ends with us even if we are killed.

    util-linux knows the option since 2.33, and BusyBox does not.
    """
    words = [commands.find("setpriv") or "", "--pdeathsig", "TERM", "--"]
    try:
        known = words[0] and commands.execute([*words, "true"], _LOGIN_SECONDS, os.environ).code == 0
    except OSError:
        return []
    return words if known else []


class Builder:
    """One of the programs, with a folder of its own for logins and what is built."""

    def __init__(self, program: str, folder: str, logins: str, progress: Progress) -> None:
        self.program, self._folder, self._logins, self._progress = program, folder, logins, progress
        self._auth: list[str] = ["--authfile", os.path.join(self._logins, "auth.json")]
        self._with_us = _with_us()
        if program == "docker":
            self._auth = []
            self._settings()

    def _settings(self) -> None:
        """Docker has one folder for logins and for all else, of which it is to keep the latter."""
        own = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")
        kept: dict[str, Any] = {}
        with suppress(OSError, ValueError), open(os.path.join(own, "config.json"), encoding="utf-8") as stream:
            kept = {key: value for key, value in json.load(stream).items() if key not in _LOGINS}
        with open(os.path.join(self._logins, "config.json"), "w", encoding="utf-8") as stream:
            json.dump(kept, stream)
        for name in ("cli-plugins", "contexts", "buildx"):
            if os.path.isdir(os.path.join(own, name)):
                os.symlink(os.path.join(own, name), os.path.join(self._logins, name))

    def _run(self, what: str, argv: Sequence[str], timeout: float, written: str | None = None) -> str:
        path = commands.find(self.program) or self.program
        settings = ["--config", self._logins] if self.program == "docker" else []
        # With docker's attestations each push would be three images, of which the lifecycle policy counts each.
        environment = {**os.environ, "LC_ALL": "C", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
        try:
            reply = commands.execute([*self._with_us, path, *settings, *argv], timeout, environment, written=written)
        except OSError as error:
            raise TrainiumError(f"{self.program} cannot be run ({error.strerror}); install it anew") from error
        if reply.ended and reply.code == 0:
            return reply.out
        lines = [line.rstrip() for line in f"{reply.out}\n{reply.err}".splitlines() if line.strip()]
        reason = lines[-1].strip().rstrip(".") if lines else "it says nothing"
        if not reply.ended:
            reason = f"it is not done after {timeout:g} s"
        raise TrainiumError(
            f"{self.program} could not {what}: {reason}; see log, or run it again with -v", log=lines[-_KEPT_LINES:]
        )

    def login(self, host: str, password: str) -> None:
        argv = ["login", *self._auth, "--username", "AWS", "--password-stdin", host]
        try:
            self._run(f"log in to {host}", argv, _LOGIN_SECONDS, written=password)
        except TrainiumError as error:
            error.details["step"] = "login"
            raise

    def build(self, job: Job) -> None:
        folder = os.path.join(self._folder, "context")
        file = os.path.join(self._folder, "Dockerfile")
        os.mkdir(folder)
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(job.dockerfile)
        context.copy(job.contents, job.digests, folder)
        # Of the two formats the one that every Dockerfile can be built into.
        kind = [] if self.program == "docker" else ["--format", "docker"]
        verb = "bud" if self.program == "buildah" else "build"
        argv = [verb, *self._auth, *kind, "--platform", job.platform, *job.options, "--file", file]
        with _telling(self._progress, "build", 1):
            try:
                self._run("build the image", [*argv, "--tag", job.image, folder], job.timeout)
            except TrainiumError as error:
                if _PASSES.search("\n".join(error.details.get("log", [])[-5:])):
                    error.details["step"] = "pull"
                raise

    def push(self, job: Job) -> str:
        """Push it, and say the digest that it has in the registry by the program."""
        kept = os.path.join(self._folder, "digest")
        written = [] if self.program == "docker" else ["--digestfile", kept]
        with _telling(self._progress, "push", 2):
            self._run("push the image", ["push", *self._auth, *written, job.image], job.timeout)
        if self.program == "docker":
            asked = ["image", "inspect", "--format", "{{json .RepoDigests}}", job.image]
            told = self._run("tell the digest of the image", asked, _LOGIN_SECONDS)
            repository = job.image.rpartition(":")[0]
            return next(iter(re.findall(rf"\"{re.escape(repository)}@(sha256:[0-9a-f]{{64}})\"", told)), "")
        with suppress(OSError), open(kept, encoding="utf-8") as stream:
            return stream.read().strip()
        return ""


def make(job: Job, program: str, password: Callable[[str], str], progress: Progress) -> str:
    """Log in, build and push, and give the digest; ``password`` is that of a region, '' for ours.

    Raises TrainiumError.
    """
    host = job.image.partition("/")[0]
    regions = {name: found[1] for name in _FROM.findall(job.dockerfile) if (found := _ECR.fullmatch(name))}
    regions[host] = ""
    with _ending(), _folder() as folder, _folder(os.environ.get("XDG_RUNTIME_DIR")) as logins:
        builder = Builder(program, folder, logins, progress)
        for name, region in sorted(regions.items()):
            builder.login(name, password(region))
        builder.build(job)
        digest = builder.push(job)
    progress.report("steps of the image done", 3, 3)
    return digest


@contextmanager
def _ending() -> Iterator[None]:
    """Let SIGTERM end us as an exception does, so that folders go and programs end."""

    def end(number: int, _frame: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _folder(above: str | None = None) -> Iterator[str]:
    """A folder that goes at the end, and with it those of runs that were killed; ``above`` is one in memory, if any."""
    above = above if above and os.access(above, os.W_OK) else tempfile.gettempdir()
    for name in os.listdir(above):
        pid = name[len(_FOLDER) :].partition("-")[0]
        path = os.path.join(above, name)
        if not name.startswith(_FOLDER) or not re.fullmatch("[0-9]{1,9}", pid):
            continue
        # Another run may remove the same one.
        with suppress(FileNotFoundError):
            if os.lstat(path).st_uid == os.getuid() and not _lives(int(pid)):
                shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-", dir=above) as folder:
        yield folder


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
