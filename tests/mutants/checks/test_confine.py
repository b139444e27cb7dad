"""What a mutant's process can do: everything, and none of it is there afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.mutants import confine, run
from tests.mutants.baseline import Baseline
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "plugins/module_utils/_common/tags.py"


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_what_it_writes_and_deletes_is_there_for_itself_alone() -> None:
    before = (ROOT / SOURCE).read_text(encoding="utf-8")

    def act() -> int:
        (ROOT / SOURCE).write_text("x", encoding="utf-8")
        (ROOT / "galaxy.yml").unlink()
        (Path(tempfile.gettempdir()) / "left-behind").touch()
        done = subprocess.run(["cat", ROOT / SOURCE], capture_output=True, text=True, check=True)
        return 7 if done.stdout == "x" and not (ROOT / "galaxy.yml").exists() else 1

    assert ended(confine.start(ROOT, act)) == 7
    assert (ROOT / SOURCE).read_text(encoding="utf-8") == before
    assert (ROOT / "galaxy.yml").exists()
    assert not (Path(tempfile.gettempdir()) / "left-behind").exists()


def test_the_machine_s_files_are_not_its_own() -> None:
    def act() -> int:
        with pytest.raises(OSError, match="Read-only file system"):
            Path("/etc/trainium-mutants").touch()
        return 7

    assert ended(confine.start(ROOT, act)) == 7


def test_its_processes_end_with_it() -> None:
    read, write = os.pipe()

    def act() -> int:
        subprocess.Popen(["sleep", "600"], pass_fds=[write], start_new_session=True)
        os.write(write, b"x")
        time.sleep(600)
        return 0

    pid = confine.start(ROOT, act)
    os.close(write)
    assert os.read(read, 1) == b"x"
    confine.kill(pid)
    # The end of the pipe: nobody has its other side any more.
    assert os.read(read, 1) == b""
    os.close(read)


TEST = "tests/unit/controller/test_plain.py"
REACHED = "plugins/plugin_utils/_plain.py"


def choice(tests: list[str]) -> run.Choice:
    known = Baseline(dict.fromkeys(tests, 0.1), {REACHED: set(tests)})
    return run.Choice(known, None, 60)


def verdict(new: str, tests: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the file with something at its end."""
    monkeypatch.setattr(run, "MORE", 20.0)
    found: list[run.Verdict] = []
    end = len((ROOT / REACHED).read_text(encoding="utf-8"))
    mutant = Mutant(REACHED, end, end, new, "what", 1, 1, 1)
    assert run.tried(ROOT, [mutant], choice(tests), 1, time.monotonic() + 600, found.append)
    return found[0].what


def test_a_mutant_is_noticed_or_survives_or_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{TEST}::{name}" for name in re.findall(r"^def (test_\w+)", (ROOT / TEST).read_text(), re.MULTILINE)]
    assert verdict("", names, monkeypatch) == run.SURVIVED
    assert verdict("raise SystemError\n", names, monkeypatch) == run.NOTICED
    assert verdict("while True:\n    pass\n", names, monkeypatch) == run.HUNG
    assert verdict("", [], monkeypatch) == run.UNREACHED
