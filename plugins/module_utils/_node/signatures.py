# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What gpg says of a key and of a signature, judged against a pinned fingerprint."""

from __future__ import annotations

import re

from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError


class SignatureError(TrainiumError):
    """A key or a signature that must not be trusted."""


def normalise(fingerprint: str) -> str:
    """A fingerprint as 40 capital hexadecimal digits.

    Raises SignatureError for what is none, such as a short key id, which anybody can forge.
    """
    digits = re.sub(r"[\s:]", "", fingerprint).upper()
    if not re.fullmatch(r"[0-9A-F]{40}|[0-9A-F]{64}", digits):
        raise SignatureError(f"{fingerprint!r} is no fingerprint of a key: give all of its 40 hexadecimal digits")
    return digits


def _status(text: str) -> list[list[str]]:
    """The words of gpg's status lines, the keyword first."""
    lines = [line[len("[GNUPG:] ") :].split() for line in text.splitlines() if line.startswith("[GNUPG:] ")]
    return [line for line in lines if line]


# IMPORT_RES <count> <no_user_id> <imported> 0 <unchanged> <n_uids> <n_subk> <n_sigs> <n_revoc> <sec_read> ...
# (GnuPG, doc/DETAILS)
_SECRET_KEYS_READ = 10


def check_import(status: str, name: str) -> None:
    """Check the status lines of ``gpg --status-fd 1 --import``.

    Raises SignatureError where there is a secret key in the file, or gpg could not read it.
    """
    results = [line for line in _status(status) if line[0] == "IMPORT_RES" and len(line) > _SECRET_KEYS_READ]
    if not results:
        raise SignatureError(f"{name} holds no OpenPGP key: check the address that it was fetched from")
    if any(line[_SECRET_KEYS_READ] != "0" for line in results):
        raise SignatureError(
            f"{name} holds a secret key, which no publisher gives away: do not use it, and tell its owner"
        )


def check_key(listing: str, fingerprint: str, name: str) -> None:
    """Check the keys that were in a file, as ``gpg --list-keys --with-colons`` lists them after the import.

    Raises SignatureError where another key than the pinned one was in it, or that has expired or was revoked.
    """
    wanted = normalise(fingerprint)
    primary: list[tuple[str, str]] = []
    validity = ""
    for line in listing.splitlines():
        fields = line.split(":")
        if fields[0] == "pub":
            validity = fields[1]
        elif fields[0] == "fpr" and validity != "used":
            primary.append((fields[9], validity))
            validity = "used"
        elif fields[0] in ("sub", "uid"):
            validity = "used"
    if not primary:
        raise SignatureError(f"{name} holds no OpenPGP key: check the address that it was fetched from")
    others = [found for found, _state in primary if found != wanted]
    if others and len(primary) > 1:
        raise SignatureError(
            f"{name} holds the key {others[0]} beside others, and not {wanted} alone: fetch a file with that key only"
        )
    if others:
        raise SignatureError(
            f"{name} holds the key {others[0]}, not {wanted}: if its owner announced a new key, set the new fingerprint"
        )
    if primary[0][1] == "e":
        raise SignatureError(f"The key {wanted} in {name} has expired: fetch the renewed key from its owner")
    if primary[0][1] == "r":
        raise SignatureError(f"The key {wanted} in {name} was revoked by its owner: do not install what it signed")


# Keyword of gpg's status lines -> what is wrong.
_REFUSALS = {
    "BADSIG": "its content is not what was signed",
    "EXPSIG": "its signature has expired",
    "EXPKEYSIG": "it was signed with a key that has expired",
    "REVKEYSIG": "it was signed with a key that was revoked",
    "NO_PUBKEY": "it was signed with another key",
    "ERRSIG": "its signature cannot be checked",
    "NODATA": "the signature file holds no signature",
}


def check_signature(status: str, fingerprint: str, name: str) -> None:
    """Check the status lines of ``gpg --status-fd 1 --verify``.

    Raises SignatureError where the file was not signed with the pinned key, or the signature is not good.
    """
    wanted = normalise(fingerprint)
    lines = _status(status)
    keywords = [line[0] for line in lines]
    problem = next((text for keyword, text in _REFUSALS.items() if keyword in keywords), "")
    signers = [line[-1] for line in lines if line[0] == "VALIDSIG"]
    if not problem and (not signers or "GOODSIG" not in keywords):
        problem = "it has no good signature"
    if not problem and any(signer != wanted for signer in signers):
        problem = "it was signed with another key"
    if problem:
        raise SignatureError(
            f"{name} is refused because {problem} (wanted: a signature by {wanted}): fetch it again, and do not "
            "install it if that does not help"
        )
