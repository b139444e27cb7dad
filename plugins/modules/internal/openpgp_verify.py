#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: openpgp_verify
version_added: 0.1.0
short_description: Refuse a key that is not the pinned one, and a file that it did not sign
description:
  - Checks that a key file holds one key with the given fingerprint that has not expired, and, where O(file) is given,
    that the file was signed with it.
  - Uses a key ring of its own that is deleted afterwards; nothing on the host is changed.
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  key:
    description: The file with the public key, binary or with ASCII armour.
    type: path
    required: true
  fingerprint:
    description: The fingerprint of the key that is trusted, all 40 hexadecimal digits, with or without spaces.
    type: str
    required: true
  file:
    description: The file that was signed.
    type: path
  signature:
    description: The file with the detached signature.
    type: path
  sha256:
    description: The checksum that O(file) must have as well; empty for none.
    type: str
    default: ""
requirements:
  - gpg
"""

EXAMPLES = r"""
- name: Refuse an EFA installer that Amazon did not sign
  trainium.cluster.internal.openpgp_verify:
    key: /root/efa/aws-efa-installer.key
    fingerprint: 4E90 91BC BB97 A96B 26B1 5E59 A054 80B1 DD2D 3CCC
    file: /root/efa/aws-efa-installer-1.51.0.tar.gz
    signature: /root/efa/aws-efa-installer-1.51.0.tar.gz.sig
"""

RETURN = r"""
sha256:
  description: The checksum of O(file).
  returned: O(file) is given
  type: str
  sample: de183f333cfb58aeb7908a67bf9106985ba3ccb7f8638b851d2a0d8dbfacaec4
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import gpg as openpgp
from ansible_collections.trainium.cluster.plugins.module_utils._node.signatures import SignatureError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "key": {"type": "path", "required": True, "no_log": False},
            "fingerprint": {"type": "str", "required": True},
            "file": {"type": "path"},
            "signature": {"type": "path"},
            "sha256": {"type": "str", "default": ""},
        },
        required_together=[("file", "signature")],
        supports_check_mode=True,
    )
    params = module.params
    for option in ("key", "file", "signature"):
        path = params[option]
        if path and not os.path.isfile(path):
            module.fail_json(msg=f"There is no file {path}: fetch it before it is verified.")
    result = {}
    try:
        openpgp.verify(module, params["key"], params["fingerprint"], params["file"], params["signature"])
        if params["file"]:
            result["sha256"] = openpgp.verify_checksum(module, params["file"], params["sha256"])
    except SignatureError as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
