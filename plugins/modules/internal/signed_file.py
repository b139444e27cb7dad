#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: signed_file
version_added: 0.1.0
short_description: Keep a public key if it is the pinned one, or unpack an archive that was signed with it
description:
  - Fetches a key file and refuses it unless gpg imports the key with the given fingerprint from it, which has not
    expired, and no other.
  - With O(dest) it keeps what gpg exports then, as C(signed-by) of an apt source or the C(gpgkey) of a yum repository.
    The file itself is never kept. It may hold more than gpg takes for a key, and apt would trust that as well.
  - With O(archive) it fetches an archive and its detached signature and unpacks the archive into a new folder that only
    the user can read, in one step. Nothing is unpacked, and nothing is left on the host, where the signature or the
    checksum is not that of the archive. Delete the folder when its content is not needed any more.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
  - ansible.builtin.files
attributes:
  check_mode:
    details: An archive is not unpacked in check mode.
  idempotent:
    details: Each run makes a new folder for O(archive).
options:
  key:
    description: URL of the public key, or its path on the host, binary or with ASCII armour.
    type: str
    required: true
  fingerprint:
    description: The fingerprint of the key that is trusted, all 40 hexadecimal digits, with or without spaces.
    type: str
    required: true
  dest:
    description: The file in which the key is kept, in ASCII armour as gpg exports it. Its folder is made if missing.
    type: path
  archive:
    description: URL of the archive, a tar file with any compression, or its path on the host.
    type: str
  signature:
    description: URL or path of its detached signature.
    type: str
  sha256:
    description: The checksum that O(archive) must have as well; empty for none.
    type: str
    default: ""
  timeout:
    description: Seconds that a server may be silent.
    type: int
    default: 60
requirements:
  - gpg
  - tar
"""

EXAMPLES = r"""
- name: Keep the key of Neuron's repository
  trainium.cluster.internal.signed_file:
    key: https://apt.repos.neuron.amazonaws.com/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB
    fingerprint: "{{ neuron_key_fingerprint }}"
    dest: /etc/apt/keyrings/neuron.asc
    owner: root
    group: root
    mode: "0644"

- name: Unpack the EFA installer
  trainium.cluster.internal.signed_file:
    archive: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz
    signature: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz.sig
    key: https://efa-installer.amazonaws.com/aws-efa-installer.key
    fingerprint: 4E90 91BC BB97 A96B 26B1 5E59 A054 80B1 DD2D 3CCC
  register: efa
"""

RETURN = r"""
path:
  description: The folder with the content of the archive, or the file in which the key is kept.
  returned: success
  type: str
sha256:
  description: The checksum of the archive.
  returned: with O(archive), but in check mode
  type: str
"""

import os
import shutil
import tempfile
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import fetch_url
from ansible_collections.trainium.cluster.plugins.module_utils._node import gpg as openpgp
from ansible_collections.trainium.cluster.plugins.module_utils._node.signatures import SignatureError


def obtain(module: AnsibleModule, source: str, folder: str) -> str:
    """The path of ``source``, a path or a URL: itself, or what was fetched from it into ``folder``.

    A failure ends the module, with the keys ``url`` and ``response`` of ``ansible.builtin.get_url``.
    """
    if "://" not in source:
        if not os.path.isfile(source):
            module.fail_json(msg=f"There is no file {source}: put it there first, or give a URL.")
        return source
    answer, details = fetch_url(module, source, timeout=module.params["timeout"])
    # A file:// has no status.
    if details["status"] not in (-1, 200, None) or answer is None:
        module.fail_json(msg=f"{source} was not fetched: {details['msg']}", url=source, response=details["msg"])
    path = os.path.join(folder, os.path.basename(urlsplit(source).path) or "fetched")
    try:
        with open(path, "wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:
        module.fail_json(msg=f"{source} was not fetched: {error}", url=source, response=str(error))
    expected = answer.headers.get("Content-Length")
    if expected is not None and os.path.getsize(path) != int(expected):
        reason = f"the connection ended after {os.path.getsize(path)} of {expected} bytes"
        module.fail_json(msg=f"{source} was not fetched: {reason}", url=source, response=reason)
    return path


def keep(module: AnsibleModule, folder: str, text: str) -> dict[str, Any]:
    """Put the key where it is wanted."""
    dest = module.params["dest"]
    whole = os.path.join(folder, "kept")
    with open(whole, "w", encoding="ascii") as file:
        file.write(text)
    changed = not os.path.isfile(dest) or module.sha256(dest) != module.sha256(whole)
    if changed and not module.check_mode:
        os.makedirs(os.path.dirname(dest), mode=0o755, exist_ok=True)
        module.atomic_move(whole, dest)
    if os.path.exists(dest):
        changed = module.set_fs_attributes_if_different(module.load_file_common_arguments(module.params), changed)
    return {"changed": changed, "path": dest}


def unpack(module: AnsibleModule, archive: str, checksum: str) -> dict[str, Any]:
    path = tempfile.mkdtemp(prefix="archive.")
    tar = [module.get_bin_path("tar", required=True), "--extract", "--no-same-owner", "--file", archive]
    code, _output, errors = module.run_command([*tar, "--directory", path])
    if code:
        shutil.rmtree(path, ignore_errors=True)
        reason = (errors.strip().splitlines() or ["tar gave no reason"])[0]
        module.fail_json(msg=f"{module.params['archive']} was not unpacked: {reason}")
    return {"changed": True, "path": path, "sha256": checksum}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "key": {"type": "str", "required": True, "no_log": False},
            "fingerprint": {"type": "str", "required": True},
            "dest": {"type": "path"},
            "archive": {"type": "str"},
            "signature": {"type": "str"},
            "sha256": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 60},
        },
        add_file_common_args=True,
        mutually_exclusive=[("dest", "archive")],
        required_one_of=[("dest", "archive")],
        required_together=[("archive", "signature")],
        supports_check_mode=True,
    )
    params = module.params
    if params["archive"] and module.check_mode:
        module.exit_json(skipped=True, msg="An archive is not unpacked in check mode.")
    # Ansible deletes the module's own folder however it ends.
    folder = tempfile.mkdtemp(dir=module.tmpdir)
    key, *signed = (obtain(module, params[name], folder) for name in ("key", "signature", "archive") if params[name])
    try:
        if params["dest"]:
            module.exit_json(**keep(module, folder, openpgp.pinned_key(module, key, params["fingerprint"])))
        signature, archive = signed
        openpgp.verify(module, key, params["fingerprint"], archive, signature)
        checksum = openpgp.verify_checksum(module, archive, params["sha256"])
    except SignatureError as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(**unpack(module, archive, checksum))


if __name__ == "__main__":
    main()
