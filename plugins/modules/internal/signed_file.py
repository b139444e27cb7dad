#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: signed_archive
version_added: 0.1.0
short_description: Unpack an archive that was signed with the pinned key
description:
  - Fetches an archive, its detached signature and the public key, verifies both against a pinned fingerprint, and
    unpacks the archive into a new folder that only the user can read, in one step.
  - Nothing is unpacked, and nothing is left on the host, where the key is another one or has expired, or the
    signature or the checksum is not that of the archive.
  - Each run makes a new folder. Delete it when its content is not needed any more.
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  check_mode:
    support: none
  diff_mode:
    support: none
  idempotent:
    support: none
options:
  archive:
    description: URL of the archive, a tar file with any compression, or its path on the host.
    type: str
    required: true
  signature:
    description: URL or path of its detached signature.
    type: str
    required: true
  key:
    description: URL or path of the public key, binary or with ASCII armour.
    type: str
    required: true
  fingerprint:
    description: The fingerprint of the key that is trusted, all 40 hexadecimal digits, with or without spaces.
    type: str
    required: true
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
- name: Unpack the EFA installer
  trainium.cluster.internal.signed_archive:
    archive: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz
    signature: https://efa-installer.amazonaws.com/aws-efa-installer-1.51.0.tar.gz.sig
    key: https://efa-installer.amazonaws.com/aws-efa-installer.key
    fingerprint: 4E90 91BC BB97 A96B 26B1 5E59 A054 80B1 DD2D 3CCC
  register: efa
"""

RETURN = r"""
path:
  description: The folder with the content of the archive.
  returned: success
  type: str
  sample: /tmp/archive.1x2y3z
sha256:
  description: The checksum of the archive.
  returned: success
  type: str
  sample: de183f333cfb58aeb7908a67bf9106985ba3ccb7f8638b851d2a0d8dbfacaec4
"""

import shutil
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import gpg as openpgp
from ansible_collections.trainium.cluster.plugins.module_utils._node.download import obtain
from ansible_collections.trainium.cluster.plugins.module_utils._node.signatures import SignatureError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "archive": {"type": "str", "required": True},
            "signature": {"type": "str", "required": True},
            "key": {"type": "str", "required": True, "no_log": False},
            "fingerprint": {"type": "str", "required": True},
            "sha256": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 60},
        },
    )
    params = module.params
    # Ansible deletes the module's own folder however it ends.
    fetched = tempfile.mkdtemp(dir=module.tmpdir)
    key, signature, archive = (
        obtain(module, params[name], fetched, params["timeout"]) for name in ("key", "signature", "archive")
    )
    try:
        openpgp.verify(module, key, params["fingerprint"], archive, signature)
        checksum = openpgp.verify_checksum(module, archive, params["sha256"])
    except SignatureError as error:
        module.fail_json(msg=f"{error}.")
    path = tempfile.mkdtemp(prefix="archive.")
    tar = [module.get_bin_path("tar", required=True), "--extract", "--no-same-owner", "--file", archive]
    code, _output, errors = module.run_command([*tar, "--directory", path])
    if code:
        shutil.rmtree(path, ignore_errors=True)
        reason = (errors.strip().splitlines() or ["tar gave no reason"])[0]
        module.fail_json(msg=f"{params['archive']} was not unpacked: {reason}")
    module.exit_json(changed=True, path=path, sha256=checksum)


if __name__ == "__main__":
    main()
