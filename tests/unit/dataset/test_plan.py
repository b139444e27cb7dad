"""Sources, files, checksums and space of a dataset."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import plan as dataset
from ansible_collections.trainium.cluster.plugins.module_utils._dataset import progress as transfer_progress
from hypothesis import given
from hypothesis import strategies as st


def item(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "url": f"https://host/{path}?secret=1", "name": path, **more}


@pytest.mark.parametrize(
    ("source", "kind"),
    [("/a b", "path"), ("http://host/x", "http"), ("https://user:p@host/x", "http"), ("s3://bucket/a#b?c", "s3")],
)
def test_sources(source: str, kind: str) -> None:
    assert dataset.source_kind(source) == kind


@pytest.mark.parametrize(
    "source", ["", "a/b", "ftp://host/x", "https:///x", "s3://", "s3:///x", "s3://B/x", "file:///x"]
)
def test_what_is_no_source(source: str) -> None:
    with pytest.raises(ValueError, match=r"not valid|no bucket"):
        dataset.source_kind(source)


@given(st.text(alphabet="abc/?#@:&=", max_size=20))
def test_what_is_shown_of_an_address_has_no_secret(rest: str) -> None:
    shown = dataset.shown(f"https://user:word@host/{rest}")
    assert shown.startswith("https://host/")
    assert "?" not in shown
    assert "#" not in shown


def test_a_key_may_hold_what_a_url_may_not() -> None:
    assert dataset.split_s3("s3://bucket/a#b?c d") == ("bucket", "a#b?c d")
    assert dataset.split_s3("s3://bucket") == ("bucket", "")


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "a/../b", "..", "a/.", "a\0", ".trainium-dataset/x", "a/.trainium-dataset/x"]
)
def test_files_that_have_no_place(path: str) -> None:
    with pytest.raises(ValueError, match="no path below the destination"):
        dataset.files_of([item(path)], "", {})


def test_checksums_meet_their_files() -> None:
    files = dataset.files_of([item("b"), item("a", size=3, tag="t")], "", {"b": "sha256:" + "B" * 64})
    assert [(file.path, file.size, file.tag, file.sha256) for file in files] == [
        ("a", 3, "t", ""),
        ("b", -1, "", "b" * 64),
    ]
    assert dataset.files_of([item("a")], "a" * 64, {})[0].sha256 == "a" * 64


@pytest.mark.parametrize(
    ("paths", "whole", "each", "sentence"),
    [
        (["a", "a"], "", {}, "two files of the same name"),
        (["a", "a/b"], "", {}, "in the place of its folder"),
        (["a", "b"], "a" * 64, {}, "One checksum was given for 2 files"),
        (["a"], "", {"b": "a" * 64}, "A checksum was given for 'b'"),
        (["a"], "", {"a": "a" * 63}, "64 hexadecimal digits"),
    ],
)
def test_files_that_do_not_fit(paths: list[str], whole: str, each: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dataset.files_of([item(path) for path in paths], whole, each)


def test_which_files_are_unpacked() -> None:
    files = dataset.files_of([item("a.TAR"), item("b.txt"), item("c.tgz"), item("d.zip")], "", {})
    assert [file.path for file in dataset.to_extract(files, "auto")] == ["a.TAR", "c.tgz", "d.zip"]
    assert dataset.to_extract(files, "never") == []
    with pytest.raises(ValueError, match=r"b\.txt is no archive"):
        dataset.to_extract(files, "always")


def test_a_signature_does_not_make_another_dataset() -> None:
    request = {"source": "s3://bucket/a", "destination": "/data", "checksum": "", "checksums": {}, "extract": "auto"}
    assert dataset.digest(request) == dataset.digest({**request, "files": [1], "connections": 3})
    assert dataset.digest(request) != dataset.digest({**request, "checksum": "a" * 64})


def test_space() -> None:
    assert dataset.space_problem(100, 100 + dataset.SPARE, "/data", "It") == ""
    assert dataset.space_problem(101, 100 + dataset.SPARE, "/data", "It").startswith("It needs 64.0 MiB in /data")


@given(st.integers(0, 2**50))
def test_sizes(size: int) -> None:
    assert dataset.parse_size(str(size)) == size
    assert len(dataset.human(size)) < 12


@pytest.mark.parametrize("text", ["much", "-1", "1 Gigabyte", "1e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not valid"):
        dataset.parse_size(text)


@pytest.mark.parametrize("url", ["base64:?", "base64:////"])
def test_addresses_that_were_changed(url: str) -> None:
    with pytest.raises(ValueError, match="pass it on as it is"):
        dataset.unwrapped(url)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**12)), max_size=30))
def test_a_rate_is_never_negative(samples: list[tuple[float, int]]) -> None:
    assert transfer_progress.rate(sorted(samples)) >= 0


def test_the_rate_is_that_of_the_last_seconds() -> None:
    samples = [(0.0, 0), (100.0, 1000), (110.0, 3000)]
    assert transfer_progress.rate(samples) == 200
    assert (
        transfer_progress.line({"phase": "waiting for node", "note": "fetching 1 B"})
        == "waiting for node, fetching 1 B"
    )
