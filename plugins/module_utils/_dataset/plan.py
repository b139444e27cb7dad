# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a dataset consists of: its source, its files, their checksums, the space that it needs. Pure functions."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

# The folder of a destination in which everything lies that is not in place yet.
HIDDEN = ".trainium-dataset"
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
SHA256 = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
WRAPPED = "base64:"
# Left free beside what the dataset takes, in bytes.
SPARE = 64 * 1024 * 1024
# What makes another dataset of the same name, beside its source.
IDENTITY = ("source", "destination", "checksum", "checksums", "extract")


class File(NamedTuple):
    """One file of a dataset.

    ``path`` below the destination, ``url`` or path from which it comes, ``size`` in bytes (-1: not known yet), ``tag``
    the ETag ('' for none), ``sha256`` in lower case ('' for none), ``name`` what it is called to the user.
    """

    path: str
    url: str
    size: int
    tag: str
    sha256: str
    name: str = ""


def source_kind(source: str) -> str:
    """``s3``, ``http`` or ``path``. Raises ValueError for anything else.

    >>> source_kind("s3://bucket/key"), source_kind("https://host/a.tar"), source_kind("/mnt/a.tar")
    ('s3', 'http', 'path')
    """
    if source.startswith("/"):
        return "path"
    parts = urlsplit(source)
    if parts.scheme in ("http", "https") and parts.hostname:
        return "http"
    if parts.scheme == "s3":
        split_s3(source)
        return "s3"
    raise ValueError(
        f"The source {shown(source)!r} is not valid: use s3://bucket/key, s3://bucket/prefix/, an http or https URL, "
        "or an absolute path on the host"
    )


def split_s3(source: str) -> tuple[str, str]:
    """Bucket and key, or prefix where it ends with a slash or is empty. Raises ValueError.

    >>> split_s3("s3://bucket/a/b.tar")
    ('bucket', 'a/b.tar')
    """
    # Not urlsplit: a key may hold # and ?.
    bucket, _slash, key = source[len("s3://") :].partition("/")
    if not source.startswith("s3://") or not BUCKET.fullmatch(bucket):
        raise ValueError(f"The source {source!r} names no bucket: give s3://bucket/key or s3://bucket/prefix/")
    return bucket, key


def shown(url: str) -> str:
    """A URL without what must not be in a log: password, query, fragment.

    >>> shown("https://user:secret@host:8/a?X-Amz-Signature=1")
    'https://host:8/a'
    >>> shown("https://user:half/half@host/a")
    'https://(not shown)'
    """
    scheme, found, rest = url.partition("://")
    if not found or scheme == "s3":
        return url
    host, slash, path = rest.partition("/")
    name, _colon, port = host.rpartition(":")
    if name and "]" not in port and not port.isdigit() and "@" not in host:
        # The beginning of a password with a slash, which has to be written as %2F.
        return f"{scheme}://(not shown)"
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"


def wrapped(url: str) -> str:
    """An address for the result of a module, in which Ansible would mask a session token that it knows.

    >>> unwrapped(wrapped("https://host/a?X-Amz-Security-Token=b"))
    'https://host/a?X-Amz-Security-Token=b'
    """
    return WRAPPED + base64.b64encode(url.encode()).decode()


def unwrapped(url: str) -> str:
    """The address itself. Raises ValueError."""
    if not url.startswith(WRAPPED):
        return url
    try:
        return base64.b64decode(url[len(WRAPPED) :], validate=True).decode()
    except ValueError as error:
        raise ValueError("An address of files is not what dataset_source_info returned; pass it on as it is") from error


