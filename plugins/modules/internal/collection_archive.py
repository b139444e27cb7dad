#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collection_archive
version_added: 0.1.0
short_description: Pack a collection so that nodes can install it
description:
  - Makes an archive of a collection that C(ansible-galaxy collection install) takes, from a checkout as well as from an
    installed collection.
  - The same files give the same bytes, so that the digest says whether the collection has changed. Tests and
    documentation are left out.
extends_documentation_fragment:
  - trainium.cluster.attributes
attributes:
  diff_mode:
    support: none
options:
  path:
    description: The root of the collection, with C(galaxy.yml) or C(MANIFEST.json).
    type: path
    required: true
  dest:
    description:
      - The folder for the archive; it is made if it is not there.
      - Archives of the same collection with other content are removed from it.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Pack the collection
  trainium.cluster.internal.collection_archive:
    path: /usr/share/ansible/collections/ansible_collections/trainium/cluster
    dest: ~/.cache/trainium
  register: packed
"""

RETURN = r"""
archive:
  description: Path of the archive.
  returned: success
  type: str
  sample: /home/ubuntu/.cache/trainium/trainium-cluster-0.1.0-0f1e2d3c4b5a.tar.gz
sha256:
  description: Its SHA-256.
  returned: success
  type: str
  sample: 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
version:
  description: The version of the collection.
  returned: success
  type: str
  sample: 0.1.0
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.yaml import HAS_YAML, yaml_load
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import staged
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster import collection_archive


def read(root: Path) -> tuple[dict[str, Any], dict[str, tuple[bytes, bool]]]:
    """Who the collection is, and its files. Raises OSError, ValueError and TrainiumError."""
    galaxy, manifest = root / "galaxy.yml", root / "MANIFEST.json"
    info = collection_archive.information(
        yaml_load(galaxy.read_text(encoding="utf-8")) if galaxy.is_file() else None,
        json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else None,
    )
    files = {}
    for top in collection_archive.FOLDERS:
        for folder, _folders, names in os.walk(root / top):
            for name in names:
                path = Path(folder, name)
                relative = path.relative_to(root).as_posix()
                if collection_archive.wanted(relative) and path.is_file():
                    files[relative] = (path.read_bytes(), os.access(path, os.X_OK))
    return info, files


def write(module: AnsibleModule, dest: Path, prefix: str, content: bytes) -> None:
    """Put the archive into its folder in one step, and take older ones of the collection away."""
    dest.parent.mkdir(parents=True, exist_ok=True)
    module.atomic_move(staged(module, content), str(dest))
    for old in dest.parent.glob(f"{prefix}-*.tar.gz"):
        if old != dest:
            old.unlink()


def main() -> None:
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "dest": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    if not HAS_YAML:
        module.fail_json(msg=missing_required_lib("PyYAML"))
    root = Path(module.params["path"]).resolve()
    try:
        info, files = read(root)
        content = collection_archive.build(info, files)
        digest = hashlib.sha256(content).hexdigest()
        prefix = f"{info['namespace']}-{info['name']}"
        dest = Path(module.params["dest"], f"{prefix}-{info['version']}-{digest[:12]}.tar.gz")
        changed = not dest.is_file() or dest.read_bytes() != content
        if changed and not module.check_mode:
            write(module, dest, prefix, content)
    except (OSError, ValueError, TrainiumError) as error:
        module.fail_json(msg=f"collection_archive: {root} cannot be packed ({error}); name the root of a collection.")
        raise AssertionError("fail_json does not return") from error
    module.exit_json(changed=changed, archive=str(dest), sha256=digest, version=info["version"])


if __name__ == "__main__":
    main()
