"""Members that may be unpacked, and those that would lead out of the folder, tried on a real file system."""

from __future__ import annotations

import os
import re
import tempfile

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.archive_members import (
    Guard,
    Member,
    UnsafeMemberError,
    inside,
)
from hypothesis import given
from hypothesis import strategies as st


def member(name: str, kind: str = "file", target: str = "") -> Member:
    return Member(name, kind, 0, 0o644, target)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([member("../a")], "'../a' leads out of the folder"),
        ([member("a/../../b")], "leads out of the folder"),
        ([member("/etc/passwd")], "'/etc/passwd' has an absolute path"),
        ([member("a\0b")], "has an absolute path"),
        ([member(".")], "'.' has no name"),
        ([member("dev", "other")], "'dev' is neither file, directory nor link"),
        ([Member("a", "file", -1, 0o644)], "'a' has a size below zero"),
        ([member("link", "symlink", "/etc")], "target '/etc', which is no relative path"),
        ([member("link", "symlink", "")], "which is no relative path"),
        ([member("link", "symlink", "../x")], "the link 'link' leads out of the folder, to '../x'"),
        ([member("a/link", "symlink", "../../x")], "leads out of the folder"),
        # Through the link k, which is the folder itself, the parent would be reached.
        ([member("k", "symlink", "."), member("a/b/link", "symlink", "../../k/..")], "'a/b/link' leads out"),
        ([member("link", "symlink", "a"), member("link/b")], "'link/b' lies below 'link', which is no directory"),
        ([member("a/b"), member("a", "symlink", "c")], "'a' is there twice, as directory and as symlink"),
        ([member("a"), member("a/b")], "'a/b' lies below 'a', which is no directory"),
        ([member("hard", "hardlink", "missing")], "is to 'missing', which is no file before it"),
        ([member("link", "symlink", "a"), member("hard", "hardlink", "link")], "is to 'link', which is no file"),
        (
            [member("a"), member("hard", "hardlink", "a"), member("hard")],
            "the file 'hard' comes again behind a hard link of it",
        ),
        (
            [member("a"), member("hard", "hardlink", "a"), member("./a")],
            "the file 'a' comes again behind a hard link of it",
        ),
        ([member("hard", "hardlink", "../outside")], "'../outside' leads out of the folder"),
        ([member("a" * 256)], "has a longer name than file systems take"),
    ],
)
def test_refused(members: list[Member], why: str) -> None:
    guard = Guard()
    *before, last = members
    for item in before:
        guard.admit(item)
    with pytest.raises(UnsafeMemberError, match=re.escape(why)):
        guard.admit(last)


def test_admitted() -> None:
    guard = Guard()
    members = [member(".", "directory"), member("./a/b"), member("a", "directory"), member("a/b")]
    members += [member("a/link", "symlink", "../a/b"), member("a/hard", "hardlink", "./a/b")]
    assert [guard.admit(item) for item in members] == ["", "a/b", "a", "a/b", "a/link", "a/hard"]


names = st.lists(st.sampled_from(["a", "b", "..", ".", ""]), min_size=1, max_size=5).map("/".join)
kinds = st.sampled_from(["file", "directory", "symlink", "hardlink"])


@given(st.lists(st.builds(member, names, kinds, names), max_size=8))
def test_nothing_that_is_admitted_reaches_out_of_the_folder(members: list[Member]) -> None:
    with tempfile.TemporaryDirectory() as parent:
        root = os.path.join(os.path.realpath(parent), "root")
        os.mkdir(root)
        for name in ("a", "b"):
            # What a link would reach outside is there.
            os.mkdir(os.path.join(parent, name))
        guard, links = Guard(), []
        for item in members:
            try:
                path = guard.admit(item)
            except UnsafeMemberError:
                continue
            target = os.path.join(root, path)
            if item.kind == "directory":
                os.makedirs(target, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if item.kind == "file":
                with open(target, "w", encoding="utf-8"):
                    pass
            else:
                links.append((target, item))
        for target, item in links:
            if os.path.lexists(target):
                os.unlink(target)
            if item.kind == "symlink":
                os.symlink(item.target, target)
            elif os.path.exists(os.path.join(root, inside(item.target))):
                os.link(os.path.join(root, inside(item.target)), target)
        for folder, folders, files in os.walk(root):
            for name in folders + files:
                try:
                    found = os.path.realpath(os.path.join(folder, name), strict=True)
                except OSError:
                    # A link to nothing, or to itself, leads nowhere.
                    continue
                assert found == root or found.startswith(root + "/")
        assert sorted(os.listdir(parent)) == ["a", "b", "root"]