def checked_name(name: str) -> str:
    """The name, which is also that of a folder. Raises ValueError."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"The name {name!r} is not valid: use at most 100 letters, digits, dots, underscores and hyphens, "
            "a letter or digit first"
        )
    return name


def default_name(source: str) -> str:
    """A name after the last part of a source.

    >>> default_name("s3://bucket/data/wiki_128.tar")
    'wiki_128.tar'
    """
    last = unquote(shown(source).rstrip("/").rpartition("/")[2])
    return re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip("._-")[:100] or "dataset"


def file_path(name: str) -> str:
    """The path of a file below the destination, from a key or from the last part of a URL. Raises ValueError."""
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..", HIDDEN) for part in parts):
        raise ValueError(
            f"The source has a file {name!r}, whose name is no path below the destination; rename it there"
        )
    return name


def checksum(text: str) -> str:
    """The 64 digits in lower case; '' for none. Raises ValueError.

    >>> checksum("sha256:" + 64 * "A") == 64 * "a"
    True
    """
    if not text:
        return ""
    match = SHA256.fullmatch(text.strip())
    if not match:
        raise ValueError(f"The checksum {text!r} is not valid: use sha256: and 64 hexadecimal digits")
    return match.group(1).lower()


def files_of(items: Sequence[Mapping[str, Any]], whole: str, each: Mapping[str, str]) -> list[File]:
    """The files with their checksums, by path.

    Args:
        items: ``path``, ``url`` and ``name``, perhaps ``size`` and ``tag``, of each file.
        whole: the checksum of a dataset of one file.
        each: checksums by path.

    Raises:
        ValueError: for a checksum without a file, two files of one path, or a file below another.
    """
    files = [
        File(
            file_path(item["path"]),
            item["url"],
            int(item.get("size", -1)),
            str(item.get("tag") or ""),
            "",
            item["name"],
        )
        for item in items
    ]
    paths = {file.path for file in files}
    if len(paths) != len(files):
        raise ValueError("The source has two files of the same name; give them other names there")
    below = next((path for path in sorted(paths) if any(parent in paths for parent in _parents(path))), None)
    if below is not None:
        raise ValueError(
            f"The source has a file {below!r} and another in the place of its folder; rename one of them there"
        )
    if whole and len(files) != 1:
        raise ValueError(f"One checksum was given for {len(files)} files; give each its own, by its path")
    unknown = sorted(set(each) - paths)
    if unknown:
        raise ValueError(f"A checksum was given for {unknown[0]!r}, which the source does not have; check the path")
    return sorted(file._replace(sha256=checksum(each.get(file.path, "") or whole)) for file in files)


def _parents(path: str) -> Iterable[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


def is_archive(path: str) -> bool:
    """Whether a name is that of an archive which can be unpacked."""
    return path.lower().endswith(ARCHIVES)


def to_extract(files: Sequence[File], extract: str) -> list[File]:
    """The files to unpack: ``auto`` those that are archives, ``always`` all, ``never`` none. Raises ValueError."""
    if extract == "never":
        return []
    others = [file.path for file in files if not is_archive(file.path)]
    if extract == "always" and others:
        raise ValueError(f"{others[0]} is no archive that can be unpacked: it should end with {', '.join(ARCHIVES)}")
    return [file for file in files if is_archive(file.path)]


def digest(request: Mapping[str, Any]) -> str:
    """What tells one dataset from another: source, checksums and what is done with it, never a signature."""
    told = json.dumps({key: request.get(key) for key in IDENTITY}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def space_problem(needed: int, free: int, where: str, what: str) -> str:
    """The sentence for a disk that is too full, '' where there is room. All numbers in bytes."""
    if needed + SPARE <= free:
        return ""
    return (
        f"{what} needs {human(needed + SPARE)} in {where}, and only {human(free)} are free there; "
        "make room or take a larger volume"
    )


def human(size: float) -> str:
    """Bytes for a reader.

    >>> human(0), human(1536), human(3 * 1024 ** 3)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def parse_size(text: str) -> int:
    """Bytes of ``60G``, ``1.5 TiB`` or ``1024``; 0 for ''. Units are powers of 1024. Raises ValueError.

    >>> parse_size("1.5 KiB")
    1536
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB|B)?\s*", text or "0")
    if not match:
        raise ValueError(f"The size {text!r} is not valid: use a number of bytes, or one with K, M, G or T")
    return int(float(match.group(1)) * 1024 ** " KMGT".index(match.group(2) or " "))
