"""Builds the archive of a commit, the same bytes each time; compares it with the commit; signs it.

``compare`` and ``sign`` need the standard library, git and gpg only, so that nothing from a package index runs where a
key or a token is.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MANIFEST, FILES = "MANIFEST.json", "FILES.json"
# What ansible-galaxy itself leaves away.
NEVER = ("galaxy.yml", "galaxy.yaml", ".git", "*.pyc", "*.retry", "tests/output")
PLAIN, PROGRAM, LINK = "100644", "100755", "120000"


class File(NamedTuple):
    """As git has it: a link's data are where it leads."""

    data: bytes
    mode: str


Content = dict[str, File]


class ReleaseError(Exception):
    """What is wrong, in one sentence."""


def run(*command: str | Path, where: Path = ROOT) -> bytes:
    done = subprocess.run([str(word) for word in command], cwd=where, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(str(word) for word in command[:3])} ended with {done.returncode}")
    return done.stdout


# Build


def build(output: Path, commit: str) -> Path:
    """The archive of the commit, from a plain clone: what is not committed is not in it."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        clone = Path(made, "clone")
        run("git", "clone", "--quiet", "--no-checkout", ROOT, clone)
        run("git", "checkout", "--quiet", "--detach", run("git", "rev-parse", commit).decode().strip(), where=clone)
        run("ansible-galaxy", "collection", "build", "--output-path", made, where=clone)
        (found,) = Path(made).glob("*.tar.gz")
        moment = int(run("git", "log", "-1", "--format=%ct", where=clone))
        archive = output / found.name
        archive.write_bytes(packed(contents(found), moment))
    return archive


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


def packed(files: Content, moment: int) -> bytes:
    """An archive whose bytes follow from the files alone: in their order, of one moment, of nobody."""
    listed = json.loads(files[FILES].data)
    listed["files"].sort(key=lambda entry: entry["name"])
    told = json.loads(files[MANIFEST].data)
    files = {**files, FILES: File(_json(listed), PLAIN)}
    told["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(files[FILES].data).hexdigest()
    files[MANIFEST] = File(_json(told), PLAIN)
    folders = {entry["name"] for entry in listed["files"] if entry["ftype"] == "dir"} - {"."}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in [MANIFEST, FILES, *sorted(folders | (set(files) - {MANIFEST, FILES}))]:
            member = tarfile.TarInfo(name)
            member.mtime = moment
            if name in folders:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
                continue
            data, mode = files[name]
            if mode == LINK:
                member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, data.decode()
                tar.addfile(member)
                continue
            member.size, member.mode = len(data), 0o755 if mode == PROGRAM else 0o644
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), compresslevel=9, mtime=0)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=True) + "\n").encode()


# Compare


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
            raise ReleaseError(f"galaxy.yml has a line of another form: {line.strip()}")
    return found


def _plain(text: str) -> str:
    return text[1:-1] if text[0] == text[-1] == '"' else text


def committed(commit: str) -> dict[str, tuple[str, str]]:
    """Path -> mode and id of each file of the commit."""
    lines = run("git", "ls-tree", "-r", "-z", commit).decode().split("\0")
    entries = [line.partition("\t") for line in lines if line]
    return {name: (head.split()[0], head.split()[2]) for head, _tab, name in entries}


def ignored(path: str, patterns: list[str]) -> bool:
    parts = path.split("/")
    above = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    return any(
        fnmatch.fnmatch(one, pattern) or fnmatch.fnmatch(one.rpartition("/")[2], pattern)
        for one in above
        for pattern in patterns
    )


def differences(files: Content, commit: str) -> list[str]:
    """What the archive has otherwise than the commit."""
    wanted = committed(commit)
    said = card(run("git", "show", f"{commit}:galaxy.yml").decode())
    patterns = [*(said.pop("build_ignore", None) or []), *NEVER]
    found = []
    own = set(files) - {MANIFEST, FILES}
    for name in sorted(own):
        data, mode = files[name]
        as_committed, blob = wanted.get(name, ("", ""))
        if hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() != blob:
            found.append(f"{name} is not that of the commit" if blob else f"{name} is not in the commit")
        elif mode != as_committed:
            found.append(f"{name} has the mode {mode} in place of {as_committed}")
    lost = [name for name in wanted if name not in own and not ignored(name, patterns)]
    found += [f"{name} is missing" for name in sorted(lost)]
    return found + _wrong_lists(files, own) + _wrong_card(files, said)


def compare(archive: Path, commit: str) -> None:
    """Raises ReleaseError where they differ."""
    found = differences(contents(archive), commit)
    if found:
        raise ReleaseError(f"{archive.name} is not {commit}: {'; '.join(found[:5])}")
    print(f"{archive}: all that {run('git', 'rev-parse', commit).decode().strip()} has, and nothing else")


def _wrong_lists(files: Content, own: set[str]) -> list[str]:
    entries = {one["name"]: one for one in json.loads(files[FILES].data)["files"] if one["ftype"] == "file"}
    found = [f"{FILES} and the files differ in {name}" for name in sorted(set(entries) ^ own)]
    found += [
        f"{FILES} has another checksum for {name}"
        for name in sorted(set(entries) & own)
        if entries[name]["chksum_sha256"] != hashlib.sha256(_followed(files, name)).hexdigest()
    ]
    told = json.loads(files[MANIFEST].data)["file_manifest_file"]
    if (told["name"], told["chksum_sha256"]) != (FILES, hashlib.sha256(files[FILES].data).hexdigest()):
        found.append(f"{MANIFEST} has another checksum for {FILES}")
    return found


def _followed(files: Content, name: str) -> bytes:
    """What is read there."""
    data, mode = files[name]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), data.decode())) if mode == LINK else ""
    return files[target].data if target in files and files[target].mode != LINK else data


def _wrong_card(files: Content, said: Mapping[str, Any]) -> list[str]:
    """What galaxy.yml does not say is empty in the manifest."""
    told = json.loads(files[MANIFEST].data)["collection_info"]
    return [
        f"{MANIFEST} has another {key} than galaxy.yml"
        for key in sorted(set(told) | set(said))
        if (told.get(key) or None) != (said.get(key) or None)
    ]


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
    ring = "--keyring ./trainium-cluster.kbx"
    given = f'--signature "file://$PWD/{name}.asc"'
    return (
        f"  gpg --no-default-keyring {ring} --import trainium-cluster.asc\n"
        f"  ansible-galaxy collection install {name} {ring} {given}\n"
        f"  ansible-galaxy collection verify trainium.cluster --offline {ring} {given}"
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
