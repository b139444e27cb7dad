"""The owner of a destination, who is not root, lays links where the work of root writes: none is followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan, run, run_host

KEPT = "root:x:0:0"


class Status:
    """Keeps what the work says of itself."""

    def write(self, state: dict[str, Any]) -> None:
        self.state = dict(state)


class Host:
    """A source with one file, a destination, and a file that must stay as it is."""

    def __init__(self, folder: Path) -> None:
        self.source, self.destination, self.victim = folder / "source", folder / "destination", folder / "victim"
        self.hidden, self.moved = self.destination / plan.HIDDEN, self.destination / "moved"
        self.source.mkdir()
        (self.source / "a").write_text("content", encoding="utf-8")
        self.victim.write_text(KEPT, encoding="utf-8")

    def trap(self, folder: Path) -> None:
        """What looks like the folder of an earlier run, with links to the victim wherever a file is written."""
        for name in ("claims", "parts", "logs", "stage", "unpacking"):
            (folder / "set" / name).mkdir(parents=True)
        for name in ("parts/a", "logs/a", "state.json", "state.json.new", "complete.json", "complete.json.new"):
            (folder / "set" / name).symlink_to(self.victim)

    def take(self, before: Callable[[], None] = lambda: None) -> str:
        """Why the dataset was refused, '' where it is in place."""
        params = {
            **dict.fromkeys(("checksum", "extracted_size", "owner", "group"), ""),
            "name": "set",
            "source": str(self.source),
            "destination": str(self.destination),
            "checksums": {},
            "md5_tags": False,
            "extract": "auto",
            "chunk_size": "1M",
            "connections": 1,
            "timeout": 5,
        }
        request = run_host._request(params)
        place = run.Place(request["destination"], request["name"])
        files = plan.files_of(list(run_host._items(request, None)), "", {})
        status = Status()
        new = place.make(request["owner_ids"])
        before()
        run.Job(request, files, place, run.Telling(status)).run(new)  # type: ignore[arg-type]
        assert status.state["ended"]
        return str(status.state.get("error", ""))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(os, "sync", lambda: None)
    return Host(tmp_path)


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else ""
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


@pytest.mark.parametrize("step", ["", "_claim", "_fetch", "_check", "_unpack", "_put_in_place"])
def test_the_folder_of_the_work_becomes_a_link(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its owner may rename whatever lies in the destination, the folder of root as well."""
    trap = tmp_path / "trap"
    host.trap(trap)
    laid = everything(trap)

    def swap() -> None:
        host.hidden.rename(host.moved)
        host.hidden.symlink_to(trap)

    def first(job: run.Job, *arguments: Any) -> Any:
        swap()
        return kept(job, *arguments)

    if step:
        kept = getattr(run.Job, step)
        monkeypatch.setattr(run.Job, step, first)
    host.take(swap if not step else lambda: None)
    assert host.victim.read_text(encoding="utf-8") == KEPT
    assert everything(trap) == laid


@pytest.mark.parametrize("folder", ["", "set", "set/claims", "set/parts", "set/logs", "set/stage"])
def test_a_folder_of_the_work_was_a_link_before(host: Host, tmp_path: Path, folder: str) -> None:
    trap = tmp_path / "trap"
    host.trap(trap)
    laid = everything(trap)
    there = host.hidden / folder
    there.parent.mkdir(parents=True)
    there.symlink_to(trap / folder)
    with suppress(TrainiumError):
        host.take()
    assert host.victim.read_text(encoding="utf-8") == KEPT
    assert everything(trap) == laid


def test_files_of_the_work_were_links_before(host: Host) -> None:
    host.trap(host.hidden)
    assert host.take() == ""
    assert host.victim.read_text(encoding="utf-8") == KEPT
    assert (host.destination / "a").read_text(encoding="utf-8") == "content"


def test_a_part_that_is_another_name_of_a_file(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hard link shows no link; the content of a part is written to a file that the run has made itself."""
    kept = run.Job._fetch

    def first(job: run.Job, state: Any) -> Any:
        (host.hidden / "set" / "parts").mkdir(exist_ok=True)
        os.link(host.victim, host.hidden / "set" / "parts" / "a")
        return kept(job, state)

    monkeypatch.setattr(run.Job, "_fetch", first)
    host.take()
    assert host.victim.read_text(encoding="utf-8") == KEPT


@pytest.mark.parametrize("step", ["_check", "_unpack"])
def test_a_part_that_becomes_another_name_of_a_file(host: Host, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """What was fetched is given to the owner of the dataset: nothing else is."""
    kept = getattr(run.Job, step)
    host.victim.chmod(0o600)

    def first(job: run.Job, *arguments: Any) -> Any:
        part = host.hidden / "set" / "parts" / "a"
        part.unlink()
        os.link(host.victim, part)
        return kept(job, *arguments)

    monkeypatch.setattr(run.Job, step, first)
    assert host.take()
    assert host.victim.stat().st_mode & 0o777 == 0o600
    assert not (host.destination / "a").exists()


def test_a_folder_of_the_work_that_others_may_write_is_refused(host: Host) -> None:
    host.hidden.mkdir(parents=True)
    host.hidden.chmod(0o777)
    with pytest.raises(TrainiumError, match="others"):
        host.take()


def test_a_link_of_somebody_else_on_the_way_to_the_destination(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns a folder above the destination would choose where root makes folders and gives them away."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "elsewhere")
    host.destination = tmp_path / "home" / "data"
    assert host.take() == "", "a link of root or of the user itself is followed"
    for path in (tmp_path / "elsewhere" / "data").iterdir():
        path.unlink() if path.is_file() else None
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1 if mine else 0)
    if not mine:
        os.lchown(tmp_path / "home", 12345, 12345)
    with pytest.raises(TrainiumError, match="is a link"):
        host.take()


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay links for somebody else")


@root
def test_a_link_in_the_source_hands_out_no_file(host: Host) -> None:
    """Whoever may write in a folder of the host chooses what root copies from it, and no more."""
    host.victim.chmod(0o600)
    (host.source / "b").symlink_to(host.victim)
    os.chown(host.source / "b", 65534, 65534, follow_symlinks=False)
    with pytest.raises(TrainiumError, match="b is a link of somebody else"):
        host.take()
    assert not host.destination.exists()


@root
@pytest.mark.parametrize("name", ["a", "a.tar"])
@pytest.mark.parametrize("folder", [False, True])
def test_a_file_of_the_source_becomes_a_link(host: Host, tmp_path: Path, name: str, folder: bool) -> None:
    """After it was listed, before it is read."""
    below = host.source / "below"
    below.mkdir()
    (host.source / "a").rename(below / name)
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / name).write_text(KEPT, encoding="utf-8")

    def swap() -> None:
        swapped = below if folder else below / name
        swapped.rename(host.source / "moved")
        swapped.symlink_to(trap if folder else trap / name)
        os.chown(swapped, 65534, 65534, follow_symlinks=False)

    assert "is a link of somebody else" in host.take(swap)
    assert not (host.destination / "below" / name).exists()


def test_a_link_of_root_is_followed(host: Host) -> None:
    """As folders of models have them, in which each version names files that are kept once."""
    (host.source / "b").symlink_to("a")
    (host.source / "c").symlink_to(host.source / "b")
    assert host.take() == ""
    assert {(host.destination / name).read_text(encoding="utf-8") for name in "abc"} == {"content"}


def test_what_is_no_plain_file_is_left_out(host: Host) -> None:
    os.mkfifo(host.source / "b")
    assert host.take() == ""
    assert not (host.destination / "b").exists()
