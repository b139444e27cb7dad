#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: prove_report
version_added: 0.3.0
short_description: Write the report of a proof, as JSON and as Markdown
description:
  - Puts together what the steps of C(playbooks/prove.yml) left in a folder, and says of each row of C(docs/fidelity.md)
    whether it was seen, refuted or not looked at, with the evidence.
  - Account numbers, ARNs, keys, passwords, public addresses and hosts that are not AWS's are taken out, since the
    report is to be attached to an issue.
extends_documentation_fragment:
  - trainium.cluster.attributes.no_diff
options:
  directory:
    description:
      - The folder with C(account.json), C(boot.json), C(ready.json) and C(training/report.json), as far as they are
        there.
    type: path
    required: true
  collection:
    description: The root of the collection.
    type: path
    required: true
  steps:
    description: The steps in their order, each with C(name), C(ok), C(seconds) and C(why).
    type: list
    elements: dict
    required: true
  region:
    description: The region.
    type: str
    required: true
  instance_type:
    description: The type of the node.
    type: str
    required: true
  began:
    description: When it began, in UTC.
    type: str
    required: true
  price:
    description: US dollars that it costs at most.
    type: float
    required: true
  ansible:
    description: The version of ansible-core.
    type: str
    required: true
  left:
    description: What is left of the cluster, names by kind.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Write the report
  trainium.cluster.internal.prove_report:
    directory: reports/prove
    collection: "{{ role_path }}/../.."
    steps: [{name: validate, ok: true, seconds: 12.5, why: ""}]
    region: us-west-2
    instance_type: trn1.2xlarge
    began: "2026-12-01T10:00:00Z"
    price: 1.82
    ansible: 2.19.0
"""

RETURN = r"""
proved:
  description: Whether every step succeeded and nothing is left.
  returned: success
  type: bool
sentence:
  description: The outcome in one sentence.
  returned: success
  type: str
files:
  description: The files that were written.
  returned: success
  type: list
  elements: str
"""

import json
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import read_record, replace
from ansible_collections.trainium.cluster.plugins.module_utils._prove import report as reports
from ansible_collections.trainium.cluster.plugins.module_utils._prove.evidence import evidence


def _version(root: Path) -> str:
    """The version of the collection, of a checkout or of an installed one."""
    manifest = read_record(root / "MANIFEST.json")
    if manifest:
        return str(manifest["collection_info"]["version"])
    found = re.search(r"^version: *(\S+)", (root / "galaxy.yml").read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "collection": {"type": "path", "required": True},
            "steps": {"type": "list", "elements": "dict", "required": True},
            "region": {"type": "str", "required": True},
            "instance_type": {"type": "str", "required": True},
            "began": {"type": "str", "required": True},
            "price": {"type": "float", "required": True},
            "ansible": {"type": "str", "required": True},
            "left": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    params = module.params
    folder, root = Path(params["directory"]), Path(params["collection"])
    account, boot, ready = (read_record(folder / f"{name}.json") or {} for name in ("account", "boot", "ready"))
    job = read_record(folder / "training" / "report.json") or {}
    seen = evidence(params["steps"], account, boot, boot.get("look", ""), ready.get("look", ""), job)
    files = [folder / "report.json", folder / "report.md"]
    try:
        page = (root / "docs" / "fidelity.md").read_text(encoding="utf-8")
        report = reports.make(page, seen, {**params, "collection": _version(root)})
        if not module.check_mode:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            texts = (json.dumps(report, indent=2) + "\n", reports.markdown(report))
            for path, text in zip(files, texts):
                replace(path, text.encode())
    except OSError as error:
        module.fail_json(msg=f"prove_report: {error.filename}: {error.strerror}; correct prove_directory.")
    module.exit_json(
        changed=True, proved=report["proved"], sentence=reports.sentence(report), files=[str(path) for path in files]
    )


if __name__ == "__main__":
    main()
