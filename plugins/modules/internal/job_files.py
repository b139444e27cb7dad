#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_files
version_added: 0.3.0
short_description: Put the files of a training job into its folder, or see that they are there
description:
  - Looks in one call at all that a training needs on a host, and writes what is missing, different, or has another
    mode. Where all is right nothing is sent to the host but the call itself, and nothing is written.
  - Run it as root. The folders of all jobs are made as M(trainium.cluster.internal.owned_folders) makes them; what lies
    in the job's own folder is read and written as O(owner).
  - A file is replaced in one step, and so is a link in its place.
extends_documentation_fragment:
  - trainium.cluster.attributes
options:
  folder:
    description: The job's folder.
    type: path
    required: true
  folders:
    description: The folders of all jobs, which go to O(owner).
    type: list
    elements: path
    default: []
  owner:
    description: The user who runs the job; empty means the one of this module.
    type: str
    default: ""
  variable:
    description: The variable that says where O(folders) are; a refusal begins with it.
    type: str
    default: folders
  texts:
    description: Files by their names in O(folder), with their text.
    type: dict
    default: {}
  sources:
    description:
      - Files on the controller, each with C(src), C(name) and its C(checksum). They are sent along in their order
        as long as they fit into one MiB together; others are only compared.
    type: list
    elements: dict
    default: []
  contents:
    description: Files by their names in O(folder), in base64. Those of O(sources) come this way.
    type: dict
    default: {}
  checksums:
    description: Files that are only compared, with their checksums, such as V(sha256:0a1b2c).
    type: dict
    default: {}
  modes:
    description: The modes, in octal digits, of those that have another one than V(0755).
    type: dict
    default: {}
  links:
    description: Links by their names in O(folder), with what they lead to.
    type: dict
    default: {}
  packages:
    description: Packages of the distribution that the job needs.
    type: list
    elements: str
    default: []
  python:
    description: The Python of the environment that has to have O(requirements).
    type: str
    default: ""
  script:
    description: What O(python) runs with O(requirements) as arguments, to print a line for each that is not met.
    type: str
    default: ""
  requirements:
    description: What the environment has to have, as pip takes it. Not looked at in check mode.
    type: list
    elements: str
    default: []
  advice:
    description: What to do where it lacks one; the end of the refusal, after which nothing is written.
    type: str
    default: install them
  record:
    description: The name in O(folder) of the JSON file that a training has once it has run to its end.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Put the job's files into its folder, or see that they are there
  trainium.cluster.internal.job_files:
    folders: [/opt/trainium, /opt/trainium/jobs]
    folder: /opt/trainium/jobs/bert-0123456789ab
    owner: ubuntu
    texts:
      environment.json: "{}"
    sources:
      - src: files/bert_pretrain.py
        name: bert_pretrain.py
        checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    modes:
      environment.json: "0600"
    record: report.json
  become: true
  register: staged
"""

RETURN = r"""
left:
  description: Those of O(checksums) that are missing or different, and still to be brought.
  returned: success
  type: list
  elements: str
packages_missing:
  description: Whether one of O(packages) is not installed.
  returned: success
  type: bool
reported:
  description: Whether O(record) is there and can be read.
  returned: success
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._training.run_files import stage


def main() -> None:
    texts, names = {"type": "dict", "default": {}}, {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "folders": {"type": "list", "elements": "path", "default": []},
            "owner": {"type": "str", "default": ""},
            "variable": {"type": "str", "default": "folders"},
            "texts": texts,
            # Of the controller: the action puts them into contents or checksums.
            "sources": {"type": "list", "elements": "dict", "default": []},
            "contents": texts,
            "checksums": texts,
            "modes": texts,
            "links": texts,
            "packages": names,
            "python": {"type": "str", "default": ""},
            "script": {"type": "str", "default": ""},
            "requirements": names,
            "advice": {"type": "str", "default": "install them"},
            "record": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    try:
        result = stage(module.params, module.check_mode)
    except TrainiumError as error:
        module.fail_json(msg=f"job_files: {error}.", **error.details)
    if not module._diff:
        del result["diff"]
    # They are long, and the file names say what they are.
    module.params.update(texts={}, contents={})
    module.exit_json(**result)


if __name__ == "__main__":
    main()
