"""What a digest is of, and what comes into the context of a build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ecr import run_context as context


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "train.py").write_text("train")
    (folder / "b.txt").write_text("b")
    (folder / "link").symlink_to("b.txt")
    (folder / "folder").symlink_to("a")
    return folder


def test_a_digest_is_of_names_contents_links_and_what_can_be_run(own: Path) -> None:
    seen = [context.digest(str(own))]
    assert context.digest(str(own)) == seen[0]

    def changed() -> None:
        seen.append(context.digest(str(own)))

    (own / "a" / "train.py").chmod(0o755)
    changed()
    (own / "a" / "train.py").write_text("other")
    changed()
    (own / "a" / "train.py").rename(own / "a" / "main.py")
    changed()
    (own / "link").unlink()
    (own / "link").symlink_to("a/main.py")
    changed()
    # A folder that is linked counts by where the link leads, and nothing of it twice.
    (own / "folder").unlink()
    changed()
    (own / "link").unlink()
    (own / "link").write_text("b")
    changed()
    assert len(set(seen)) == len(seen)
    # Of no matter: times, other rights, folders without files.
    os.utime(own / "b.txt", (1, 1))
    (own / "b.txt").chmod(0o640)
    (own / "empty").mkdir()
    assert context.digest(str(own)) == seen[-1]


def test_the_same_below_another_path_is_the_same(own: Path, tmp_path: Path) -> None:
    before = context.digest(str(own))
    context.copy([context.Content("there", str(own))], {"there": before}, str(tmp_path))
    assert context.digest(str(tmp_path / "there")) == before
    assert (tmp_path / "there" / "link").is_symlink() and (tmp_path / "there" / "folder").is_symlink()


def test_one_file_is_its_content_wherever_a_link_leads_to_it(own: Path, tmp_path: Path) -> None:
    # By its own path, as it has another name in the context.
    (tmp_path / "copy").write_text("b")
    digest = context.digest(str(own / "b.txt"))
    assert digest == context.digest(str(own / "link")) == context.digest(str(tmp_path / "copy"))
    context.copy([context.Content("there", str(own / "link"))], {"there": digest}, str(tmp_path))
    assert (tmp_path / "there").read_text() == "b" and not (tmp_path / "there").is_symlink()


def test_a_large_file_is_read_to_its_end(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"\0" * (1 << 20) + b"a")
    two.write_bytes(b"\0" * (1 << 20) + b"b")
    assert context.digest(str(one)) != context.digest(str(two))


def test_what_a_user_calls_theirs_stays_at_home_wherever_it_lies(own: Path) -> None:
    before = context.digest(str(own))
    (own / "a" / ".git").mkdir()
    (own / "a" / ".git" / "config").write_text("x")
    (own / "a" / ".git" / "hooks").symlink_to("/etc")
    (own / ".aws").symlink_to("/nothing")
    (own / "a" / "server.key").write_text("x")
    assert context.digest(str(own)) == before
    (own / "a" / "keys.py").write_text("x")
    assert context.digest(str(own)) != before


def test_what_cannot_be_read_or_copied_is_said(own: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainiumError, match=r"/nothing cannot be read \(No such file or directory\); correct src"):
        context.digest("/nothing")
    with pytest.raises(TrainiumError, match=r"/nothing cannot be copied \(FileNotFoundError\); correct src in files"):
        context.copy([context.Content("a", "/nothing")], {}, str(tmp_path))
    (tmp_path / "there").mkdir()
    with pytest.raises(TrainiumError, match=r"own cannot be copied \(FileExistsError\)"):
        context.copy([context.Content("there", str(own))], {}, str(tmp_path))
    os.mkfifo(own / "pipe")
    with pytest.raises(TrainiumError, match="pipe is no file, folder or link"):
        context.digest(str(own / "pipe"))
