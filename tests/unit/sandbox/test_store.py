"""What all checkouts of a machine share: made once, whole, and not for ever."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from sandbox import image, store
from sandbox.mirror import wheels


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "trainium-sandbox"


def write(folder: Path) -> None:
    (folder / "file").write_text("made", encoding="utf-8")


def refuse(_folder: Path) -> None:
    raise AssertionError("it was made again")


def test_the_second_takes_what_the_first_has_made() -> None:
    made = store.entry("image", "a", write)
    assert (made / "file").read_text(encoding="utf-8") == "made"
    assert store.entry("image", "a", refuse) == made


def test_another_recipe_is_another_entry(cache: Path) -> None:
    assert store.entry("image", "a", write) != store.entry("image", "b", write)
    assert store.entry("wheels", "a", write).parent == cache / "wheels"


def test_what_was_not_finished_is_made_anew() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        store.entry("image", "a", fail)
    assert [file.name for file in store.entry("image", "a", write).iterdir()] == ["file"]


def test_two_at_once_make_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(folder: Path) -> None:
        begun.set()
        assert go_on.wait(10)
        write(folder)

    first = threading.Thread(target=store.entry, args=("image", "a", slow))
    second = threading.Thread(target=store.entry, args=("image", "a", refuse))
    first.start()
    assert begun.wait(10)
    second.start()
    until = time.monotonic() + 10
    told = ""
    while "waits for" not in told and time.monotonic() < until:
        told += capsys.readouterr().out
        time.sleep(0.01)
    go_on.set()
    first.join()
    second.join()
    assert "another sandbox of this machine makes its image" in told


def test_what_is_a_month_old_is_made_anew() -> None:
    old, other = store.entry("image", "a", write), store.entry("image", "b", write)
    before = time.time() - (store.DAYS + 1) * 24 * 3600
    os.utime(old, (before, before))
    assert store.entry("image", "b", refuse) == other
    assert not old.exists()


def test_a_checkout_can_delete_its_links(tmp_path: Path) -> None:
    made = store.entry("image", "a", write)
    for _again in range(2):
        store.link(made, tmp_path / "pool")
    assert (tmp_path / "pool" / "file").samefile(made / "file")
    (tmp_path / "pool" / "file").unlink()
    assert (made / "file").exists()


def test_two_checkouts_have_the_same_image(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = image.tag()
    hooks = tuple(hook.replace(str(image.REPOSITORY), str(tmp_path)) for hook in image.HOOKS)
    monkeypatch.setattr(image, "HOOKS", hooks)
    monkeypatch.setattr(image, "REPOSITORY", tmp_path)
    assert image.tag() == before
    monkeypatch.setattr(image, "HOOKS", (*hooks, ":"))
    assert image.tag() != before


def test_wheels_from_elsewhere_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {wheels._key()}
    monkeypatch.setenv("TRAINIUM_SANDBOX_PIP_ARGS", "--index-url=https://cpu.example/simple")
    keys.add(wheels._key())
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://user:secret@mirror.example/simple")
    keys.add(wheels._key())
    assert len(keys) == 3
    assert not [key for key in keys if "secret" in key]
