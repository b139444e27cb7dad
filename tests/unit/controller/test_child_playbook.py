"""A playbook as a program of its own: its command line, its end, and the sentence for its failure."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible import constants
from ansible_collections.trainium.cluster.plugins.action.internal import child_playbook


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What becomes of this process stays as it is."""
    monkeypatch.setattr(child_playbook, "_prctl", lambda _option, _value: None)


def test_it_has_inventories_vaults_and_variables_of_the_run_and_its_own_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: dict[str, Any] = {
        "inventory": ["a", "b"],
        "vault_ids": ["x@prompt"],
        "extra_vars": ["k=v"],
        "vault_password_files": ["/secret"],
        "tags": ["all"],
    }
    monkeypatch.setattr(sys, "argv", ["/no/such/ansible-playbook"])
    program, *words = child_playbook.command("p.yml", "/tmp/v.json", own)  # noqa: S108
    assert program == str(Path(sys.executable).parent / "ansible-playbook")
    assert words == [
        *("--inventory", "a", "--inventory", "b", "--vault-id", "x@prompt", "--extra-vars", "k=v"),
        *("--vault-password-file", "/secret", "--extra-vars", "@/tmp/v.json", "p.yml"),
    ]
    assert child_playbook.command("p.yml", "v", {"inventory": None})[1:] == ["--extra-vars", "@v", "p.yml"]
    # That which runs is taken again, but no other program such as this one.
    for name, taken in (("ansible-playbook", True), ("pytest", False)):
        (tmp_path / name).touch()
        monkeypatch.setattr(sys, "argv", [str(tmp_path / name)])
        assert (child_playbook.command("p", "v", {})[0] == str(tmp_path / name)) is taken


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('fatal: [a]: FAILED! => {"changed": false, "msg": "no \\"b\\"\\n  c. "}\nok: [b]\n', 'no "b" c'),
        # A role says in the end what was wrong.
        ('fatal: [a]: => {"msg": "one"}\nfailed: [b]: => {\n    "msg": "two"\n}\nPLAY RECAP\n', "two"),
        ('ok: [a] => {"msg": "one"}\n' + "".join(f"{number}\n" for number in range(20)), "12 13 14 15 16 17 18 19"),
        ("fatal: [a]: UNREACHABLE\n  x\n", "fatal: [a]: UNREACHABLE x"),
        ('fatal: [a] => {"msg": "a\\u001b[2Jb"}\n', "a\\x1b[2Jb"),
    ],
)
def test_why_it_failed_is_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    log = tmp_path / "log"
    log.write_text(text, encoding="utf-8")
    told = child_playbook.reason(log, "nodes", 2, 60)
    assert told == f"nodes failed (exit code 2): {said}; all of its words are in {log}."


def test_a_long_reason_is_cut_at_a_word(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f'fatal: x => {{"msg": "{"word " * 200}"}}\n', encoding="utf-8")
    told = child_playbook.reason(log, "nodes", 2, 60)
    assert "word; all of its" in told or "word ; all of its" in told
    assert len(told.partition(": ")[2].partition("; all")[0]) <= 600


@pytest.mark.parametrize("code", [124, 137])
def test_one_that_took_too_long_is_told_so(tmp_path: Path, code: int) -> None:
    told = child_playbook.reason(tmp_path / "log", "nodes", code, 60)
    assert told == f"nodes did not end within 60 s and was ended; its words are in {tmp_path / 'log'}."


@pytest.mark.usefixtures("alone")
def test_what_it_says_is_in_a_file_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "a.py"
    script.write_text(
        "import os, sys\nprint(os.environ['ANSIBLE_NOCOLOR'], os.environ['ANSIBLE_FORCE_COLOR'], sys.argv[1:])\n"
        "print('wrong', file=sys.stderr)\nprint(repr(sys.stdin.read()))\nsys.exit(3)\n",
        encoding="utf-8",
    )
    assert child_playbook.run_limited([str(script), "x"], log, 600) == 3
    lines = sorted(log.read_text(encoding="utf-8").splitlines())
    assert lines == sorted(["1 0 ['x']", "wrong", "''"])
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    # Whoever laid something there meanwhile is not written to.
    with pytest.raises(FileExistsError):
        child_playbook.run_limited([str(script)], log, 600)


# Run by itself, since all that is below the process is killed, such as the servers of other tests below pytest.
ENDS = """
import sys
from pathlib import Path
from ansible_collections.trainium.cluster.plugins.action.internal import child_playbook

script, folder = sys.argv[1:]
# A busy machine takes longer until it has begun.
for limit in (2, 8, 32, 128):
    log = Path(folder) / f"log{limit}"
    code = child_playbook.run_limited([script], log, limit)
    print(code, child_playbook._descendants(), flush=True)
    if "begun" in log.read_text(encoding="utf-8"):
        print("begun")
        break
"""


def test_what_it_has_begun_ends_with_it(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    begun = "import subprocess, sys, time\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    script.write_text(f"{begun}print('begun', flush=True)\ntime.sleep(600)\n", encoding="utf-8")
    words = [sys.executable, "-c", ENDS, str(script), str(tmp_path)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=500, check=True)
    *ended, last = done.stdout.splitlines()
    assert (set(ended), last) == ({"124 set()"}, "begun")


def test_variables_are_in_a_file_that_only_its_owner_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    with child_playbook._written({"a": [1, "x"]}) as path:
        assert json.loads(Path(path).read_text(encoding="utf-8")) == {"a": [1, "x"]}
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert (Path(path).parent, Path(path).suffix) == (tmp_path, ".json")
    assert list(tmp_path.iterdir()) == []


def test_empty_lines_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(child_playbook, "tell", shown.append)
    for line in ("", "  ", " a "):
        child_playbook._show(line)
    assert shown == ["  |  a "]
