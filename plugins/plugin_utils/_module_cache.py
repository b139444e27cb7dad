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
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
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
KEPT = ("ansible_collections.", "ansible.modules.") if PACKED else ("ansible_collections.",)
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


def _members(path: Path) -> Iterable[str]:
    """What is packed in a file of Ansible's."""
    data = PACKED.load(str(path)).zip_data if PACKED else path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(data))) as archive:
        return archive.namelist()


def _is_ours(member: str) -> bool:
    namespace, *rest = member.split("/")
    if namespace == "ansible":
        return True
    return namespace == "ansible_collections" and (len(rest) < 3 or ".".join(rest[:2]) in COLLECTIONS)


def _private(folder: Path) -> bool:
    """Makes a folder; whether nobody else can write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


class ModuleCache:
    """The kept files of one state of the code, and the folder of this run in which Ansible looks for them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._state = folder, ""
        self._run = Path(str(constants.DEFAULT_LOCAL_TMP)) / "ansiballz_cache"

    def offer(self) -> int:
        """Show Ansible what is kept; how many modules that are. Raises OSError."""
        # A folder module_utils beside a playbook or in a role stands before that of Ansible.
        more = [path for path in module_utils_loader._get_paths(subdirs=False) if os.path.isdir(path)]
        if any(Path(path) != CORE / "module_utils" for path in more) or not _private(self._folder):
            return 0
        self._state = state()
        kept = self._folder / self._state
        if not kept.is_dir():
            return 0
        os.utime(kept)
        self._run.mkdir(exist_ok=True)
        names = [name for name in os.listdir(kept) if not name.startswith(".")]
        for name in names:
            (self._run / name).symlink_to(kept / name)
        return len(names)

    def keep(self) -> int:
        """Keep what this run packed, unless the code has changed meanwhile; how many modules. Raises OSError."""
        if not self._state or not self._run.is_dir():
            return 0
        packed = [
            path
            for path in self._run.iterdir()
            if path.name.startswith(KEPT)
            and not path.name.endswith((".lock", "-part"))
            and not path.is_symlink()
            and all(map(_is_ours, _members(path)))
        ]
        if not packed or state() != self._state:
            return 0
        kept = self._folder / self._state
        if not _private(kept):
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
        states = [(path.stat().st_mtime, path) for path in self._folder.iterdir() if path.is_dir()]
        for used, path in sorted(states, reverse=True)[STATES:]:
            if used < time.time() - RECENT:
                shutil.rmtree(path, ignore_errors=True)
