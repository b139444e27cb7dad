"""A job's folder where something is in the way: what is left, mended or refused, and what dpkg is asked."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._training import run_files

Item = dict[str, Any]
LARGE = hashlib.sha256(b"large").hexdigest()


def options(tmp_path: Path, **more: Any) -> Item:
    return {
        "folder": str(tmp_path / "job"),
        "folders": [],
        "owner": "",
        "texts": {},
        "contents": {},
        "checksums": {},
        "modes": {},
        "links": {},
        "packages": [],
        "python": sys.executable,
        "script": "print()",
        "requirements": [],
        "advice": "add it",
        "record": "",
        "variable": "training_job_directory",
        **more,
    }


def staged(tmp_path: Path, check: bool = False, **more: Any) -> Item:
    return run_files.stage(options(tmp_path, **more), check)


@pytest.mark.parametrize(
    ("checksum", "left"),
    [
        (f"sha256:{LARGE}", []),
        # Without a word on its kind, and in capitals.
        (LARGE, []),
        (f"sha256:{LARGE.upper()}", []),
        (f"sha1:{hashlib.sha1(b'large').hexdigest()}", []),  # noqa: S324 - what is given
        (f"sha256:{LARGE[:-1]}", ["a/b/large"]),
    ],
)
def test_a_file_is_known_by_its_checksum(tmp_path: Path, checksum: str, left: list[str]) -> None:
    assert staged(tmp_path, checksums={"a/b/large": checksum})["left"] == ["a/b/large"]
    path = tmp_path / "job/a/b/large"
    path.write_bytes(b"large")
    path.chmod(0o755)
    again = staged(tmp_path, checksums={"a/b/large": checksum})
    assert (again["left"], again["changed"]) == (left, False)


def test_what_could_be_of_any_length_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job/large").touch()
    os.truncate(tmp_path / "job/large", run_files.LARGEST + 1)
    assert run_files.LARGEST == 64 * 1024**3
    assert staged(tmp_path, checksums={"large": LARGE})["left"] == ["large"]


def test_a_file_of_two_names_is_not_the_jobs_alone(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    for name, content in (("large", b"large"), ("text", b"text")):
        (tmp_path / "job" / name).write_bytes(content)
        os.link(tmp_path / "job" / name, tmp_path / name)
    found = staged(tmp_path, checksums={"large": LARGE}, texts={"text": "text"})
    assert (found["left"], found["changed"]) == (["large"], True)
    assert (tmp_path / "job/text").stat().st_nlink == 1


def test_a_difference_is_shown_as_far_as_it_matters(tmp_path: Path) -> None:
    assert staged(tmp_path, texts={"a": "new"})["diff"] == [
        {
            "before_header": str(tmp_path / "job/a"),
            "after_header": str(tmp_path / "job/a"),
            "before": "",
            "after": "new",
        }
    ]
    (tmp_path / "job/a").write_text("older text")
    (shown,) = staged(tmp_path, check=True, texts={"a": "new"})["diff"]
    # Of what was longer the beginning will do.
    assert (shown["before"], shown["after"]) == ("olde", "new")
    assert (tmp_path / "job/a").read_text() == "older text"


def test_a_mode_is_mended_unless_this_is_a_check(tmp_path: Path) -> None:
    given: Item = {"texts": {"a": "x"}, "contents": {"b": base64.b64encode(b"y").decode()}, "modes": {"a": "0640"}}
    assert staged(tmp_path, **given)["changed"]
    paths = (tmp_path / "job", tmp_path / "job/a", tmp_path / "job/b")
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o755, 0o640, 0o755]
    for path in paths:
        path.chmod(0o700)
    foreseen = staged(tmp_path, check=True, **given)
    assert (foreseen["changed"], foreseen["diff"]) == (True, [])
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700] * 3
    assert staged(tmp_path, **given)["changed"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o755, 0o640, 0o755]
    assert not staged(tmp_path, **given)["changed"]


def test_a_check_makes_no_folder(tmp_path: Path) -> None:
    found = staged(tmp_path, check=True, texts={"a": "x"}, links={"l": "/x"}, folders=[str(tmp_path / "all")])
    assert (found["changed"], list(tmp_path.iterdir())) == (True, [])


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job").touch()
    with pytest.raises(TrainiumError, match="job is no folder; remove it"):
        staged(tmp_path)
    with pytest.raises(TrainiumError, match="training_job_directory: "):
        staged(tmp_path, folders=[str(tmp_path / "job/below")])


def test_a_link_that_was_half_laid_is_laid(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job/.l.new").symlink_to("/old")
    (tmp_path / "job/l").symlink_to("/other")
    assert staged(tmp_path, links={"l": "/x"})["changed"]
    assert os.readlink(tmp_path / "job/l") == "/x"
    assert not os.path.lexists(tmp_path / "job/.l.new")


@pytest.mark.parametrize(
    ("text", "reported"),
    [('{"a": 1}', True), ("{}", False), ("[1]", False), ("{", False), ("[" * 100_000, False), ("\xff", False)],
)
def test_a_record_says_something(tmp_path: Path, text: str, reported: bool) -> None:
    assert staged(tmp_path, record="report.json")["reported"] is False
    (tmp_path / "job/report.json").write_bytes(text.encode("latin-1"))
    assert staged(tmp_path, record="report.json")["reported"] is reported
    assert staged(tmp_path)["reported"] is False


@pytest.mark.parametrize(
    ("says", "missing"),
    [
        ("printf 'installed\\ninstalled\\n'", False),
        ("echo installed; exit 1", True),
        ("printf 'installed\\nnot-installed\\n'", True),
        ("exit 1", True),
    ],
)
def test_dpkg_is_asked_for_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, missing: bool) -> None:
    (tmp_path / "dpkg-query").write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/asked\n{says}\n')
    (tmp_path / "dpkg-query").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert staged(tmp_path, packages=["a", "b"])["packages_missing"] is missing
    assert (tmp_path / "asked").read_text() == "--show --showformat=${db:Status-Status}\\n -- a b "
    (tmp_path / "asked").unlink()
    assert staged(tmp_path)["packages_missing"] is False
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("says", "reason"), [("echo locked >&2; exit 2", "locked"), ("exit 127", "no answer")])
def test_a_dpkg_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, reason: str
) -> None:
    (tmp_path / "dpkg-query").write_text(f"#!/bin/sh\n{says}\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TrainiumError, match=rf"does not say which packages are installed \({reason}\)"):
        staged(tmp_path, packages=["a"])


@pytest.mark.parametrize(
    ("python", "script", "sentence"),
    [
        ("/nonexistent/bin/python", "", r"/nonexistent/bin/python cannot be asked for its packages \(.*No such file"),
        (sys.executable, "import sys; sys.exit('first\\nlast')", r"does not say which packages it has \(last\); look"),
        (sys.executable, "import sys; sys.exit(3)", r"which packages it has \(no reason given\); look"),
        (sys.executable, "print('a'); print(' '); print('b')", "lacks what the job requires, a, b; add it"),
    ],
)
def test_an_environment_that_cannot_be_asked_or_lacks_something(
    tmp_path: Path, python: str, script: str, sentence: str
) -> None:
    with pytest.raises(TrainiumError, match=sentence):
        staged(tmp_path, python=python, script=script, requirements=["x"])
    assert not (tmp_path / "job").exists()
