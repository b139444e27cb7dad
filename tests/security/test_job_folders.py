"""A link that another user laid is not followed by what root does for a job or a test, in whatever part of a path."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._common import folders
from ansible_collections.trainium.cluster.plugins.modules.internal import owned_folders

from tests.in_process import ended
from tests.security.test_job_environment import ROLE, play

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lay links for somebody else")


def run(capsys: pytest.CaptureFixture[str], *paths: Path, **arguments: Any) -> dict[str, Any]:
    given = {"paths": [str(path) for path in paths], **arguments}
    return ended(owned_folders.main, given, capsys)[0]


def state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, stat.S_IMODE(found.st_mode)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """What a link leads to, with a folder in it."""
    made = tmp_path / "private"
    (made / "below").mkdir(parents=True)
    for path in (made, made / "below"):
        path.chmod(0o700)
    return made


def test_folders_are_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there, new = tmp_path / "there", tmp_path / "a" / "b"
    there.mkdir(mode=0o700)
    assert run(capsys, there, new, _ansible_check_mode=True)["changed"]
    assert not new.exists() and state(there)[1] == 0o700
    assert run(capsys, there, new)["changed"]
    assert [state(path) for path in (there, new, new.parent)] == [(os.geteuid(), 0o755)] * 3
    assert not run(capsys, there, new)["changed"]


def test_others_pass_through_what_is_made_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = os.umask(0o077)
    try:
        assert run(capsys, tmp_path / "a" / "b")["changed"]
        assert state(tmp_path / "a")[1] == 0o755
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(kept)


@root
def test_they_belong_to_the_owner_and_what_is_above_them_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, tmp_path / "a" / "b", owner="nobody", mode="0750")["changed"]
    assert (state(tmp_path / "a" / "b"), state(tmp_path / "a")) == ((NOBODY, 0o750), (0, 0o755))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"owner": "nobody-here"}, "there is no user nobody-here on this host"),
        ({"mode": "rwx"}, "the mode 'rwx' is not octal"),
        ({}, "taken cannot be made a folder (Not a directory)"),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: dict[str, str], said: str
) -> None:
    (tmp_path / "taken").touch()
    assert said in run(capsys, tmp_path / "taken", **arguments)["msg"]


@root
@pytest.mark.parametrize("path", ["link", "link/below", "link/new", "link/new/more"])
def test_a_link_of_another_is_refused_in_every_part(
    tmp_path: Path, private: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    (tmp_path / "link").symlink_to(private)
    os.lchown(tmp_path / "link", NOBODY, NOBODY)
    said = run(capsys, tmp_path / path, owner="nobody")["msg"]
    assert f"'link' on the way to {tmp_path / path} is a link of somebody else" in said
    assert state(private) == state(private / "below") == (0, 0o700)
    assert [each.name for each in private.iterdir()] == ["below"]


def test_a_link_of_root_is_followed(tmp_path: Path, private: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(private)
    assert run(capsys, tmp_path / "link", tmp_path / "link" / "new")["changed"]
    assert state(private)[1] == state(private / "new")[1] == 0o755


@root
@pytest.mark.parametrize("looks", ["stat", "readlink"])
def test_a_link_that_is_swapped_between_two_looks_leads_nowhere(
    tmp_path: Path, private: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    """Whoever may rename in a folder puts theirs in the place of root's, between whose it is and where it leads."""
    (tmp_path / "good").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "evil").symlink_to(private)
    os.lchown(tmp_path / "evil", NOBODY, NOBODY)
    name = "fstat" if looks == "stat" else "readlink"
    kept = getattr(os, name)

    def first(*arguments: Any, **options: Any) -> Any:
        found = kept(*arguments, **options) if looks == "stat" else None
        if (tmp_path / "evil").is_symlink():
            (tmp_path / "evil").rename(tmp_path / "link")
        return found if looks == "stat" else kept(*arguments, **options)

    monkeypatch.setattr(os, name, first)
    run(capsys, tmp_path / "link", owner="nobody")
    assert state(private) == (0, 0o700)


