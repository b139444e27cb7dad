"""The VPC's resolver: questions and answers as they go over the wire."""

from __future__ import annotations

import struct

import pytest

from sandbox.network import resolver


def query(name: str, kind: int = resolver.A) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, resolver.IN)


def test_question_is_read_in_lower_case() -> None:
    name, kind, end = resolver.question(query("Train-dy-trn1-1.demo.pcluster"))
    assert (name, kind) == ("train-dy-trn1-1.demo.pcluster", resolver.A)
    assert end == len(query("train-dy-trn1-1.demo.pcluster"))


def test_known_name_has_its_address() -> None:
    asked = query("a.pcluster")
    reply = resolver.answer(asked, "10.0.0.5")
    assert reply[:2] == asked[:2]
    assert struct.unpack_from("!HHHHH", reply, 2) == (0x8580, 1, 1, 0, 0)
    assert reply.endswith(bytes([0, 4, 10, 0, 0, 5]))


def test_known_name_without_an_address_of_that_kind_exists_nevertheless() -> None:
    reply = resolver.answer(query("a.pcluster", 28), "10.0.0.5")
    assert struct.unpack_from("!HHH", reply, 2) == (0x8580, 1, 0)


def test_unknown_name_does_not_exist() -> None:
    reply = resolver.answer(query("nowhere.example.org"), None)
    assert reply[3] & 0x0F == resolver.NO_SUCH_NAME


@pytest.mark.parametrize("message", [b"", b"\0" * 12, query("a.b")[:-3], b"\0" * 12 + b"\x3fabc"])
def test_half_a_message_is_no_question(message: bytes) -> None:
    with pytest.raises(ValueError, match="without a question"):
        resolver.question(message)
