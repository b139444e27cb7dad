"""The little of protocol buffers that the kubelet's plugins need. Pure.

Messages of the device plugins, of plugin registration and of CSI, written by hand: no generated code. See
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, LENGTH = 0, 2


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: str | bytes | int) -> bytes:
    """One field: text, bytes and messages, or a number (booleans and enumerations as well)."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | LENGTH) + varint(len(data)) + data


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, position


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, in their order.

    Raises:
        ValueError: one of a kind that the plugins do not have.
    """
    position = 0
    while position < len(data):
        key, position = _read_varint(data, position)
        if key & 7 == VARINT:
            number, position = _read_varint(data, position)
            yield key >> 3, number
        elif key & 7 == LENGTH:
            length, position = _read_varint(data, position)
            yield key >> 3, data[position : position + length]
            position += length
        else:
            raise ValueError(f"a field of wire type {key & 7}")


def texts(data: bytes, number: int) -> list[str]:
    """The texts of a repeated field."""
    return [value.decode() for found, value in fields(data) if found == number and isinstance(value, bytes)]


def messages(data: bytes, number: int) -> list[bytes]:
    """The messages of a repeated field."""
    return [value for found, value in fields(data) if found == number and isinstance(value, bytes)]


def pairs(data: bytes, number: int) -> dict[str, str]:
    """A field of type map<string, string>."""
    entries = messages(data, number)
    return {"".join(texts(entry, 1)): "".join(texts(entry, 2)) for entry in entries}
