#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster_config
version_added: 0.1.0
short_description: Write, check and compare configurations of AWS ParallelCluster
description:
  - Makes the configuration of a cluster from a few variables, or from a preset, a reference architecture, with
    variables upon it. Disks and file systems are encrypted, the metadata service is version 2, and nobody may log in
    but from O(allowed_ips).
  - Checks a configuration offline, with ParallelCluster's own schema and with rules about what otherwise hurts when the
    cluster is created, or when a job runs. Each finding is a sentence with the key, what is wrong and what to do.
  - Says for a changed configuration which keys changed, which update policy each is under, and whether the fleet must
    be stopped, a queue update strategy set, or a new cluster made.
  - No call to AWS is made.
extends_documentation_fragment:
  - trainium.cluster.attributes
  - trainium.cluster.pcluster_variables
requirements:
  - aws-parallelcluster >= 3.5.0, where O(pcluster_python) is
  - PyYAML
options:
  cluster_name:
    description: The name of the cluster. It is part of the nodes' host names.
    type: str
    required: true
  preset:
    description:
      - A reference architecture, on which the other variables are laid.
      - V(trn1) has two trn1.32xlarge, EFS with provisioned throughput and C(/scratch).
      - V(trn1_dynamic) has 16 dynamic trn1.32xlarge that O(custom_actions) set up, and EFS.
      - V(gpu) has four p4d.24xlarge. V(p4de_custom_ami) and V(p4de_postinstall) have four p4de.24xlarge with an
        image or with scripts. V(p4de_g5_inference) has a second queue of g5.12xlarge.
      - V(trn1_custom_ami) has four trn1.32xlarge with an image. V(trn2) has two trn2.48xlarge, V(capacity_block) has
        them in a Capacity Block.
      - These share C(/home) and C(/apps) from the head node, FSx for Lustre of 4.8 TiB on C(/fsx), and have
        C(/local_scratch) on the nodes' own disks.
      - V(login_nodes), V(accounting) and V(multi_queue) are small clusters of trn1 with what their name says.
    type: str
    choices:
      - accounting
      - capacity_block
      - gpu
      - login_nodes
      - multi_queue
      - p4de_custom_ami
      - p4de_g5_inference
      - p4de_postinstall
      - trn1
      - trn1_custom_ami
      - trn1_dynamic
      - trn2
  configuration:
    description: A configuration that exists, to be checked, compared or written instead of a rendered one.
    type: dict
  current:
    description: The configuration that the cluster has now. With it the module returns RV(impact).
    type: dict
  fleet_status:
    description: The status of the compute fleet. Only V(STOPPED) counts as stopped.
    type: str
    default: RUNNING
  dest:
    description: Where the configuration is written to, as YAML.
    type: path
  mode:
    description: The mode of O(dest).
    type: str
    default: "0600"
  lint:
    description:
      - V(fail) refuses a configuration with errors, and writes nothing; findings that are no errors are warnings.
      - V(warn) makes warnings of all findings. V(none) does not look.
    type: str
    choices: [fail, warn, none]
    default: fail
  neuron_sdk_version:
    description: The release of the Neuron SDK for the nodes; by default, the newest that trains on them.
    type: str
  own_reservations:
    description: Ids or group ARNs of reservations in O(configuration) that AWS did not make, whatever their type.
    type: list
    elements: str
  pcluster_python:
    description:
      - The interpreter that has C(aws-parallelcluster), usually that of a virtual environment of its own.
      - By default, the interpreter that runs the module.
    type: path
seealso:
  - module: trainium.cluster.pcluster
"""

EXAMPLES = r"""
- name: Two trn1.32xlarge with EFS
  trainium.cluster.pcluster_config:
    cluster_name: bert
    preset: trn1
    region: us-west-2
    key_name: bert
    allowed_ips: 198.51.100.7/32
    head_node: {subnet_id: subnet-0a1b2c3d4e5f60001}
    compute_subnet_ids: [subnet-0a1b2c3d4e5f60002]
    dest: bert.yaml

- name: Sixteen nodes of a reservation with an image of one's own, and a key that the module does not know
  trainium.cluster.pcluster_config:
    cluster_name: llama
    preset: trn1_custom_ami
    region: us-west-2
    custom_ami: ami-0a1b2c3d4e5f60003
    allowed_ips: 198.51.100.7/32
    head_node: {subnet_id: subnet-0a1b2c3d4e5f60001}
    compute_subnet_ids: [subnet-0a1b2c3d4e5f60002]
    max_count: 16
    capacity_reservation: {id: cr-0a1b2c3d4e5f60004}
    overrides:
      Scheduling:
        SlurmQueues:
          - {Name: compute-trn1, HealthChecks: {Gpu: {Enabled: false}}}
  register: wanted

