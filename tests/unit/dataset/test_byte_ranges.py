"""What is still to be fetched, by the log of what was."""

from __future__ import annotations

from ansible_collections.trainium.cluster.plugins.module_utils._dataset import byte_ranges
from ansible_collections.trainium.cluster.plugins.module_utils._dataset.byte_ranges import Version
from hypothesis import given
from hypothesis import strategies as st

versions = st.builds(Version, st.integers(0, 10000), st.text(max_size=20), st.integers(1, 3000))


@given(versions, st.sets(st.integers(0, 20)))
def test_what_is_missing_and_what_is_done_make_the_file(version: Version, pieces: set[int]) -> None:
    done = frozenset(number * version.piece for number in pieces if number * version.piece < version.size)
    missing = byte_ranges.missing(version, done)
    assert all(0 <= start < end <= version.size and end - start <= version.piece for start, end in missing)
    assert all(first[1] <= second[0] for first, second in zip(missing, missing[1:]))
    assert byte_ranges.bytes_done(version, done) == version.size - sum(end - start for start, end in missing)
    assert byte_ranges.missing(version, done | {start for start, _end in missing}) == []


@given(versions, st.sets(st.integers(0, 20)), st.integers(0, 10))
def test_a_log_says_what_was_written_and_never_more(version: Version, pieces: set[int], lost: int) -> None:
    done = [number * version.piece for number in sorted(pieces) if number * version.piece < version.size]
    text = byte_ranges.head_line(version) + "".join(f"{start}\n" for start in done)
    assert byte_ranges.read_log(text) == (version, frozenset(done))
    cut = byte_ranges.read_log(text[: len(text) - lost])
    assert cut.done <= frozenset(done)


@given(st.text())
def test_a_log_that_is_none_says_nothing_that_can_harm(text: str) -> None:
    log = byte_ranges.read_log(text)
    assert log.version is None or all(0 <= start < log.version.size for start in log.done)


def test_what_all_connections_lose_is_one_chunk() -> None:
    assert 8 * byte_ranges.piece_size(64 * 1024 * 1024, 8) == 64 * 1024 * 1024
    assert byte_ranges.piece_size(64 * 1024 * 1024, 1) == 64 * 1024 * 1024
    assert byte_ranges.piece_size(1, 8) == byte_ranges.SMALLEST_PIECE


def test_other_content_is_fetched_anew() -> None:
    now = Version(10, "a", 4)
    assert byte_ranges.same_content(Version(10, "a", 5), now)
    assert not byte_ranges.same_content(Version(11, "a", 4), now)
    assert not byte_ranges.same_content(Version(10, "b", 4), now)
    assert not byte_ranges.same_content(None, now)
