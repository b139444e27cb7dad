# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nodes need of this collection as one archive, the same bytes for the same files.

``ansible-galaxy collection build`` writes times and the order of the file system into its archive, so that every build
is another one. Nodes of a cluster compare a digest, and an unchanged collection must not look changed.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

# What of a collection a node can use; tests, documentation and tools stay at home.
FOLDERS = ("meta", "playbooks", "plugins", "roles")
_IGNORED = ("__pycache__",)
_IGNORED_ENDINGS = (".pyc", ".pyo", ".retry", ".swp", "~")


def wanted(path: str) -> bool:
    """Whether a file of the collection, by its path from the root with ``/``, belongs into the archive."""
    parts = path.split("/")
    hidden = any(part.startswith(".") or part in _IGNORED for part in parts)
    return len(parts) > 1 and parts[0] in FOLDERS and not hidden and not path.endswith(_IGNORED_ENDINGS)


def build(files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """The archive, a gzipped tar; ``files`` is path -> (content, whether it may be executed)."""
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            content, executable = files[name]
            # Without a time, an owner or anything else of the machine that packs it.
            member = tarfile.TarInfo(name)
            member.mode, member.size = 0o755 if executable else 0o644, len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(tarred.getvalue(), mtime=0)
