"""Programs that play Slurm: each writes down what it was asked, and says what the test has laid beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

PROGRAM = """#!/bin/bash
here={folder} word={name}
printf '%s\\n' "$*" >> "$here/{name}.asked"
env > "$here/{name}.environment"
if [ {name} = scontrol ]; then
  word=scontrol.$2
  if [ "$2" = job ]; then
    word=scontrol.job.$4
    if [ ! -e "$here/$word.out" ] && [ ! -e "$here/$word.err" ]; then
      echo 'slurm_load_jobs error: Invalid job id specified' >&2
      exit 1
    fi
  fi
fi
[ ! -e "$here/$word.err" ] || cat "$here/$word.err" >&2
[ ! -e "$here/$word.out" ] || cat "$here/$word.out"
exit "$(cat "$here/$word.code" 2> /dev/null || echo 0)"
"""
PROGRAMS = ("sbatch", "scontrol", "squeue", "sacct", "sinfo", "scancel")
BUSY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


class Played:
    """A Slurm whose answers are files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "slurm"
        (self.folder / "bin").mkdir(parents=True)
        for name in PROGRAMS:
            program = self.folder / "bin" / name
            program.write_text(PROGRAM.format(folder=self.folder, name=name))
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{self.folder / 'bin'}:/usr/bin:/bin")

    def says(self, what: str, out: str = "", err: str = "", code: int = 0) -> None:
        """``what``: a program, ``scontrol.job.12`` or ``scontrol.config``."""
        for kind, text in (("out", out), ("err", err), ("code", str(code))):
            (self.folder / f"{what}.{kind}").write_text(text)

    def job(self, number: int, state: str, **fields: str) -> None:
        """What the controller knows of a job."""
        words = {"JobName": "bert", "JobState": state, "Reason": "None", "NodeList": "n[1-2]", "BatchHost": "n1"}
        words.update({"Restarts": "0", "StartTime": "100", "EndTime": "200", "ExitCode": "0:0", **fields})
        line = " ".join(f"{name}={value}" for name, value in words.items())
        self.says(f"scontrol.job.{number}", f"JobId={number} {line}\n")

    def asked(self, program: str) -> list[str]:
        file = self.folder / f"{program}.asked"
        return file.read_text().splitlines() if file.exists() else []

    def environment(self, program: str) -> dict[str, str]:
        lines = (self.folder / f"{program}.environment").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def lacks(self, program: str) -> None:
        (self.folder / "bin" / program).unlink()
