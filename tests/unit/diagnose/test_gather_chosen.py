"""Which logs are gathered on a node, what of their text, and what Slurm is asked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.recognise import sections

SCRIPT = Path(__file__).parents[3] / "roles/diagnose/files/gather.sh"


def gathered(
    *patterns: str, lines: int = 100, newest: int = 9, slurm: str = "no", path: str = ""
) -> dict[str, list[str]]:
    """The lines of each part; the empty one that ends a part is taken off."""
    command = ["sh", str(SCRIPT), str(lines), "10000", str(newest), slurm, *patterns]
    search = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
    done = subprocess.run(command, capture_output=True, check=True, env={"PATH": search, "LC_ALL": "C.UTF-8"})
    return {name: text[: -(text[-1:] == [""]) or None] for name, text in sections("n", done.stdout.decode()).items()}


def log(folder: Path, name: str, text: str | bytes = "text\n", age: int = 0) -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return f"n:{path}"


def test_patterns_are_expanded_and_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    one, two, other = (log(tmp_path, name) for name in ("a.log", "b.log", "c.txt"))
    (tmp_path / "d.log").mkdir()
    os.mkfifo(tmp_path / "e.log")
    (tmp_path / "f.log").symlink_to(tmp_path / "c.txt")
    found = gathered(f"{tmp_path}/*.log", f"{tmp_path}/c.*", f"{tmp_path}/none*", "--")
    assert found == {one: ["text"], two: ["text"], other: ["text"]}


def test_of_the_logs_of_jobs_the_newest_are_shown(tmp_path: Path) -> None:
    names = [log(tmp_path, f"job-{age}.log", age=age) for age in (3, 1, 2, 4)]
    link = tmp_path / "job-9.log"
    link.symlink_to(tmp_path / "job-4.log")
    os.utime(link, (0, 0), follow_symlinks=False)
    assert list(gathered("--", f"{tmp_path}/job-*", newest=2)) == [names[1], names[2]]
    assert len(gathered("--", f"{tmp_path}/job-*", newest=9)) == 4
    assert gathered("--", f"{tmp_path}/none-*") == {}


def test_the_end_of_a_log_is_text_whatever_it_holds(tmp_path: Path) -> None:
    name = log(tmp_path, "a.log", b"one\ntab\there\x1b[31m\x00 red\x07\nbad \xff\xfe utf, good \xc3\xbc\n")
    assert gathered(f"{tmp_path}/a.log", "--") == {name: ["one", "tab\there[31m red", "bad  utf, good ü"]}
    assert gathered(f"{tmp_path}/a.log", "--", lines=1) == {name: ["bad  utf, good ü"]}


def test_slurm_is_asked_where_it_is_wanted_and_there(tmp_path: Path) -> None:
    for name in ("sinfo", "squeue"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*"\necho wrong >&2\n')
        (tmp_path / name).chmod(0o755)
    found = gathered("--", slurm="yes", path=str(tmp_path))
    assert found == {
        "n:sinfo -R": ["sinfo -R --format=%80E %12u %19H %N", "wrong"],
        "n:sinfo": ["sinfo ", "wrong"],
        "n:squeue": ["squeue ", "wrong"],
    }
    assert gathered("--", slurm="no", path=str(tmp_path)) == {}
    (tmp_path / "sinfo").unlink()
    assert gathered("--", slurm="yes", path=str(tmp_path)) == {}


def test_a_slurm_that_fails_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "sinfo").write_text("#!/bin/sh\necho down\nexit 1\n")
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 1\n")
    for name in ("sinfo", "squeue"):
        (tmp_path / name).chmod(0o755)
    assert gathered("--", slurm="yes", path=str(tmp_path))["n:sinfo"] == ["down"]


def test_no_pattern_of_a_job_is_taken_for_one_of_a_log(tmp_path: Path) -> None:
    one, two = log(tmp_path, "a.log"), log(tmp_path, "b.log")
    assert list(gathered(f"{tmp_path}/a*", "--", f"{tmp_path}/b*")) == [one, two]
    assert list(gathered(f"{tmp_path}/a*", "--", f"{tmp_path}/b*", newest=0)) == [one]
