"""The module job_files: a job's folder as it should be, by one call."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.modules.internal import job_files

from tests.in_process import ended

NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can work as another user")
LACKS = "import sys; print('\\n'.join(f'{one} (it has none)' for one in sys.argv[1:] if one.startswith('no-')))"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(**more: Any) -> dict[str, Any]:
        folders = [str(tmp_path / "all"), str(tmp_path / "all" / "jobs")]
        given = {
            "folders": folders,
            "folder": f"{folders[1]}/own-0",
            "texts": {"job.sh": "true\n", "environment.json": "{}"},
            "contents": {"own.py": base64.b64encode(b"\xff\x00").decode()},
            "modes": {"environment.json": "0600"},
            "record": "report.json",
            "variable": "training_job_directory",
            **more,
        }
        return ended(job_files.main, given, capsys)[0]

    return call


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_all_is_written_once(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "all" / "jobs" / "own-0"
    foreseen = run(_ansible_check_mode=True, _ansible_diff=True)
    assert (foreseen["changed"], foreseen["reported"], folder.parent.parent.exists()) == (True, False, False)
    assert [one["after"] for one in foreseen["diff"]] == ["true\n", "{}", "\ufffd\x00"]
    done = run()
    assert (done["changed"], done["left"], done["packages_missing"]) == (True, [], False)
    assert modes(folder) == {"job.sh": 0o755, "environment.json": 0o600, "own.py": 0o755}
    assert (folder / "own.py").read_bytes() == b"\xff\x00"
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    again = run()
    assert again["changed"] is False and "diff" not in again
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before
    (folder / "report.json").write_text("{}")
    assert run()["reported"] is False
    (folder / "report.json").write_text('{"name": "own"}')
    assert run()["reported"] is True


def test_what_is_only_compared_is_told(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "all" / "jobs" / "own-0"
    sums = {"large": f"sha256:{hashlib.sha256(b'large').hexdigest()}", "below/other": "sha256:" + "0" * 64}
    assert run(checksums=sums)["left"] == ["large", "below/other"]
    assert (folder / "below").is_dir()
    (folder / "large").write_bytes(b"large")
    (folder / "large").chmod(0o600)
    assert run(checksums=sums)["left"] == ["below/other"]
    assert stat.S_IMODE((folder / "large").stat().st_mode) == 0o755


@pytest.mark.parametrize("what", ["link", "pipe", "closed", "link to nothing"])
def test_what_lies_in_the_place_of_a_file_is_replaced(run: Any, tmp_path: Path, what: str) -> None:
    run()
    path, other = tmp_path / "all" / "jobs" / "own-0" / "job.sh", tmp_path / "other"
    path.unlink()
    other.write_text("true\n")
    if what == "pipe":
        os.mkfifo(path)
    elif what == "closed":
        path.write_text("true\n")
        path.chmod(0)
    else:
        path.symlink_to(other if what == "link" else tmp_path / "nothing")
    assert run()["changed"] is True
    assert (path.read_text(), path.is_symlink(), stat.S_IMODE(path.stat().st_mode)) == ("true\n", False, 0o755)
    assert other.read_text() == "true\n" and not (tmp_path / "nothing").exists()


def test_a_folder_in_the_place_of_a_file_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "all" / "jobs" / "own-0" / "job.sh").mkdir(parents=True)
    said = run()["msg"]
    assert said.startswith("job_files: ") and "(Is a directory)" in said and said.endswith(".")


def test_the_link_to_events_is_laid_anew_where_it_leads_elsewhere(run: Any, tmp_path: Path) -> None:
    link = tmp_path / "all" / "jobs" / "own-0" / "tensorboard"
    assert run(links={"tensorboard": "/output"})["changed"] is True
    assert run(links={"tensorboard": "/output"})["changed"] is False
    link.unlink()
    link.mkdir()
    assert run(links={"tensorboard": "/output"}, _ansible_check_mode=True)["changed"] is True
    assert link.is_dir() and run(links={"tensorboard": "/output"})["changed"] is True
    assert os.readlink(link) == "/output"


def test_an_environment_that_lacks_something_is_refused_before_anything_is_written(run: Any, tmp_path: Path) -> None:
    given = {"python": sys.executable, "script": LACKS, "requirements": ["torch", "no-such==1"], "advice": "add it"}
    said = run(**given)["msg"]
    environment = os.path.dirname(os.path.dirname(sys.executable))
    assert said == f"job_files: {environment} lacks what the job requires, no-such==1 (it has none); add it."
    assert not (tmp_path / "all").exists()
    # In check mode nobody has made the environment.
    assert "msg" not in run(_ansible_check_mode=True, **given)
    assert "does not say which packages" in run(**{**given, "script": "1/0"})["msg"]
    assert run(**{**given, "requirements": ["torch"]})["changed"] is True


@root
def test_in_the_job_s_folder_root_works_as_its_user(run: Any, tmp_path: Path) -> None:
    """A link of the user leads only to where the user could write."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path not in (Path("/"), Path("/tmp")):  # noqa: S108
            path.chmod(path.stat().st_mode | 0o055)
    assert run(owner="nobody")["changed"] is True
    assert os.geteuid() == 0
    folder = tmp_path / "all" / "jobs" / "own-0"
    assert {path.stat().st_uid for path in [folder.parent, folder, *folder.iterdir()]} == {NOBODY}
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (folder / "below").symlink_to(private)
    os.lchown(folder / "below", NOBODY, NOBODY)
    assert (
        "below cannot be written (Operation not permitted)"
        in run(owner="nobody", texts={"below/job.sh": "true\n"})["msg"]
    )
    assert list(private.iterdir()) == []
    given = {"python": "/usr/bin/python3", "script": "import os; print(os.getresuid(), os.getgroups())"}
    assert f"({NOBODY}, {NOBODY}, {NOBODY}) [{NOBODY}]" in run(owner="nobody", requirements=["a"], **given)["msg"]
