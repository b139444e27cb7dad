# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules as Ansible sends them, kept from one run for the next. Private.

For each module that a run needs first, Ansible reads its source and that of everything it imports, and packs both into
a file of a folder that ends with the run. That is a fifth of a second a module, much of a run with nothing to do.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import ansible
from ansible import constants
from ansible.executor import module_common
from ansible.plugins.loader import module_utils_loader
from ansible.release import __version__

# Whose code may be in what is kept: of these every file is looked at before.
COLLECTIONS = ("trainium.cluster", "amazon.aws", "kubernetes.core")
CORE = Path(ansible.__file__).parent
# Since ansible-core 2.19 a packed module is an object with more beside it. Before, one from a folder ``library`` has
# the name that Ansible's own would have, so that those are not kept.
PACKED = getattr(module_common, "_CachedModule", None)
KEPT = ("ansible_collections.",) if PACKED is None else ("ansible_collections.", "ansible.modules.")
# What Ansible writes where a package has no file of its own.
PACKAGE = re.compile(
    rb"from pkgutil import extend_path\n__path__ ?= ?extend_path\(__path__, ?__name__\)\n"
    rb"(__version__ ?= ?\"[\w.]+\"\n__author__ ?= ?\"[\w., ]+\"\n)?"
)
# How the folder of a state is called.
STATE = re.compile(r"[0-9a-f]{32}")
# Folders of earlier states of the code: so many are kept, and those that were used in so many seconds.
STATES, RECENT = 6, 3600


def _files(root: str) -> Iterator[str]:
    """A line for each file below a folder, by which a changed one is known."""
    with os.scandir(root) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                seen = entry.stat()
                yield f"{entry.path} {seen.st_ino} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns}\n"


def _collection(name: str) -> Path | None:
    """The folder of a collection, None where it is not installed."""
    with suppress(ModuleNotFoundError):
        spec = find_spec(f"ansible_collections.{name}")
        if spec and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
    return None


def state() -> str:
    """A digest of all code that may be in what is kept, by names, sizes and times of files."""
    digest = hashlib.sha256(f"{__version__} {sys.version} {CORE}\n".encode())
    roots = [CORE / "modules", CORE / "module_utils"]
    for name in COLLECTIONS:
        folder = _collection(name)
        digest.update(f"{name} {folder}\n".encode())
        if folder:
            # The last redirects imports.
            roots += [folder / "plugins/modules", folder / "plugins/module_utils", folder / "meta"]
    for root in roots:
        if root.is_dir():
            for line in _files(str(root)):
                digest.update(line.encode())
    return digest.hexdigest()[:32]


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """What is packed in a file of Ansible's: names and contents."""
    data = path.read_bytes() if PACKED is None else PACKED.load(str(path)).zip_data
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(data))) as archive:
        yield from ((name, archive.read(name)) for name in archive.namelist())


def _is_ours(member: str, content: bytes) -> bool:
    """Whether this is what a file holds that `state` has looked at, and not that of a role or of another copy."""
    namespace, *rest = member.split("/")
    source = None
    if namespace == "ansible":
        source = CORE.joinpath(*rest)
    elif namespace == "ansible_collections" and ".".join(rest[:2]) in COLLECTIONS:
        folder = _collection(".".join(rest[:2]))
        source = folder.joinpath(*rest[2:]) if folder else None
    if member.endswith("/__init__.py") and (content == b"" or PACKAGE.fullmatch(content)):
        return True
    return source is not None and source.is_file() and source.read_bytes() == content


def _is_private(path: Path) -> bool:
    """Whether this is a folder or a file itself, and nobody else can write to it."""
    found = path.lstat()
    real = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return real and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _private(folder: Path) -> bool:
    """Makes a folder; whether nobody else can write to it."""
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    # As root in the home of somebody else, as after sudo, nothing is made.
    if missing and missing[-1].parent.stat().st_uid != os.geteuid():
        return False
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    return folder.is_dir() and _is_private(folder)


class ModuleCache:
    """The kept files of one state of the code, and the folder of this run in which Ansible looks for them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._state = folder, ""
        self._run = Path(str(constants.DEFAULT_LOCAL_TMP)) / "ansiballz_cache"
        # What an earlier playbook of the same run has packed, from whatever code.
        self._before: set[str] = set()

    @staticmethod
    def _overridden() -> bool:
        """Whether a folder module_utils, beside a playbook or in a role, stands before that of Ansible."""
        folders = [path for path in module_utils_loader._get_paths(subdirs=False) if os.path.isdir(path)]
        return any(Path(path) != CORE / "module_utils" for path in folders)

    def offer(self) -> int:
        """Show Ansible what is kept; how many modules that are. Raises OSError."""
        if self._overridden() or not _private(self._folder):
            return 0
        self._state = state()
        self._run.mkdir(exist_ok=True)
        self._before = set(os.listdir(self._run))
        kept = self._folder / self._state
        if not kept.is_dir() or not _is_private(kept):
            return 0
        os.utime(kept)
        files = [path for path in kept.iterdir() if not path.name.startswith(".") and _is_private(path)]
        for path in files:
            if path.name not in self._before:
                (self._run / path.name).symlink_to(path)
        return len(files)

    def keep(self) -> int:
        """Keep what this run packed, unless the code has changed meanwhile; how many modules. Raises OSError."""
        if not self._state or self._overridden() or not self._run.is_dir():
            return 0
        packed = [
            path
            for path in self._run.iterdir()
            if path.name.startswith(KEPT)
            and path.name not in self._before
            and not path.name.endswith((".lock", "-part"))
            and not path.is_symlink()
            and all(_is_ours(*member) for member in _members(path))
        ]
        kept = self._folder / self._state
        if not packed or state() != self._state or not _private(kept):
            return 0
        for path in packed:
            with tempfile.NamedTemporaryFile(prefix=".", dir=kept, delete=False) as part:
                try:
                    part.write(path.read_bytes())
                    part.close()
                    os.replace(part.name, kept / path.name)
                except BaseException:
                    os.unlink(part.name)
                    raise
        self._forget()
        return len(packed)

    def _forget(self) -> None:
        """Remove earlier states; whoever still uses one finds nothing there, and packs anew."""
        own = [path for path in self._folder.iterdir() if STATE.fullmatch(path.name) and not path.is_symlink()]
        for path in sorted(own, key=lambda one: one.stat().st_mtime, reverse=True)[STATES:]:
            if path.stat().st_mtime < time.time() - RECENT:
                shutil.rmtree(path, ignore_errors=True)
