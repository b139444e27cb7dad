"""Keys and signatures, judged by what gpg says of them."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._node.signatures import (
    SignatureError,
    check_import,
    check_key,
    check_signature,
    normalise,
)

KEY = "4E9091BCBB97A96B26B15E59A05480B1DD2D3CCC"
OTHER = "00FA2C1079260870A76D2C285749CAD8646D9185"


def listing(fingerprint: str = KEY, validity: str = "-") -> str:
    """A key with a subkey, as gpg lists it."""
    return (
        f"pub:{validity}:4096:1:A05480B1DD2D3CCC:1554749000:::-:::scSC::::::23::0:\n"
        f"fpr:::::::::{fingerprint}:\n"
        "uid:-::::1554749000::AAAA::Amazon EFA::::::::::0:\n"
        "sub:-:4096:1:BBBBBBBBBBBBBBBB:1554749000::::::e::::::23:\n"
        f"fpr:::::::::{'B' * 40}:\n"
    )


def status(*lines: str) -> str:
    return "".join(f"[GNUPG:] {line}\n" for line in lines)


def test_a_fingerprint_may_have_spaces() -> None:
    assert normalise("4e90 91bc bb97 a96b 26b1  5e59 a054 80b1 dd2d 3ccc") == KEY


def test_a_fingerprint_of_a_newer_key_is_longer_and_colons_part_it_too() -> None:
    assert normalise("ab" * 32) == "AB" * 32
    assert normalise(":".join(KEY[at : at + 4] for at in range(0, 40, 4))) == KEY


@pytest.mark.parametrize(
    "text", ["", "DD2D3CCC", KEY[:-1], "A" * 63, "A" * 65, "A05480B1DD2D3CCC", "Z" * 40, KEY + "0"]
)
def test_a_short_id_is_no_fingerprint(text: str) -> None:
    with pytest.raises(SignatureError, match="is no fingerprint"):
        normalise(text)


def test_the_pinned_key_is_taken_with_its_subkeys() -> None:
    check_key(listing(), KEY, "key")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (listing(OTHER), f"holds the key {OTHER}, not {KEY}"),
        (listing() + listing(OTHER), f"holds the key {OTHER} beside others"),
        (listing(validity="e"), "has expired"),
        (listing(validity="r"), "was revoked"),
        ("", "holds no OpenPGP key"),
        # Subkeys alone are no key.
        ("".join(listing().splitlines(keepends=True)[2:]), "holds no OpenPGP key"),
        (listing(OTHER) + listing(), f"holds the key {OTHER} beside others"),
    ],
)
def test_no_other_key_is_taken(text: str, sentence: str) -> None:
    with pytest.raises(SignatureError, match=sentence):
        check_key(text, KEY, "key")


GOOD = ("NEWSIG", f"GOODSIG {KEY[-16:]} Amazon EFA", f"VALIDSIG {KEY} 2026-01-01 0 0 4 0 1 10 00 {KEY}")


def test_a_good_signature_by_the_pinned_key_is_taken() -> None:
    check_signature(status(*GOOD), KEY, "file")


def test_a_good_signature_by_a_subkey_of_the_pinned_key_is_taken() -> None:
    check_signature(status("GOODSIG x y", f"VALIDSIG {'B' * 40} 2026-01-01 0 0 4 0 1 10 00 {KEY}"), KEY, "file")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((), "it has no good signature"),
        (("BADSIG A05480B1DD2D3CCC Amazon EFA",), "its content is not what was signed"),
        (("EXPKEYSIG A05480B1DD2D3CCC Amazon EFA", GOOD[2]), "a key that has expired"),
        (("EXPSIG A05480B1DD2D3CCC Amazon EFA", GOOD[2]), "its signature has expired"),
        (("ERRSIG 1 2 3", "NO_PUBKEY A05480B1DD2D3CCC"), "it was signed with another key"),
        (("GOODSIG x y", f"VALIDSIG {OTHER} 2026-01-01 0 0 4 0 1 10 00 {OTHER}"), "it was signed with another key"),
        ((*GOOD, f"VALIDSIG {OTHER} 2026-01-01 0 0 4 0 1 10 00 {OTHER}"), "it was signed with another key"),
        (("GOODSIG x y",), "it has no good signature"),
        ((GOOD[0], GOOD[2]), "it has no good signature"),
        (("REVKEYSIG A05480B1DD2D3CCC Amazon EFA", GOOD[2]), "a key that was revoked"),
        (("ERRSIG A05480B1DD2D3CCC 1 2 00 0 9",), "its signature cannot be checked"),
        (("NODATA 4",), "the signature file holds no signature"),
        (("", "   "), "it has no good signature"),
    ],
)
def test_anything_else_is_refused(lines: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SignatureError, match=sentence):
        check_signature(status(*lines), KEY, "file")


def test_an_import_of_public_keys_alone_is_taken() -> None:
    check_import(status("IMPORT_OK 1 A", "IMPORT_RES 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 1"), "key")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((), "holds no OpenPGP key"),
        # Of another form than GnuPG documents.
        (("IMPORT_OK 1 A", "IMPORT_RES 1 0 1 0 0 0 0 0 0"), "holds no OpenPGP key"),
        (("IMPORT_RES 1 0 2 0 0 0 0 0 0 1",), "holds a secret key"),
        (("IMPORT_RES 1 0 1 0 0 0 0 0 0 0 0", "IMPORT_RES 1 0 2 0 0 0 0 0 0 2 0"), "holds a secret key"),
        # The import stops where gpg wants an agent for the secret key.
        (("IMPORT_OK 1 A", "IMPORT_RES 1 0 2 0 0 0 0 0 0 1 0 0 0 0 0"), "holds a secret key"),
    ],
)
def test_no_other_import_is_taken(lines: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(SignatureError, match=sentence):
        check_import(status(*lines), "key")
