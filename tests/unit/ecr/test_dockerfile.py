"""The Dockerfile of role eks_image: its steps, run by a shell with the programs of a base in a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

TEMPLATE = Path(__file__).parents[3] / "roles/eks_image/templates/Dockerfile.j2"
NOTHING: dict[str, Any] = {
    "eks_image_base": "example.com/base:1",
    "eks_image_lock_file": "",
    "eks_image_requirements": [],
    "eks_image_packages": [],
    "eks_image_files": [],
    "eks_image_commands": [],
    "__eks_image_missing": [],
    "__eks_image_pip": ["python3 -m pip install", "--index-url 'https://a.example/b c'"],
}
PIP = "python3 -m pip install --index-url https://a.example/b c"


def instructions(**variables: Any) -> list[str]:
    """Without comments, each in one line, as a builder reads them."""
    templar = Templar(loader=DataLoader(), variables={**NOTHING, **variables})
    text = str(templar.template(trust_as_template(TEMPLATE.read_text())))
    assert text.startswith("# Of role eks_image")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return [line for line in re.sub(r"\\\n", "", lines).splitlines() if line.strip()]


def steps(**variables: Any) -> list[str]:
    return [one.removeprefix("RUN ") for one in instructions(**variables) if one.startswith("RUN ")]


class Base:
    """Programs that write down what they are told, and do what they are given to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("dpkg", "apt-get", "python3", "rm"):
            self.has(name, "")

    def has(self, name: str, body: str) -> None:
        words = [f'echo "{name} $*" >> {self.folder}/calls', body]
        (self.folder / name).write_text("\n".join(["#!/bin/sh", *words]) + "\n")
        (self.folder / name).chmod(0o755)

    def run(self, step: str) -> tuple[int, list[str]]:
        """The code, and what was called; what is written to /tmp is written to the folder."""
        (self.folder / "calls").write_text("")
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin"}
        here = step.replace("/tmp/", f"{self.folder}/")  # noqa: S108 - of the image
        done = subprocess.run(
            ["/bin/sh", "-c", here], env=environment, cwd=os.sep, capture_output=True, text=True, check=False
        )
        return done.returncode, (self.folder / "calls").read_text().replace(f"{self.folder}/", "/tmp/").splitlines()  # noqa: S108


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return Base(tmp_path)


def test_a_base_that_has_everything_gets_nothing() -> None:
    assert instructions() == ["FROM example.com/base:1"]


def test_files_and_commands_come_last_in_their_order() -> None:
    files = [{"src": "a b", "dest": "/opt/a b"}, {"src": "own", "dest": "/opt/own//"}]
    found = instructions(eks_image_files=files, eks_image_commands=["echo 1", "echo 2"], eks_image_packages=["git"])
    assert found[2:] == [
        *('COPY ["a b", "/opt/a b"]', 'COPY ["own", "/opt/own//"]'),
        *("RUN echo 1", "RUN echo 2"),
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"eks_image_lock_file": "a.lock"},
        {"eks_image_requirements": ["a"]},
        {"__eks_image_missing": ["a==1"]},
        {"eks_image_packages": ["git"]},
    ],
)
def test_only_where_pip_installs_a_python_of_the_distribution_is_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    held = [one for one in steps(**asked) if "EXTERNALLY-MANAGED" in one]
    assert len(held) == ("eks_image_packages" not in asked)
    for step in held:
        # It is asked of the Python that runs it, which here lies in a virtual environment.
        (tmp_path / "python3").symlink_to(sys.executable)
        paths = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        assert subprocess.run(["sh", "-c", step], env=paths, check=False).returncode == 0
        code = step.removeprefix("python3 -c ").strip("'")
        for prefix, there, refused in (
            ("sys.base_prefix", True, True),
            ("sys.base_prefix", False, False),
            ("''", True, False),
        ):
            given = f"import sys, os.path; sys.prefix = {prefix}; os.path.exists = lambda path: {there}; {code}"
            done = subprocess.run([sys.executable, "-c", given], capture_output=True, text=True, check=False)
            assert bool(done.returncode) == refused
            assert ("python3 of the base belongs to its distribution" in done.stderr) == refused


