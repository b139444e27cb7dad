"""The workflows take actions by their commits, and give a token to no job that installs packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def jobs(path: Path) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_commits_with_their_version_beside_them(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+|\./\.github/workflows/[\w-]+\.yml", one), one


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_job_with_a_secret_installs_anything(path: Path) -> None:
    for job in jobs(path):
        commands = "\n".join(step.get("run", "") for step in job.get("steps", []))
        if re.search(r"secrets\.|github\.token", yaml.safe_dump(job)):
            assert not re.search(r"\b(pip|pipx|uv|npm|apt-get|setup|publish-check|ansible-\w+)\b", commands)
        for target in re.findall(r"make ([a-z-]+)", commands):
            assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8")), target
        for tool in re.findall(r"docs/tools/\w+\.py", commands):
            assert (ROOT / tool).exists(), tool


def test_what_a_release_compares_is_what_was_checked() -> None:
    names = {}
    for name, job in (("publish-check", "publish-check"), ("release", "release")):
        told = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
        steps = [step.get("with", {}) for step in told["jobs"][job]["steps"]]
        names[name] = {given["name"] for given in steps if "name" in given}
    assert names["release"] == {"collection"}
    assert names["release"] < names["publish-check"]
