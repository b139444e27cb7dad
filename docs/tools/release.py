"""Builds the archive of a commit, the same bytes each time; signs it; compares another archive with the commit.

Python's standard library, git and gpg are all that it needs, so that nothing from a package index has a part in what is
released, or runs where a key or a token is. ``make publish-check`` compares with what ansible-galaxy builds.
"""

from __future__ import annotations

import argparse
import fnmatch
import gzip
import hashlib
import io
import json
import os
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MANIFEST, FILES = "MANIFEST.json", "FILES.json"
# What ansible-galaxy itself leaves away.
NEVER = (MANIFEST, FILES, "galaxy.yml", "galaxy.yaml", ".git", "*.pyc", "*.retry", "tests/output")
# What a manifest says of the collection, in this order.
TOLD = (
    *("namespace", "name", "version", "authors", "readme", "tags", "description", "license", "license_file"),
    *("dependencies", "repository", "documentation", "homepage", "issues"),
)
EMPTY: dict[str, Any] = {"authors": [], "tags": [], "license": [], "dependencies": {}}
PLAIN, PROGRAM, LINK = "100644", "100755", "120000"


class File(NamedTuple):
    """As git has it: a link's data are where it leads."""

    data: bytes
    mode: str


Content = dict[str, File]


class ReleaseError(Exception):
    """What is wrong, in one sentence."""


def run(*command: str | Path, given: str = "") -> bytes:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, input=given.encode(), stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(str(word) for word in command[:3])} ended with {done.returncode}")
    return done.stdout


# Build


def build(output: Path, commit: str) -> Path:
    """The archive of the commit: what is not committed is not in it."""
    output.mkdir(parents=True, exist_ok=True)
    said = card(run("git", "show", f"{commit}:galaxy.yml").decode())
    archive = output / f"{said['namespace']}-{said['name']}-{said['version']}.tar.gz"
    archive.write_bytes(packed(of_commit(commit), int(run("git", "log", "-1", "--format=%ct", commit))))
    return archive


def of_commit(commit: str) -> Content:
    """What an archive of the commit holds."""
    said = card(run("git", "show", f"{commit}:galaxy.yml").decode())
    patterns = [*(said.get("build_ignore") or []), *NEVER]
    lines = run("git", "ls-tree", "-r", "-z", commit).decode().split("\0")
    listed = [line.partition("\t") for line in lines if line]
    # Mode, kind and id of each.
    heads = {name: head.split() for head, _tab, name in listed if not ignored(name, patterns)}
    files = dict(zip(heads, blobs(heads.values())))
    parents = {str(parent) for _head, _tab, name in listed for parent in Path(name).parents} - {"."}
    folders = {name for name in parents if not ignored(name, patterns)}
    entries = [{"name": ".", "ftype": "dir", "chksum_type": None, "chksum_sha256": None, "format": 1}]
    for name in sorted(folders | set(files)):
        digest = None if name in folders else hashlib.sha256(followed(files, name)).hexdigest()
        kind = ("dir", None) if name in folders else ("file", "sha256")
        entries.append({"name": name, "ftype": kind[0], "chksum_type": kind[1], "chksum_sha256": digest, "format": 1})
    files[FILES] = File(_json({"files": entries, "format": 1}), PLAIN)
    files[MANIFEST] = File(
        _json(
            {
                "collection_info": {key: said.get(key, EMPTY.get(key)) for key in TOLD},
                "file_manifest_file": {
                    "name": FILES,
                    "ftype": "file",
                    "chksum_type": "sha256",
                    "chksum_sha256": hashlib.sha256(files[FILES].data).hexdigest(),
                    "format": 1,
                },
                "format": 1,
            }
        ),
        PLAIN,
    )
    return files


def blobs(heads: Iterable[Sequence[str]]) -> Iterator[File]:
    """The files of these modes and ids, in this order."""
    heads = list(heads)
    said = io.BytesIO(run("git", "cat-file", "--batch", given="".join(f"{head[2]}\n" for head in heads)))
    for mode, _kind, name in heads:
        told, kind, size = said.readline().decode().split()
        if (told, kind) != (name, "blob"):
            raise ReleaseError(f"git has {kind} for {name}, which is no file")
        yield File(said.read(int(size)), mode)
        said.read(1)


def card(text: str) -> dict[str, Any]:
    """What a galaxy.yml of scalars, lists and flat mappings says."""
    found: dict[str, Any] = {}
    key = ""
    for line in text.splitlines():
        if entry := re.match(r"(\w+):(?: (.+))?$", line):
            key = entry[1]
            found[key] = _plain(entry[2]) if entry[2] else None
        elif entry := re.match(r"  - (.+)$", line):
            found[key] = [*(found[key] or []), _plain(entry[1])]
        elif entry := re.match(r"  ([\w.]+): (.+)$", line):
            found[key] = {**(found[key] or {}), entry[1]: _plain(entry[2])}
        elif line.strip() not in ("", "---") and not line.startswith("#"):
            raise ReleaseError(f"galaxy.yml has a line of a form that this program does not read: {line.strip()}")
    return found


def _plain(text: str) -> str:
    return text[1:-1] if text[0] == text[-1] == '"' else text


