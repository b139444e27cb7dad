# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A collection's archive as ansible-galaxy installs it, the same bytes for the same files.

``ansible-galaxy collection build`` writes times and the order of the file system into its archive, so that every build
is another one. Nodes of a cluster compare a digest, and an unchanged collection must not look changed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError

# What of a collection a node can use; tests, documentation and tools stay at home.
FOLDERS = ("meta", "playbooks", "plugins", "roles")
_IGNORED = ("__pycache__",)
_IGNORED_ENDINGS = (".pyc", ".pyo", ".retry", ".swp", "~")
_FORMAT = 1


def wanted(path: str) -> bool:
    """Whether a file of the collection, by its path from the root with ``/``, belongs into the archive."""
    parts = path.split("/")
    hidden = any(part.startswith(".") or part in _IGNORED for part in parts)
    return len(parts) > 1 and parts[0] in FOLDERS and not hidden and not path.endswith(_IGNORED_ENDINGS)


def information(galaxy: Mapping[str, Any] | None, manifest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Name and version of the collection, from galaxy.yml of a checkout or MANIFEST.json of an installed one.

    Raises:
        TrainiumError: neither says who the collection is.
    """
    found = dict((manifest or {}).get("collection_info") or galaxy or {})
    if not all(isinstance(found.get(key), str) and found[key] for key in ("namespace", "name", "version")):
        raise TrainiumError("neither galaxy.yml nor MANIFEST.json names the collection and its version")
    return {
        "namespace": found["namespace"],
        "name": found["name"],
        "version": found["version"],
        "authors": list(found.get("authors") or []),
        "readme": "README.md",
        "tags": list(found.get("tags") or []),
        "description": found.get("description"),
        "license": [],
        "license_file": None,
        # The node installs nothing beside it: what runs there needs no other collection.
        "dependencies": {},
        "repository": found.get("repository"),
        "documentation": None,
        "homepage": None,
        "issues": None,
    }


def _entry(name: str, kind: str, content: bytes | None) -> dict[str, Any]:
    digest = None if content is None else hashlib.sha256(content).hexdigest()
    chksum_type = None if content is None else "sha256"
    return {"name": name, "ftype": kind, "chksum_type": chksum_type, "chksum_sha256": digest, "format": _FORMAT}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()


def _folders(names: Iterable[str]) -> list[str]:
    """Every folder above the files, each once, parents first."""
    found = {name.rpartition("/")[0] for name in names}
    for name in list(found):
        while name:
            found.add(name)
            name = name.rpartition("/")[0]
    return sorted(found - {""})


def _member(name: str, mode: int, size: int = 0) -> tarfile.TarInfo:
    """A member without a time, an owner or anything else of the machine that packs it."""
    member = tarfile.TarInfo(name)
    member.mode, member.size, member.mtime, member.uid, member.gid = mode, size, 0, 0, 0
    return member


def build(info: Mapping[str, Any], files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """The archive: a gzipped tar with MANIFEST.json, FILES.json and the files.

    ``info`` is that of :func:`information`; ``files`` is path -> (content, whether it may be executed).
    """
    files = {"README.md": (f"# {info['namespace']}.{info['name']}\n".encode(), False), **files}
    folders = _folders(files)
    listed = [_entry(".", "dir", None)]
    listed += [_entry(name, "dir", None) for name in folders]
    listed += [_entry(name, "file", files[name][0]) for name in sorted(files)]
    listing = _json({"files": listed, "format": _FORMAT})
    manifest = _json(
        {
            "collection_info": dict(info),
            "file_manifest_file": _entry("FILES.json", "file", listing),
            "format": _FORMAT,
        }
    )
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in (("MANIFEST.json", manifest), ("FILES.json", listing)):
            archive.addfile(_member(name, 0o644, len(content)), io.BytesIO(content))
        for name in folders:
            folder = _member(name, 0o755)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for name in sorted(files):
            content, executable = files[name]
            archive.addfile(_member(name, 0o755 if executable else 0o644, len(content)), io.BytesIO(content))
    return gzip.compress(tarred.getvalue(), mtime=0)
