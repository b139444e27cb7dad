# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""gpg, asked about a key and a signature, in a key ring that lives as long as the question."""

from __future__ import annotations

import os
import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import signatures as openpgp


def verify(
    module: AnsibleModule, key: str, fingerprint: str, file: str | None = None, signature: str | None = None
) -> None:
    """Check that a key file holds the pinned key, and that it signed a file.

    Args:
        key: path of the public key, binary or with ASCII armour.
        file, signature: paths of what was signed, and of its detached signature; None checks the key alone.

    Raises:
        SignatureError: key or signature must not be trusted.
    """
    home = tempfile.mkdtemp(dir=module.tmpdir)
    gpg = [module.get_bin_path("gpg", required=True), "--homedir", home, "--batch", "--no-tty", "--with-colons"]
    words = {"LC_ALL": "C"}
    try:
        _code, listing, _errors = module.run_command([*gpg, "--show-keys", key], environ_update=words)
        openpgp.check_key(listing, fingerprint, os.path.basename(key))
        if file and signature:
            # No agent and no trust database: a good signature by the one key of this ring is what is asked for.
            module.run_command([*gpg, "--quiet", "--no-autostart", "--import", key])
            options = ["--no-autostart", "--trust-model", "always", "--status-fd", "1", "--verify"]
            _code, status, _errors = module.run_command([*gpg, *options, signature, file], environ_update=words)
            openpgp.check_signature(status, fingerprint, os.path.basename(file))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def verify_checksum(module: AnsibleModule, file: str, wanted: str) -> str:
    """The SHA-256 of a file.

    Raises:
        SignatureError: it is not the wanted one, where one is wanted.
    """
    found = str(module.sha256(file))
    if wanted and found != wanted.lower():
        raise openpgp.SignatureError(
            f"{os.path.basename(file)} has the SHA-256 {found}, not {wanted.lower()}: fetch it again, or correct the "
            "pinned checksum"
        )
    return found
