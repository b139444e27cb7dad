"""The sandbox deletes only a folder that it made, whatever TRAINIUM_SANDBOX_DIR names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sandbox import __main__ as command_line
from sandbox import lifecycle, machine
from sandbox.errors import SandboxError
from sandbox.paths import Paths


@pytest.fixture(autouse=True)
def _stay_who_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "become_root", lambda: None)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of somebody's, with names in it that the sandbox uses too."""
    folder = tmp_path / "srv"
    for name in ("run", "hosts", "filesystems", "cache"):
        (folder / name).mkdir(parents=True)
        (folder / name / "precious").write_text("mine\n", encoding="utf-8")
    return folder


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def command(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path) -> int:
    """``python -m sandbox NAME`` with a folder."""
    monkeypatch.setenv("TRAINIUM_SANDBOX_DIR", str(folder))
    return command_line.run(command_line.parser().parse_args([name]), Paths.from_environment())


@pytest.mark.parametrize("name", ["purge", "down", "up"])
def test_a_folder_of_somebody_else_is_not_touched(monkeypatch: pytest.MonkeyPatch, foreign: Path, name: str) -> None:
    monkeypatch.setattr(machine, "check", lambda: None)
    monkeypatch.setattr(lifecycle, "_locked", lambda _paths: pytest.fail("went on"))
    before = files(foreign)
    with pytest.raises(SandboxError, match="TRAINIUM_SANDBOX_DIR"):
        command(monkeypatch, name, foreign)
    assert files(foreign) == before


def test_purge_leaves_a_folder_of_somebody_else(monkeypatch: pytest.MonkeyPatch, foreign: Path) -> None:
    """Also where `down` would look away, as it does in the folder of the checkout."""
    monkeypatch.setattr(lifecycle, "down", lambda _paths: "")
    before = files(foreign)
    with pytest.raises(SandboxError):
        command(monkeypatch, "purge", foreign)
    assert files(foreign) == before


def test_a_copied_mark_is_none(monkeypatch: pytest.MonkeyPatch, foreign: Path, tmp_path: Path) -> None:
    made = Paths(tmp_path / "made")
    made.mark()
    shutil.copy(made.marker, foreign)
    with pytest.raises(SandboxError):
        command(monkeypatch, "purge", foreign)
    assert len(files(foreign)) == 5


def test_purge_deletes_what_up_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "made")
    paths.mark()
    paths.make()
    (paths.cache / "wheel").touch()
    # Once more, as every later 'up' does.
    paths.mark()
    assert command(monkeypatch, "purge", paths.root) == 0
    assert not paths.root.exists()
    assert command(monkeypatch, "purge", paths.root) == 0


def test_purge_leaves_what_is_still_mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = Paths(tmp_path / "made")
    paths.mark()
    monkeypatch.setattr(lifecycle, "_unmount", lambda _paths: None)
    monkeypatch.setattr(lifecycle, "_mounts", lambda _paths: [str(paths.root / "filesystems")])
    with pytest.raises(SandboxError, match="still mounted"):
        command(monkeypatch, "purge", paths.root)
    assert paths.root.exists()


def test_the_folder_of_the_checkout_is_the_sandboxs_with_other_things_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sandbox.paths.REPOSITORY", tmp_path)
    paths = Paths(tmp_path / ".sandbox")
    (paths.root / "sanity").mkdir(parents=True)
    with pytest.raises(SandboxError):
        command(monkeypatch, "purge", paths.root)
    paths.mark()
    assert paths.is_marked()
