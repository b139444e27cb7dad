"""Event files, read back by a decoder that shares nothing with what writes them.

TensorBoard itself is 150 MB to install; its release 2.21 has read the file whose bytes are below.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._training.report.event_file import crc32c, event_file
from hypothesis import given
from hypothesis import strategies as st


def slow_crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial is defined."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _bit in range(8):
            crc = crc >> 1 ^ (0x82F63B78 * (crc & 1))
    return ~crc & 0xFFFFFFFF


def unmask(masked: int) -> int:
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def records(content: bytes) -> Iterator[bytes]:
    """The contents of a file's records, with every checksum tested."""
    while content:
        length, checksum = struct.unpack("<QI", content[:12])
        assert unmask(checksum) == slow_crc32c(content[:8])
        body, (checksum,) = content[12 : 12 + length], struct.unpack("<I", content[12 + length : 16 + length])
        assert unmask(checksum) == slow_crc32c(body)
        yield body
        content = content[16 + length :]


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer by their wire types."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            yield key >> 3, message[position : position + length]
            position += length
        else:
            size, kind = {1: (8, "<d"), 5: (4, "<f")}[key & 7]
            yield key >> 3, struct.unpack(kind, message[position : position + size])[0]
            position += size


def decoded(content: bytes) -> list[tuple[float, int, dict[str, float]]]:
    """The steps of a file."""
    first, *others = [dict(fields(record)) for record in records(content)]
    assert first[3] == b"brain.Event:2"
    steps = []
    for message in others:
        values = [dict(fields(value)) for number, value in fields(message[5]) if number == 1]
        steps.append((message[1], message[2], {value[1].decode(): value[2] for value in values}))
    return steps


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@given(st.binary(max_size=300))
def test_the_table_gives_what_the_polynomial_gives(data: bytes) -> None:
    assert crc32c(data) == slow_crc32c(data)


def test_the_bytes_that_tensorboard_read() -> None:
    found = event_file(1.0, [(2.0, 300, {"loss": 0.5})])
    assert found.hex() == (
        "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a"
        "1b000000000000001a0d9e1309000000000000004010ac022a0d0a0b0a046c6f7373150000003fdfc52b60"
    )
    assert decoded(found) == [(2.0, 300, {"loss": 0.5})]


step = st.tuples(
    st.floats(0, 1e10),
    st.integers(0, 10**15),
    st.dictionaries(st.text(max_size=200), st.floats(width=32), max_size=4),
)


@given(st.lists(step, max_size=8))
def test_what_is_written_is_read(steps: list[tuple[float, int, dict[str, float]]]) -> None:
    assert repr(decoded(event_file(0.0, steps))) == repr(steps)


@pytest.mark.parametrize(("value", "stored"), [(1e39, math.inf), (-1e300, -math.inf), (3e38, 3e38)])
def test_a_loss_beyond_a_float_is_infinite(value: float, stored: float) -> None:
    [(_seconds, _step, values)] = decoded(event_file(0, [(0, 1, {"loss": value})]))
    assert values["loss"] == pytest.approx(stored)
