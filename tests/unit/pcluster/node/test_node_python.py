"""The part of the nodes' script that finds a Python and makes an environment, by bash on images of several kinds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.collection_archive import build
from packaging.requirements import Requirement

from tests.sandbox_driver import REPOSITORY

ROLE = REPOSITORY / "roles" / "parallelcluster"
SCRIPT = (ROLE / "templates" / "python.sh.j2").read_text(encoding="utf-8")
# As the image of Amazon Linux 2023 has it.
OLD = "#!/bin/sh\nexit 1\n"


class Image:
    """The interpreters of a node's image, and no others."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.pyenv = folder / "pyenv"
        self.bin.mkdir()
        # Without the package python3-venv; the module venv itself is in the standard library of Debian and Ubuntu.
        (folder / "without").mkdir()
        (folder / "without" / "ensurepip.py").write_text("raise SystemExit('No module named ensurepip')\n")

    def has(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def own(self, name: str, pip: bool = True) -> Path:
        """An interpreter like this one, on which pip may be missing."""
        path = self.pyenv / "versions" / name / "bin" / "python3" if name[0].isdigit() else self.bin / name
        refuse = 'case "$*" in "-m venv --without-pip "*) ;; "-m venv "*) echo ensurepip >&2; exit 1;; esac\n'
        refuse += "" if pip else 'case "$*" in "-m pip "*) exit 1;; esac\n'
        self.has(path, f'#!/bin/sh\n{refuse}exec {sys.executable} "$@"\n')
        return path

    def run(self, commands: str, python: str = "") -> subprocess.CompletedProcess[str]:
        head = 'set -euo pipefail\nfail() { echo "failed: $1" >&2; exit 1; }\n'
        # The rest of the path has other interpreters of this machine.
        text = SCRIPT.replace("pyenv=/opt/parallelcluster/pyenv", f"pyenv={self.pyenv}")
        text = text.replace("python3.13 python3.12 python3.11", "")
        return subprocess.run(
            ["bash", "-c", f"{head}python={python}\n{text}\nfind_python\n{commands}"],
            env={**os.environ, "PATH": f"{self.bin}:/usr/bin:/bin", "PYTHONPATH": str(self.folder / "without")},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.mark.parametrize("pip", [True, False])
def test_an_environment_without_python3_venv(image: Image, tmp_path: Path, pip: bool) -> None:
    image.own("python3", pip=pip)
    image.own("3.14.8")
    # What needs the package.
    assert image.run(f'"$interpreter" -m venv {tmp_path}/refused').returncode == 1
    done = image.run(f'make_environment {tmp_path}/made; echo "$interpreter"; "${{pip[@]}}" inspect --local')
    assert done.returncode == 0, done.stderr
    interpreter, _newline, report = done.stdout.partition("\n")
    assert interpreter == str(image.bin / "python3")
    assert json.loads(report)["installed"] == []
    assert (tmp_path / "made" / "bin" / "python").exists()


def test_parallelcluster_s_own_python_where_the_distribution_s_is_old(image: Image, tmp_path: Path) -> None:
    image.has(image.bin / "python3", OLD)
    own = image.own("3.14.8")
    done = image.run(f'make_environment {tmp_path}/made; echo "$interpreter"')
    assert (done.returncode, done.stdout.strip()) == (0, str(own)), done.stderr


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        (
            "python3",
            "python3 is not Python 3.10 or newer, which Ansible needs; name another in parallelcluster_node_python",
        ),
        ("", "is Python 3.10 or newer, which Ansible needs; name one in parallelcluster_node_python"),
    ],
)
def test_no_python_that_serves(image: Image, python: str, sentence: str) -> None:
    image.has(image.bin / "python3", OLD)
    done = image.run("echo found", python)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_the_collection_is_unpacked_where_ansible_finds_it(image: Image, tmp_path: Path) -> None:
    image.own("python3")
    archive = tmp_path / "collection.tar.gz"
    archive.write_bytes(build({"playbooks/node.yml": (b"[]\n", False)}))
    stubs = f"make_environment() {{ :; }}; install_requirements() {{ :; }}; install_ansible {tmp_path}/made "
    done = image.run(f"{stubs}{archive}")
    assert done.returncode == 0, done.stderr
    unpacked = tmp_path / "made" / "collections" / "ansible_collections" / "trainium" / "cluster" / "playbooks"
    assert (unpacked / "node.yml").read_bytes() == b"[]\n"
    archive.write_bytes(b"cut")
    done = image.run(f"{stubs}{archive}")
    assert done.returncode == 1
    assert "the collection cannot be installed (" in done.stderr


