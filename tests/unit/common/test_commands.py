"""Running a program: its answer, its end by the clock, and what is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._common import commands

PYTHON = sys.executable


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not asked for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + 300
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def test_an_answer_has_both_outputs_and_the_code() -> None:
    told = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert commands.run([PYTHON, "-c", told], 30) == commands.Reply(True, True, 3, "out\n", "err\n")


def test_much_output_on_both_sides_and_what_is_no_text() -> None:
    told = "import os\nfor _ in range(64):\n os.write(1, b'x' * 65536); os.write(2, b'\\xff' * 65536)"
    reply = commands.run([PYTHON, "-c", told], 60)
    assert (len(reply.out), len(reply.err)) == (64 * 65536, 64 * 65536)
    assert set(reply.err) == {"\N{REPLACEMENT CHARACTER}"}


def test_programs_speak_untranslated_and_get_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    # gettext(3) asks LANGUAGE first.
    monkeypatch.setenv("LANGUAGE", "de")
    told = "import os, sys; print(*map(os.environ.get, ['LC_ALL', 'LANGUAGE', 'MINE']), repr(sys.stdin.read()))"
    assert commands.run([PYTHON, "-c", told], 30, environment={"MINE": "x"}).out == "C C x ''\n"
    assert commands.run([PYTHON, "-c", told], 30).out == "C C None ''\n"


def test_what_is_written_to_a_program_reaches_it_whole() -> None:
    text = "ü" * 1_000_000
    told = "import sys; print(len(sys.stdin.buffer.read()))"
    assert commands.execute([PYTHON, "-c", told], 60, os.environ, written=text).out == "2000000\n"


def test_a_program_that_does_not_read_is_no_failure() -> None:
    assert commands.execute(["/bin/true"], 30, os.environ, written="x" * 1_000_000).code == 0


def test_a_program_that_is_not_there_or_cannot_be_run(tmp_path: Path) -> None:
    assert commands.run(["no-such-program"], 30) == commands.ABSENT
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    assert commands.run([str(broken)], 30) == commands.Reply(True, True, 126, "", "No such file or directory")


def test_a_program_is_looked_for_in_the_folders_first_and_where_root_s_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "tool"
        program.write_text(f"#!/bin/sh\necho {folder}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "b"))
    assert commands.find("tool") == str(tmp_path / "b/tool")
    assert commands.find("tool", [str(tmp_path / "a")]) == str(tmp_path / "a/tool")
    assert commands.run(["tool"], 30, [str(tmp_path / "a")]).out == "a\n"
    # Of libc, which every host has.
    assert Path(commands.find("ldconfig") or "").parent in (Path("/sbin"), Path("/usr/sbin"))
    monkeypatch.delenv("PATH")
    assert commands.find("tool") is None


def test_an_end_by_a_signal_is_told_as_such() -> None:
    assert commands.run(["sh", "-c", "kill -9 $$"], 30) == commands.Reply(True, True, -9, "", "")


def test_one_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    started = time.monotonic()
    reply = commands.run(["sh", "-c", f"sleep 300 & echo $! > {noted}; wait"], 1)
    assert reply == commands.Reply(True, False, 124, "", "")
    assert time.monotonic() - started < 10
    assert gone(int(noted.read_text()))


def test_an_open_file_goes_along(tmp_path: Path) -> None:
    with (tmp_path / "kept").open("w") as kept:
        told = f"import os; os.write({kept.fileno()}, b'told')"
        reply = commands.run([PYTHON, "-c", told], 30, pass_fds=[kept.fileno()])
    assert (reply.code, (tmp_path / "kept").read_text()) == (0, "told")


def test_it_runs_beside_other_threads() -> None:
    replies: list[commands.Reply] = []
    threads = [threading.Thread(target=lambda: replies.append(commands.run(["echo", "x"], 30))) for _number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [commands.Reply(True, True, 0, "x\n", "")] * 8


def test_an_interruption_ends_the_program_and_says_nothing_of_the_loop(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    # Whoever runs the tests in the background has interruptions ignored, and so would the program.
    told = (
        "import signal\n"
        "from ansible_collections.trainium.cluster.plugins.module_utils._common import commands\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"commands.run(['sh', '-c', 'echo $$ > {noted}; exec sleep 300'], 300)"
    )
    with subprocess.Popen([PYTHON, "-c", told], stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 300
        while not (noted.exists() and noted.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=300)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert "is closed" not in err
    assert gone(int(noted.read_text()))