def ignored(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern of build_ignore leaves out the file or a folder that it is in."""
    parts = path.split("/")
    above = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    return any(fnmatch.fnmatchcase(one, pattern) for one in above for pattern in patterns)


def followed(files: Content, name: str) -> bytes:
    """What is read there."""
    data, mode = files[name]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), data.decode())) if mode == LINK else name
    if target not in files or (files[target].mode == LINK and mode == LINK):
        raise ReleaseError(f"{name} is a link to {target}, which is no file of the archive")
    return files[target].data


def packed(files: Content, moment: int) -> bytes:
    """An archive whose bytes follow from the files alone: in one order, of one moment, of nobody."""
    entries = json.loads(files[FILES].data)["files"]
    folders = {entry["name"] for entry in entries if entry["ftype"] == "dir"} - {"."}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in [MANIFEST, FILES, *sorted(folders | (set(files) - {MANIFEST, FILES}))]:
            member = tarfile.TarInfo(name)
            member.mtime = moment
            data, mode = files.get(name, File(b"", ""))
            if name in folders:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif mode == LINK:
                member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, data.decode()
            else:
                member.size, member.mode = len(data), 0o755 if mode == PROGRAM else 0o644
            tar.addfile(member, io.BytesIO(data) if member.size else None)
    return gzip.compress(raw.getvalue(), compresslevel=9, mtime=0)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


# Compare


def contents(archive: Path) -> Content:
    """Each file by its path. Folders follow from them."""
    found: Content = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isdir():
                continue
            stream = tar.extractfile(member) if member.isfile() else None
            if not (stream or member.issym()) or member.name in found:
                raise ReleaseError(f"{archive.name} has {member.name}, which is no plain file or is there twice")
            data = stream.read() if stream else member.linkname.encode()
            found[member.name] = File(data, (PROGRAM if member.mode & 0o100 else PLAIN) if stream else LINK)
    return found


def differences(files: Content, wanted: Content) -> list[str]:
    """What an archive has otherwise, whoever built it and in whatever order."""
    found = [
        f"{name} is {'missing' if name in wanted else 'not in the commit'}" for name in sorted(set(files) ^ set(wanted))
    ]
    common = sorted((set(files) & set(wanted)) - {MANIFEST, FILES})
    found += [f"{name} is not that of the commit" for name in common if files[name] != wanted[name]]
    if not {MANIFEST, FILES} <= set(files):
        return found
    lists = [{entry["name"]: entry for entry in json.loads(one[FILES].data)["files"]} for one in (files, wanted)]
    found += [
        f"{FILES} has {name} otherwise"
        for name in sorted(set(lists[0]) | set(lists[1]))
        if lists[0].get(name) != lists[1].get(name)
    ]
    told, said = (json.loads(one[MANIFEST].data) for one in (files, wanted))
    if told["file_manifest_file"]["chksum_sha256"] != hashlib.sha256(files[FILES].data).hexdigest():
        found.append(f"{MANIFEST} has another checksum for {FILES}")
    return found + [
        f"{MANIFEST} has another {key} than galaxy.yml"
        for key in sorted(set(told["collection_info"]) | set(said["collection_info"]))
        if told["collection_info"].get(key) != said["collection_info"].get(key)
    ]


def compare(archive: Path, commit: str) -> None:
    """Raises ReleaseError where they differ."""
    found = differences(contents(archive), of_commit(commit))
    if found:
        raise ReleaseError(f"{archive.name} is not {commit}: {'; '.join(found[:5])}")
    print(f"{archive}: all that {run('git', 'rev-parse', commit).decode().strip()} has, and nothing else")


# Sign


def sign(archive: Path, key: str) -> Path:
    """A signature of the manifest, as ansible-galaxy verifies it; the public key beside it."""
    who = ["--local-user", key] if key else []
    signature = archive.with_name(f"{archive.name}.asc")
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder, MANIFEST)
        manifest.write_bytes(contents(archive)[MANIFEST].data)
        try:
            run("gpg", "--yes", "--armor", *who, "--detach-sign", "--output", signature, manifest)
        except ReleaseError as error:
            what = f"the key {key}" if key else "a secret key"
            raise ReleaseError(f"gpg has not signed with {what} ({error}); name one of yours by KEY=") from None
        # The key that signed, whichever was asked for.
        told = run("gpg", "--batch", "--status-fd", "1", "--verify", signature, manifest).decode()
    made = re.search(r"VALIDSIG .* ([0-9A-F]{40})$", told, re.MULTILINE)
    if not made:
        raise ReleaseError(f"gpg does not verify what it has signed, {signature}")
    archive.with_name("trainium-cluster.asc").write_bytes(run("gpg", "--armor", "--export", made[1]))
    print(f"{archive}: sha256 {hashlib.sha256(archive.read_bytes()).hexdigest()}")
    print(f"{signature}: signed by {made[1]}\n\nWhoever has the three files, verifies them so:\n")
    print(instructions(archive.name))
    return signature


def instructions(name: str) -> str:
    """ansible-galaxy takes a signature for an archive only after the installation."""
    ring = "--keyring ./trainium-cluster.kbx"
    return (
        f"  gpg --no-default-keyring {ring} --import trainium-cluster.asc\n"
        f"  ansible-galaxy collection install {name}\n"
        f'  ansible-galaxy collection verify trainium.cluster --offline {ring} --signature "file://$PWD/{name}.asc"'
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(dest="way", required=True)
    abouts = {"build": "build it", "compare": "compare it with the commit", "sign": "sign it", "release": "all of it"}
    for name, about in abouts.items():
        way = ways.add_parser(name, help=about)
        way.add_argument("--commit", default="HEAD")
        if name in ("build", "release"):
            way.add_argument("--output", type=Path, default=ROOT / "dist")
        else:
            way.add_argument("archive", type=Path)
        if name in ("sign", "release"):
            way.add_argument("--key", default="", help="of GPG; its default key unless given")
    options = parser.parse_args(arguments)
    try:
        archive = build(options.output, options.commit) if "output" in options else options.archive
        if options.way != "sign":
            # Also what was built just now, as it lies there.
            compare(archive, options.commit)
        if options.way in ("sign", "release"):
            sign(archive, options.key)
    except ReleaseError as error:
        print(f"release: {error}.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"release: {error.filename or 'a program'}: {os.strerror(error.errno or 0)}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
