#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collection_archive
version_added: 0.1.0
short_description: Pack this collection so that nodes can unpack it
description:
  - Makes an archive of what a node can use of the collection, from a checkout as well as from an installed collection.
  - The same files give the same bytes, so that the digest says whether the collection has changed. Tests and
    documentation are left out.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  path:
    description: The root of the collection, with C(galaxy.yml) or C(MANIFEST.json).
    type: path
    required: true
  dest:
    description:
      - The folder for the archive; it is made if it is not there.
      - Archives with other content are removed from it.
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
  sample: /home/ubuntu/.cache/trainium/trainium-cluster-0f1e2d3c4b5a.tar.gz
sha256:
  description: Its SHA-256.
  returned: success
  type: str
  sample: 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
"""

import hashlib
import os
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import staged
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.collection_archive import (
    FOLDERS,
    build,
    wanted,
)


def read(root: Path) -> dict[str, tuple[bytes, bool]]:
    """The files of the collection. Raises OSError and TrainiumError."""
    if not any((root / name).is_file() for name in ("galaxy.yml", "MANIFEST.json")):
        raise TrainiumError("neither galaxy.yml nor MANIFEST.json is there")
    paths = [path for top in FOLDERS for path in (root / top).rglob("*")]
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return {
        name: (path.read_bytes(), os.access(path, os.X_OK))
        for name, path in names.items()
        if wanted(name) and path.is_file()
    }


def write(module: AnsibleModule, dest: Path, content: bytes) -> None:
    """Put the archive into its folder in one step, and take older ones away."""
    dest.parent.mkdir(parents=True, exist_ok=True)
    module.atomic_move(staged(module, content), str(dest))
    for old in dest.parent.glob("trainium-cluster-*.tar.gz"):
        if old != dest:
            old.unlink()


def main() -> None:
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "dest": {"type": "path", "required": True}},
        supports_check_mode=True,
    )
    root = Path(module.params["path"]).resolve()
    try:
        content = build(read(root))
        digest = hashlib.sha256(content).hexdigest()
        dest = Path(module.params["dest"], f"trainium-cluster-{digest[:12]}.tar.gz")
        changed = not dest.is_file() or dest.read_bytes() != content
        if changed and not module.check_mode:
            write(module, dest, content)
    except (OSError, TrainiumError) as error:
        module.fail_json(msg=f"collection_archive: {root} cannot be packed ({error}); name the root of a collection.")
        raise AssertionError("fail_json does not return") from error
    module.exit_json(changed=changed, archive=str(dest), sha256=digest)


if __name__ == "__main__":
    main()