def test_no_pip_at_all(image: Image, tmp_path: Path) -> None:
    image.own("python3", pip=False)
    done = image.run(f"make_environment {tmp_path}/made")
    assert done.returncode == 1
    said = f"there is no pip 22.3 or newer for {image.bin / 'python3'} (No module named ensurepip); take an image with"
    assert said in done.stderr


def test_an_interpreter_that_makes_no_environment_says_why(image: Image, tmp_path: Path) -> None:
    text = "#!/bin/sh\ncase $* in *--without-pip*) echo first; echo no space left >&2; exit 1;; esac\n"
    image.has(image.bin / "python3", f'{text}exec {sys.executable} "$@"\n')
    done = image.run(f"make_environment {tmp_path}/made")
    assert done.returncode == 1
    assert f"{image.bin / 'python3'} cannot make a virtual environment (no space left); name another" in done.stderr


PIP = """said() {{ echo "$@" >> {folder}/asked; cat >> {folder}/asked; {then}; }}
pip=(said) pip_options=(--index-url=https://example.com) requirements=(ansible-core "jinja2<4") lock='a==1'
"""


def test_ansible_is_installed_from_the_lock_file(image: Image, tmp_path: Path) -> None:
    image.own("python3")
    done = image.run(PIP.format(folder=tmp_path, then="true") + "install_requirements")
    assert done.returncode == 0, done.stderr
    options = "--disable-pip-version-check --no-input --progress-bar=off --quiet --index-url=https://example.com"
    assert (tmp_path / "asked").read_text() == f"install {options} ansible-core jinja2<4\na==1\n"
    # Bash before 4.4 takes an empty array for one that is not there.
    done = image.run(PIP.format(folder=tmp_path, then="true") + "pip_options=()\ninstall_requirements")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("said", "reason"),
    [("echo one; echo ERROR: no match; echo hint >&2", "ERROR: no match"), ("echo one; echo two >&2", "two")],
)
def test_what_pip_says_of_a_failure_is_shown(image: Image, tmp_path: Path, said: str, reason: str) -> None:
    image.own("python3")
    done = image.run(PIP.format(folder=tmp_path, then=f"{said}; return 1") + "install_requirements")
    assert done.returncode == 1
    assert f"ansible-core cannot be installed ({reason}); check parallelcluster_node_index_url." in done.stderr


@pytest.mark.parametrize(("python", "version"), [("3.10", "2.17.5"), ("3.12", "2.19.4"), ("3.14", "2.20.1")])
def test_one_ansible_for_each_python(python: str, version: str) -> None:
    text = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())["__parallelcluster_node_requirements"]
    both = [Requirement(one) for one in json.loads(text[text.index('["') : text.rindex("]") + 1])]
    (one,) = [each for each in both if each.marker and each.marker.evaluate({"python_version": python})]
    assert one.specifier.contains(version)


@pytest.mark.parametrize(("python", "version"), [("3.10", "2.17."), ("3.12", "2.19."), ("3.14", "2.20.")])
def test_the_lock_file_has_one_ansible_for_each_python_and_hashes_for_all(python: str, version: str) -> None:
    text = (ROLE / "files" / "ansible-core.lock").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"(?m)^(?=[a-z])", text) if not entry.startswith("#")]
    assert all("--hash=sha256:" in entry for entry in entries)
    pins = [Requirement(entry.partition(" \\")[0]) for entry in entries]
    where = {"python_version": python, "python_full_version": f"{python}.0", "implementation_name": "cpython"}
    here = {pin.name: str(pin.specifier) for pin in pins if not pin.marker or pin.marker.evaluate(where)}
    assert here["ansible-core"].startswith(f"=={version}")
    if python == "3.12":
        mirror = (REPOSITORY / "sandbox" / "mirror" / "requirements-mirror.txt").read_text(encoding="utf-8")
        missing = {f"{name}{pin}" for name, pin in here.items()} - set(mirror.splitlines())
        assert not missing, "the sandbox's nodes find these in its mirror only"
