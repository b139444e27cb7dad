# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""gpg, asked about a key and a signature, in a key ring that lives as long as the question."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import signatures as openpgp

WORDS = {"LC_ALL": "C"}


@contextmanager
def _ring_of(module: AnsibleModule, key: str, fingerprint: str) -> Iterator[list[str]]:
    """The command of gpg with a ring that holds the pinned key and nothing else.

    What gpg imported is judged, not the file: programs do not agree on what a file of keys is. apt takes every block
    in ASCII armour whatever its label says, and gpg only those that are labelled as keys. Raises SignatureError where
    the file holds a secret key or another key, or the pinned key has expired or was revoked.
    """
    name = os.path.basename(key)
    home = tempfile.mkdtemp(dir=module.tmpdir)
    # No agent: nothing here needs one, and the machine's own options and keys have no say.
    options = ["--no-options", "--homedir", home, "--batch", "--no-tty", "--no-autostart", "--trust-model", "always"]
    gpg = [module.get_bin_path("gpg", required=True), *options]
    try:
        _code, status, _errors = module.run_command([*gpg, "--status-fd", "1", "--import", key], environ_update=WORDS)
        openpgp.check_import(status, name)
        _code, listing, _errors = module.run_command([*gpg, "--with-colons", "--list-keys"], environ_update=WORDS)
        openpgp.check_key(listing, fingerprint, name)
        yield gpg
    finally:
        shutil.rmtree(home, ignore_errors=True)


def pinned_key(module: AnsibleModule, key: str, fingerprint: str) -> str:
    """The pinned key in ASCII armour, as gpg writes it; nothing else that was in the file is in it.

    ``key`` is a path, of what is binary or in ASCII armour. Raises SignatureError for what must not be trusted.
    """
    with _ring_of(module, key, fingerprint) as gpg:
        # Without the signatures of others on it, which a key server may add to at any time.
        options = ["--export-options", "export-minimal", "--no-comments", "--no-emit-version"]
        code, text, errors = module.run_command([*gpg, *options, "--armor", "--export"], environ_update=WORDS)
    if code or not text:
        reason = (errors.strip().splitlines() or ["no reason given"])[-1]
        raise openpgp.SignatureError(
            f"gpg cannot write the key of {os.path.basename(key)} ({reason}): look at the file"
        )
    return str(text)


def verify(module: AnsibleModule, key: str, fingerprint: str, file: str, signature: str) -> None:
    """Check that a key file holds the pinned key, and that it signed a file; ``signature`` is the detached one.

    All of them are paths. Raises SignatureError for a key or signature that must not be trusted.
    """
    with _ring_of(module, key, fingerprint) as gpg:
        options = ["--status-fd", "1", "--verify", signature, file]
        _code, status, _errors = module.run_command([*gpg, *options], environ_update=WORDS)
    openpgp.check_signature(status, fingerprint, os.path.basename(file))


def verify_checksum(module: AnsibleModule, file: str, wanted: str) -> str:
    """The SHA-256 of a file. Raises SignatureError where another one is wanted."""
    found = str(module.sha256(file))
    if wanted and found != wanted.lower():
        raise openpgp.SignatureError(
            f"{os.path.basename(file)} has the SHA-256 {found}, not {wanted.lower()}: fetch it again, or correct the "
            "pinned checksum"
        )
    return found