@root
@pytest.mark.parametrize(("owner", "mode", "full"), [(12345, 0o755, False), (0, 0o1777, True), (0, 0o1777, False)])
def test_what_another_has_made_or_filled_is_not_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], owner: int, mode: int, full: bool
) -> None:
    """In a shared folder anybody may make it first, and what lies in it would be read as the user's own."""
    there = tmp_path / "trainium"
    there.mkdir()
    if full:
        (there / "images").mkdir()
    os.chown(there, owner, owner)
    there.chmod(mode)
    said = run(capsys, there, owner="nobody").get("msg", "")
    wanted = (
        "belongs to the user with the id 12345, who may have put anything into it; look at it, then give it to the "
        "user nobody (chown)"
        if owner
        else "is open to all, and there is something"
        if full
        else ""
    )
    assert wanted in said and bool(said) == bool(wanted)
    assert state(there) == ((owner, mode) if wanted else (NOBODY, 0o755))


@root
def test_root_of_another_machine_lays_no_links(
    tmp_path: Path, private: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The types that count are those of mountinfo(5): that of this folder is taken for one of the network's."""
    link = os.open(tmp_path, os.O_RDONLY)
    assert not folders.is_remote(link)
    os.close(link)
    (tmp_path / "link").symlink_to(private)
    monkeypatch.setattr(folders, "REMOTE", ("",))
    said = run(capsys, tmp_path / "link", owner="nobody")["msg"]
    assert "is a link on a file system of the network, where not even root's are followed" in said and state(
        private
    ) == (0, 0o700)


@root
@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o755), (0, 0o777), (0, 0o1777)])
def test_a_closed_path_is_root_s_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], owner: int, mode: int
) -> None:
    """In a folder of root's that is not, another could put their own files before root writes; but for a sticky one."""
    (tmp_path / "open").mkdir()
    os.chown(tmp_path / "open", owner, owner)
    (tmp_path / "open").chmod(mode)
    said = run(capsys, tmp_path / "open" / "test", closed=True, variable="acceptance_directory")
    wanted = f"acceptance_directory: in {tmp_path}/open another user could put"
    assert said.get("msg", "").startswith(wanted) == (mode != 0o1777)
    assert (tmp_path / "open" / "test").exists() == (mode == 0o1777)


@root
def test_root_gives_away_nothing_that_a_link_leads_to(tmp_path: Path, private: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("pass\n", encoding="utf-8")
    definition = {"preset": "none", "files": [str(script)], "script": "a.py"}
    (tmp_path / "jobs").mkdir()
    for name in ("data", "output"):
        (tmp_path / "jobs" / name).symlink_to(private / "below")
    os.lchown(tmp_path / "jobs" / "output", NOBODY, NOBODY)
    done = play(tmp_path, ["check", "stage"], definition)
    assert done.returncode != 0
    assert f"'output' on the way to {tmp_path}/jobs/output is a link of somebody else" in done.stdout
    os.lchown(tmp_path / "jobs" / "output", 0, 0)
    done = play(tmp_path, ["check", "stage"], definition)
    assert done.returncode == 0, done.stdout
    assert list((tmp_path / "jobs" / "jobs").glob("*/a.py"))


def tasks(document: list[dict[str, Any]], user: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Each task, and as whom it runs: '' for root."""
    for task in document:
        own = str(task.get("become_user", user))
        if "block" in task:
            yield from tasks(task["block"], own)
        else:
            yield task, own


FILES = ("file", "copy", "template", "get_url", "text_files")
RUNS = ("long_command", "slurm_job", "slurm_job_info", "include_tasks")


def test_what_lies_in_the_folder_of_a_job_is_the_work_of_its_user() -> None:
    """Whose folder it is: as root each part of a path would have to be guarded, and what lies there is run."""
    users: dict[str, str] = {}
    for name, modules in (
        *((name, FILES) for name in ("stage", "bring", "torchrun", "units", "write_report")),
        *((name, RUNS) for name in ("slurm", "cancel")),
    ):
        document = yaml.safe_load((ROLE / "tasks" / f"{name}.yml").read_text(encoding="utf-8"))
        for task, user in tasks(document):
            module = next(key for key in task if "." in key).rpartition(".")[2]
            if module in modules or task["name"] in ("Prepare the data on the shared folder", "Read the log"):
                users[task["name"]] = user
    # Of the controller, and of systemd.
    for other in ("Remove the folder on the controller", "Stop the job's units"):
        assert users.pop(other) == ""
    # What it writes there is the user's work as well: test_in_the_job_s_folder_root_works_as_its_user.
    (staged,) = [task for task in yaml.safe_load((ROLE / "tasks" / "stage.yml").read_text()) if "register" in task]
    assert staged["trainium.cluster.internal.job_files"]["owner"] == "{{ training_job_user }}"
    assert len(users) == 13 and set(users.values()) == {"{{ training_job_user }}"}
