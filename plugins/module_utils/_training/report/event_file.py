# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Event files as TensorBoard reads them, without TensorFlow. Pure.

The file is a row of TFRecords: length (8 bytes, little-endian), its checksum, content, its checksum. A checksum is
CRC-32C (Castagnoli), rotated right by 15 bits, plus a constant. The content is a protocol buffer, tensorflow.Event, of
which these fields are written: 1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary; in it 1 value,
repeated; in that 1 tag (string), 2 simple_value (float).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping

_MASK = 0xA282EAD8
_VERSION = "brain.Event:2"
_FLOAT_MAX = 3.4028234663852886e38


def _table() -> list[int]:
    table = []
    for number in range(256):
        for _bit in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum; 0xE3069283 for b"123456789"."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The checksum as a record holds it."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _single(value: float) -> float:
    """A value that a float of 4 bytes takes: what is too large for it is infinite."""
    return math.copysign(math.inf, value) if abs(value) > _FLOAT_MAX else value


def _wall_time(seconds: float) -> bytes:
    return b"\x09" + struct.pack("<d", seconds)


def event(seconds: float, step: int, values: Mapping[str, float]) -> bytes:
    """One step as tensorflow.Event. ``seconds`` since 1970, ``step`` of 0 or more."""
    summary = b"".join(
        _bytes_field(1, _bytes_field(1, tag.encode()) + b"\x15" + struct.pack("<f", _single(value)))
        for tag, value in values.items()
    )
    return _wall_time(seconds) + b"\x10" + _varint(step) + _bytes_field(5, summary)


def event_file(started: float, steps: Iterable[tuple[float, int, Mapping[str, float]]]) -> bytes:
    """A whole file: its version, then each step as ``(seconds, step, {tag: value})``."""
    version = _wall_time(started) + _bytes_field(3, _VERSION.encode())
    return _record(version) + b"".join(_record(event(*step)) for step in steps)
