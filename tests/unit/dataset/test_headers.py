"""Headers of tar archives at the limit of what is taken, and what of a member is kept."""

from __future__ import annotations

import tarfile

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import Member, UnsafeMemberError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.extract import Header, _of_tar

MIB = 1024 * 1024


def header(kind: bytes, size: int) -> bytes:
    made = tarfile.TarInfo("a")
    made.type, made.size = kind, size
    return made.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (tarfile.XHDTYPE, MIB),
        (tarfile.GNUTYPE_LONGNAME, MIB),
        (tarfile.GNUTYPE_LONGLINK, MIB),
        (tarfile.SOLARIS_XHDTYPE, MIB),
        # Its keys are copied into every member that follows.
        (tarfile.XGLTYPE, 4096),
    ],
)
def test_a_header_that_is_kept_in_memory_is_short(kind: bytes, most: int) -> None:
    assert Header.frombuf(header(kind, most), "utf-8", "surrogateescape").size == most
    with pytest.raises(UnsafeMemberError, match=f"header of {most + 1} bytes"):
        Header.frombuf(header(kind, most + 1), "utf-8", "surrogateescape")


def test_a_file_may_be_larger_than_a_header() -> None:
    assert Header.frombuf(header(tarfile.REGTYPE, 5 * MIB), "utf-8", "surrogateescape").size == 5 * MIB


def test_holes_are_refused_by_the_name_of_the_file() -> None:
    with pytest.raises(UnsafeMemberError, match="the member 'a' is sparse; pack it without holes"):
        Header.frombuf(header(tarfile.GNUTYPE_SPARSE, 1), "utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tarfile.REGTYPE, Member("a", "file", 7, 0o640, "")),
        (tarfile.AREGTYPE, Member("a", "file", 7, 0o640, "")),
        (tarfile.CONTTYPE, Member("a", "file", 7, 0o640, "")),
        (tarfile.DIRTYPE, Member("a", "directory", 0, 0o640, "")),
        (tarfile.SYMTYPE, Member("a", "symlink", 0, 0o640, "b")),
        (tarfile.LNKTYPE, Member("a", "hardlink", 0, 0o640, "b")),
        (tarfile.CHRTYPE, Member("a", "other", 0, 0o640, "")),
    ],
)
def test_what_is_kept_of_a_member(kind: bytes, expected: Member) -> None:
    item = tarfile.TarInfo("a")
    item.type, item.size, item.mode, item.linkname = kind, 7, 0o640, expected.target
    assert _of_tar(item) == expected


def test_a_size_below_zero_is_refused() -> None:
    item = tarfile.TarInfo("b" * 200)
    item.size = -1
    with pytest.raises(UnsafeMemberError) as error:
        _of_tar(item)
    assert str(error.value) == f"the member '{'b' * 100}' has a size below zero"
