#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: openpgp_key
version_added: 0.1.0
short_description: Keep a public key on a host if it is the pinned one
description:
  - Fetches a key file and refuses it unless gpg imports the key with the given fingerprint from it, which has not
    expired, and no other. Keeps what gpg exports then, as C(signed-by) of an apt source or the C(gpgkey) of a yum
    repository.
  - The file itself is never kept. It may hold more than gpg takes for a key, and apt would trust that as well.
  - The folder of the file is made where it is missing.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - ansible.builtin.files
attributes:
  diff_mode:
    support: none
options:
  source:
    description: URL of the key, or its path on the host.
    type: str
    required: true
  fingerprint:
    description: The fingerprint of the key that is trusted, all 40 hexadecimal digits, with or without spaces.
    type: str
    required: true
  dest:
    description: The file in which the key is kept, in ASCII armour as gpg exports it.
    type: path
    required: true
  timeout:
    description: Seconds that the server may be silent.
    type: int
    default: 60
requirements:
  - gpg
"""

EXAMPLES = r"""
- name: Keep the key of Neuron's repository
  trainium.cluster.internal.openpgp_key:
    source: https://apt.repos.neuron.amazonaws.com/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB
    fingerprint: "{{ neuron_key_fingerprint }}"
    dest: /etc/apt/keyrings/neuron.asc
    owner: root
    group: root
    mode: "0644"
"""

RETURN = r"""
dest:
  description: The file in which the key is kept.
  returned: success
  type: str
  sample: /etc/apt/keyrings/neuron.asc
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._node import gpg as openpgp
from ansible_collections.trainium.cluster.plugins.module_utils._node.download import obtain
from ansible_collections.trainium.cluster.plugins.module_utils._node.signatures import SignatureError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "source": {"type": "str", "required": True},
            "fingerprint": {"type": "str", "required": True},
            "dest": {"type": "path", "required": True},
            "timeout": {"type": "int", "default": 60},
        },
        add_file_common_args=True,
        supports_check_mode=True,
    )
    params = module.params
    dest = params["dest"]
    folder = tempfile.mkdtemp(dir=module.tmpdir)
    key = obtain(module, params["source"], folder, params["timeout"])
    try:
        text = openpgp.pinned_key(module, key, params["fingerprint"])
    except SignatureError as error:
        module.fail_json(msg=f"{error}.")
    whole = os.path.join(folder, "kept")
    with open(whole, "w", encoding="ascii") as file:
        file.write(text)
    changed = not os.path.isfile(dest) or module.sha256(dest) != module.sha256(whole)
    if changed and not module.check_mode:
        os.makedirs(os.path.dirname(dest), mode=0o755, exist_ok=True)
        module.atomic_move(whole, dest)
    if os.path.exists(dest):
        changed = module.set_fs_attributes_if_different(module.load_file_common_arguments(params), changed)
    module.exit_json(changed=changed, dest=dest)


if __name__ == "__main__":
    main()