def test_packages_that_are_there_are_not_installed(base: Base) -> None:
    (step,) = steps(eks_image_packages=["git", "a;b"])
    assert base.run(step) == (0, ["dpkg --status git a;b"])


def test_packages_that_are_missing_are_installed_and_their_lists_taken_away(base: Base) -> None:
    (step,) = steps(eks_image_packages=["git", "a;b"])
    base.has("dpkg", "exit 1")
    code, calls = base.run(step)
    assert code == 0 and calls[:3] == [
        *("dpkg --status git a;b", "apt-get update"),
        "apt-get install --yes --no-install-recommends git a;b",
    ]
    assert len(calls) == 4 and calls[3].startswith("rm -rf /var/lib/apt/lists/")
    base.has("apt-get", '[ "$DEBIAN_FRONTEND$1" != noninteractiveinstall ] || exit 3')
    assert base.run(step)[0] == 3
    base.has("apt-get", "exit 100")
    code, calls = base.run(step)
    assert (code, calls) == (100, ["dpkg --status git a;b", "apt-get update"])


def test_a_lock_file_is_all_that_is_installed(base: Base) -> None:
    asked = {"eks_image_lock_file": "/home/me/a.lock", "eks_image_requirements": ["a"]}
    assert "COPY requirements.lock /opt/trainium/requirements.lock" in instructions(**asked)
    _held, step = steps(**asked)
    code, calls = base.run(step)
    assert (code, calls) == (0, [f"{PIP} --require-hashes --requirement /opt/trainium/requirements.lock"])


def test_what_the_base_has_stays_as_it_is_but_for_what_is_asked_for(base: Base) -> None:
    _held, step = steps(eks_image_requirements=["Torch_NeuronX>=2", "a[b]==1; python_version > '3'"])
    # As pip lists it: what was installed from a path has no version.
    there = "torch-neuronx==2.9\\ntorch==2.9\\nA==3\\nb.a==1\\nown @ file:///own\\n"
    keep = (
        f'while [ "$1" != --constraint ] && [ $# -gt 0 ]; do shift; done; [ $# = 0 ] || cat "$2" > {base.folder}/kept'
    )
    base.has("python3", f'if [ "$3" = list ]; then printf "{there}"; else {keep}; fi')
    code, calls = base.run(step)
    assert (code, (base.folder / "kept").read_text().split()) == (0, ["torch==2.9", "b.a==1"])
    listed = "python3 -m pip list --format=freeze --exclude-editable"
    asked = "--constraint /tmp/base.txt Torch_NeuronX>=2 a[b]==1; python_version > '3'"
    assert calls == [listed, f"{PIP} {asked}", "rm /tmp/base.txt"]
    # Where nothing else is there, nothing is held.
    base.has("python3", 'if [ "$3" = list ]; then echo a==1; fi')
    assert base.run(step)[0] == 0 and (base.folder / "base.txt").read_text() == ""
    base.has("python3", 'if [ "$3" = list ]; then echo a==1; else exit 4; fi')
    code, calls = base.run(step)
    assert (code, len(calls)) == (4, 2)


def test_of_what_is_always_needed_only_what_is_missing_is_installed(base: Base) -> None:
    _held, step = steps(__eks_image_missing=["a==1", "b==2;x", "c"])
    # The base has the first, in whatever version.
    base.has("python3", '[ "$3" != show ] || [ "$5" = a ]')
    shown = "python3 -m pip show --quiet"
    assert base.run(step) == (0, [f"{shown} a", f"{shown} b", f"{PIP} b==2;x", f"{shown} c", f"{PIP} c"])
    base.has("python3", "exit 1")
    assert base.run(step) == (1, [f"{shown} a", f"{PIP} a==1"])
