"""Folders and files that are reached link by link: what is followed, made, refused, and closed again."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import folders
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.folders import open_file, open_path

from tests.open_files import open_paths

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """Whatever happens to a path, none of the folders on its way is left open."""
    before = open_paths()
    yield
    assert open_paths() == before


def place(descriptor: int) -> Path:
    """Where a descriptor leads; it is closed."""
    found = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    os.close(descriptor)
    return found


@pytest.mark.parametrize(
    ("link", "target"),
    [("a/link", "../b/c"), ("link", "b/c/"), ("b/link", "./c"), ("link", "{}/b//c"), ("link", "{}/b/c/.")],
)
def test_a_link_leads_from_its_own_folder(tmp_path: Path, link: str, target: str) -> None:
    (tmp_path / "b/c/d").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / link).symlink_to(target.format(tmp_path))
    assert place(open_path(str(tmp_path / link))) == tmp_path / "b/c"
    assert place(open_path(f"{tmp_path / link}/./d//")) == tmp_path / "b/c/d"


def test_the_root_itself_is_a_folder() -> None:
    assert place(open_path("/")) == Path("/")


@pytest.mark.parametrize("links", [folders.MOST_LINKS, folders.MOST_LINKS + 1])
def test_as_many_links_as_the_kernel_follows(tmp_path: Path, links: int) -> None:
    """path_resolution(7): at most 40."""
    (tmp_path / "0").mkdir()
    for number in range(1, links + 1):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    path = str(tmp_path / str(links))
    assert (links <= 40) == Path(path).is_dir()
    if links <= 40:
        assert place(open_path(path)) == tmp_path / "0"
        return
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        open_path(path)


@pytest.mark.parametrize("opened", [open_path, open_file])
def test_links_in_a_circle_are_an_error(tmp_path: Path, opened: Callable[[str], int]) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        opened(str(tmp_path / "a"))


def test_each_folder_on_the_way_is_looked_at_that_of_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "link").symlink_to("b")
    seen: list[str] = []
    os.close(open_path(str(tmp_path / "link/c"), look=lambda at: seen.append(os.readlink(f"/proc/self/fd/{at}"))))
    way = [str(path) for path in (tmp_path, tmp_path / "b", tmp_path / "b/c")]
    assert seen[: len(tmp_path.parts) - 2] == [str(path) for path in list(tmp_path.parents)[-2::-1]]
    assert [path for path in dict.fromkeys(seen) if path.startswith(str(tmp_path))] == way


def test_what_refuses_a_folder_on_the_way_ends_it(tmp_path: Path) -> None:
    def refuse(_at: int) -> None:
        raise TrainiumError("no")

    with pytest.raises(TrainiumError, match="no"):
        open_path(str(tmp_path), look=refuse)


def test_nothing_is_made_where_nobody_asks_for_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_path(str(tmp_path / "a/b"))
    assert list(tmp_path.iterdir()) == []


@root
def test_only_the_last_folder_is_given_away_and_only_if_it_is_new(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    for path in ("a/b", "there"):
        os.close(open_path(str(tmp_path / path), (NOBODY, NOBODY)))
    owners = [(path.stat().st_uid, path.stat().st_gid) for path in (tmp_path / "a", tmp_path / "a/b")]
    assert owners == [(0, 0), (NOBODY, NOBODY)]
    assert ((tmp_path / "there").stat().st_uid, stat.S_IMODE((tmp_path / "there").stat().st_mode)) == (0, 0o700)


@root
def test_one_that_somebody_makes_meanwhile_stays_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = os.mkdir

    def late(name: str, mode: int, **more: Any) -> None:
        kept(name, 0o700, **more)
        kept(name, mode, **more)

    monkeypatch.setattr(os, "mkdir", late)
    os.close(open_path(str(tmp_path / "new"), (NOBODY, NOBODY)))
    assert ((tmp_path / "new").stat().st_uid, stat.S_IMODE((tmp_path / "new").stat().st_mode)) == (0, 0o700)


@root
def test_one_that_cannot_be_given_away_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    with pytest.raises(PermissionError):
        open_path(str(tmp_path / "new"), (NOBODY, NOBODY))


# --- file systems of the network ---

# As mountinfo(5) shows them: id, parent, device, root, mount point, options, optional fields, -, type, source.
MOUNT = "{mount} 29 0:44 / /a rw,noatime {optional}- {kind} {source} rw\n"


@pytest.mark.parametrize("optional", ["", "shared:1 ", "shared:1 master:2 "])
@pytest.mark.parametrize(
    ("kind", "source", "remote"),
    [
        ("ext4", "/dev/nvme0n1p1", False),
        ("tmpfs", "nfs", False),
        ("overlay", "overlay", False),
        ("nfs4", "10.0.0.1:/export", True),
        ("lustre", "10.0.0.1@tcp:/fsx", True),
        ("fuse.s3fs", "s3fs", True),
        ("9p", "share", True),
        ("virtiofs", "share", True),
    ],
)
def test_the_type_of_the_mount_says_whose_owners_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, optional: str, kind: str, source: str, remote: bool
) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    mount = dict(line.split(":", 1) for line in Path(f"/proc/self/fdinfo/{at}").read_text().splitlines())["mnt_id"]
    other = MOUNT.format(mount="0", optional="", kind="ext4" if remote else "nfs4", source="other")
    text = other + MOUNT.format(mount=mount.strip(), optional=optional, kind=kind, source=source)

    def opened(path: str, **more: Any) -> Any:
        return io.StringIO(text) if path == "/proc/self/mountinfo" else open(path, **more)

    monkeypatch.setattr(folders, "open", opened, raising=False)
    assert folders.is_remote(at) == remote
    text = other
    # A mount that this process does not see may be anything.
    assert folders.is_remote(at)
    os.close(at)


def test_only_who_asks_for_this_host_s_disks_refuses_links_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert place(open_path(str(tmp_path / "link"), local=True)) == tmp_path / "a"
    monkeypatch.setattr(folders, "REMOTE", ("",))
    assert place(open_path(str(tmp_path / "link"))) == tmp_path / "a"
    with pytest.raises(TrainiumError, match=r"'link' on the way to .* of the network"):
        open_path(str(tmp_path / "link"), local=True)


# --- files to read ---


@root
def test_a_link_of_another_hands_out_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("secret")
    assert place(open_file(str(tmp_path / "link"))) == tmp_path / "secret"
    os.lchown(tmp_path / "link", NOBODY, NOBODY)
    with pytest.raises(TrainiumError, match=r"link is a link of somebody else, .*; put the file itself there"):
        open_file(str(tmp_path / "link"))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_plain_file_is_not_read_and_does_not_hang(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "a")
    with pytest.raises(TrainiumError, match="a is no plain file; leave it out"):
        open_file(str(tmp_path / "a"))
