"""An environment from a lock file: by uv, by pip where uv cannot, and never what somebody has changed."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from sandbox import install

ROOT = Path(install.__file__).resolve().parents[1]
VERSIONS = ["3.11", "3.12", "3.13"]


def pins(name: str, python: str) -> dict[str, str]:
    """The packages of a lock file and their versions, for one Python on Linux."""
    where = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    where |= {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    lines = re.findall(r"(?m)^[\w.-]+==[^\\\n]+", (ROOT / f"requirements-{name}.lock").read_text(encoding="utf-8"))
    wanted = [Requirement(line) for line in lines]
    return {
        one.name: str(one.specifier).removeprefix("==")
        for one in wanted
        if not one.marker or one.marker.evaluate(where)
    }


def requirements(name: str) -> list[Requirement]:
    """Those of a file and of the files that it takes in."""
    found: list[Requirement] = []
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r "))
        elif line and not line.startswith("#"):
            found.append(Requirement(line))
    return found


@pytest.mark.parametrize("python", VERSIONS)
@pytest.mark.parametrize("name", ["sandbox", "dev"])
def test_the_lock_file_has_what_is_required(name: str, python: str) -> None:
    locked = pins(name, python)
    for one in requirements(f"requirements-{name}.txt"):
        assert locked[re.sub(r"[-_.]+", "-", one.name).lower()] in one.specifier, f"make locks: {one}"


@pytest.mark.parametrize("python", VERSIONS)
def test_the_environment_of_the_demo_is_a_part_of_that_of_the_tests(python: str) -> None:
    assert pins("sandbox", python).items() <= pins("dev", python).items()


def test_the_demo_needs_neither_linters_nor_parallelcluster() -> None:
    assert not {"aws-parallelcluster", "aws-cdk-core", "mypy", "ruff", "selenium"} & set(pins("sandbox", "3.12"))


def wheel(folder: Path, version: str, text: str = "") -> str:
    """Write a wheel of the project ``small``; its line in a lock file."""
    file = folder / f"small-{version}-py3-none-any.whl"
    info = f"small-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("small.py", f"TEXT = {text!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: small\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"small.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return f"small=={version} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


class Place:
    """A checkout with an environment that has pip and uv, and a folder of wheels as the only index."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wheels, self.python = folder, folder / "wheels", folder / "venv" / "bin" / "python"
        self.wheels.mkdir(parents=True)
        (folder / "sandbox").mkdir()
        for name in ("__init__", "commands", "errors", "install", "indexes"):
            shutil.copyfile(ROOT / "sandbox" / f"{name}.py", folder / "sandbox" / f"{name}.py")
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        (self.site,) = (folder / "venv").glob("lib/python*/site-packages")
        distribution = importlib.metadata.distribution("uv")
        name = f"uv-{distribution.version}.dist-info"
        (self.site / name).symlink_to(str(distribution.locate_file(name)))
        (self.python.parent / "uv").symlink_to(Path(sys.executable).with_name("uv"))

    def install(self, locked: str, **environ: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "requirements-x.txt").write_text("small>=1\n", encoding="utf-8")
        (self.folder / "requirements-x.lock").write_text(locked, encoding="utf-8")
        own = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
        command = [str(self.python), "-m", "sandbox.install", "x"]
        environment = {**kept, **own, "UV_CACHE_DIR": str(self.folder / "cache"), **environ}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def installed(self) -> str:
        """What the environment's ``small`` says, or nothing where it is not installed."""
        program = "try:\n    import small\n    print(small.TEXT)\nexcept ImportError:\n    pass"
        return subprocess.run([self.python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("install"))


@pytest.fixture
def place(made: Place) -> Place:
    """The environment without the package."""
    for file in (*made.wheels.iterdir(), *made.site.glob("small*.py"), *made.site.glob("small-*/*")):
        file.unlink()
    for folder in made.site.glob("small-*"):
        folder.rmdir()
    return made


def test_uv_takes_it_from_where_pip_would(place: Place) -> None:
    locked = wheel(place.wheels, "1.0", "one")
    wheel(place.wheels, "2.0", "two")
    done = place.install(locked)
    assert (done.returncode, place.installed()) == (0, "one"), done.stdout
    assert "Installed 1 package" in done.stdout
    assert "pip does it" not in done.stdout


def test_pip_does_what_uv_cannot(place: Place) -> None:
    done = place.install(wheel(place.wheels, "1.0", "one"), PIP_PREFER_BINARY="1")
    assert (done.returncode, place.installed()) == (0, "one")
    assert "prefer-binary is set" in done.stdout


def test_a_version_that_is_not_to_be_had_is_another_that_is_allowed(place: Place) -> None:
    locked = wheel(place.wheels, "1.0", "one")
    next(place.wheels.iterdir()).unlink()
    wheel(place.wheels, "1.1", "more")
    done = place.install(locked)
    assert (done.returncode, place.installed()) == (0, "more")
    assert "requirements-x.txt allows" in done.stdout


def test_a_package_that_was_changed_is_not_installed(place: Place) -> None:
    locked = wheel(place.wheels, "1.0", "one")
    wheel(place.wheels, "1.0", "other")
    done = place.install(locked)
    assert (done.returncode, place.installed()) == (1, "")
    assert "another hash" in done.stdout