- name: What would the update take?
  trainium.cluster.pcluster_config:
    cluster_name: llama
    configuration: "{{ wanted.configuration }}"
    current: "{{ lookup('ansible.builtin.file', 'llama.yaml') | from_yaml }}"
  register: compared

- name: Say it
  ansible.builtin.debug:
    var: compared.impact.message
"""

RETURN = r"""
configuration:
  description: The configuration.
  returned: success
  type: dict
yaml:
  description: The configuration as it is or would be written.
  returned: success
  type: str
dest:
  description: Where it is written.
  returned: when O(dest) is given
  type: str
findings:
  description: What is wrong with the configuration, errors first.
  returned: always
  type: list
  elements: dict
  contains:
    key:
      description: Where.
      type: str
      sample: Scheduling/SlurmQueues/0/ComputeResources/0/MinCount
    message:
      description: The sentence.
      type: str
      sample: "Scheduling/SlurmQueues/0/ComputeResources/0/MinCount: 4 is more than MaxCount, which is 2; lower MinCount
        or raise MaxCount"
    severity:
      description: V(error) or V(warning).
      type: str
      sample: error
impact:
  description: What the update from O(current) takes.
  returned: when O(current) is given
  type: dict
  contains:
    allowed:
      description: Whether ParallelCluster allows the update as the cluster is.
      type: bool
      sample: false
    needs:
      description:
        - The mildest thing that it takes, V(nothing), V(queue_update_strategy), V(stopped_fleet),
          V(stopped_login_nodes), V(stopped_fleet_and_login_nodes) or V(new_cluster).
      type: str
      sample: stopped_fleet
    strategies:
      description: Queue update strategies with which it is allowed while the fleet runs.
      type: list
      elements: str
      sample: []
    message:
      description: The same as a sentence.
      type: str
      sample: "Scheduling/SlurmSettings/ScaledownIdletime: stop the compute fleet first"
    changes:
      description:
        - The changed keys, each with V(key), V(old), V(new), V(policy), V(allowed), V(needs), V(strategies) and
          V(reason).
      type: list
      elements: dict
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.yaml import HAS_YAML, yaml_dump
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._common.files import staged
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config import run as pcluster_config
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.arguments import CLUSTER_ARGUMENTS
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.config.presets import PRESETS

ARGUMENTS: dict[str, dict[str, Any]] = {
    **CLUSTER_ARGUMENTS,
    "cluster_name": {"type": "str", "required": True},
    "preset": {"type": "str", "choices": sorted(PRESETS)},
    "configuration": {"type": "dict"},
    "current": {"type": "dict"},
    "fleet_status": {"type": "str", "default": "RUNNING"},
    "dest": {"type": "path"},
    "mode": {"type": "str", "default": "0600"},
    "lint": {"type": "str", "choices": ["fail", "warn", "none"], "default": "fail"},
    "neuron_sdk_version": {"type": "str"},
    "own_reservations": {"type": "list", "elements": "str"},
    "pcluster_python": {"type": "path"},
}


def written(module: AnsibleModule, path: str) -> str:
    """The file as it is; '' where there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        module.fail_json(msg=f"dest: {path} cannot be read ({error}); name another file.", findings=[])
        raise AssertionError("fail_json does not return") from error


def write(module: AnsibleModule, path: str, text: str) -> None:
    """Replace the file in one step; nobody else can read it on the way."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        module.fail_json(msg=f"dest: there is no folder {folder}; make it first.", findings=[])
    module.atomic_move(staged(module, text.encode("utf-8")), path)


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS, mutually_exclusive=[("configuration", "preset")], supports_check_mode=True
    )
    if not HAS_YAML:
        module.fail_json(msg=missing_required_lib("PyYAML"), findings=[])
    params = module.params
    try:
        configuration, findings = pcluster_config.prepare(params)
        if params["lint"] == "fail":
            pcluster_config.refuse(findings, params["cluster_name"])
        text = yaml_dump(configuration, default_flow_style=False, sort_keys=False, width=120)
        result: dict[str, Any] = {
            "changed": False,
            "configuration": configuration,
            "yaml": text,
            "findings": pcluster_config.shown(findings),
        }
        if params["current"] is not None:
            result["impact"] = pcluster_config.impact(params, configuration)
    except TrainiumError as error:
        module.fail_json(msg=f"pcluster_config: {error}.", **{"findings": [], **error.details})
    for message in pcluster_config.warnings(findings, params["lint"]):
        module.warn(f"{message}.")
    if params["dest"]:
        before = written(module, params["dest"])
        if before != text:
            result["changed"] = True
            if not module.check_mode:
                write(module, params["dest"], text)
        if os.path.exists(params["dest"]):
            result["changed"] = module.set_mode_if_different(params["dest"], params["mode"], result["changed"])
        result["dest"] = params["dest"]
        if module._diff:
            header = params["dest"]
            result["diff"] = {"before": before, "after": text, "before_header": header, "after_header": header}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
