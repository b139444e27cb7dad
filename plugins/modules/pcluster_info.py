#!/usr/bin/python
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcluster_info
version_added: 0.1.0
short_description: Describe clusters of AWS ParallelCluster, their instances and the official images
description:
  - Describes one cluster or all of a region, with the status of the compute fleet and the instances.
extends_documentation_fragment:
  - trainium.cluster.attributes.info
  - trainium.cluster.attributes.aws
  - trainium.cluster.pcluster
  - trainium.cluster.aws
options:
  name:
    description: The name of a cluster. By default, all clusters of the region.
    type: str
  instances:
    description: Whether to list the instances.
    type: bool
    default: true
  official_images:
    description: Whether to list ParallelCluster's official images of the installed version.
    type: bool
    default: false
  os:
    description: List the official images of this operating system only, such as V(ubuntu2404).
    type: str
  architecture:
    description: List the official images of this architecture only.
    type: str
    choices: [x86_64, arm64]
seealso:
  - module: trainium.cluster.pcluster
"""

EXAMPLES = r"""
- name: Look at a cluster
  trainium.cluster.pcluster_info:
    name: bert
    pcluster_python: /opt/parallelcluster/bin/python
  register: found

- name: Show the head node's address
  ansible.builtin.debug:
    msg: "{{ found.clusters[0].head_node.public_ip_address }}"
  when: found.clusters | length > 0

- name: Find the official image
  trainium.cluster.pcluster_info:
    official_images: true
    os: ubuntu2404
    architecture: x86_64
"""

RETURN = r"""
clusters:
  description: The clusters, by name; empty if there is none.
  returned: success
  type: list
  elements: dict
  contains:
    cluster_name:
      description: The name.
      type: str
      sample: bert
    cluster_status:
      description: ParallelCluster's status of the cluster.
      type: str
      sample: CREATE_COMPLETE
    cloud_formation_stack_status:
      description: The status of its stack.
      type: str
      sample: CREATE_COMPLETE
    compute_fleet_status:
      description: The status of the compute fleet.
      type: str
      sample: RUNNING
    version:
      description: The version of ParallelCluster that made it. Of a newer one than the installed one little else
        is known.
      type: str
      sample: 3.16.1
    head_node:
      description: The head node, where there is one.
      type: dict
      sample: {instance_id: i-0a1b2c3d4e5f60001, private_ip_address: 192.0.2.10, state: running}
    login_nodes:
      description: The pools of login nodes, where there are any.
      type: list
      elements: dict
    tags:
      description: The tags of the stack.
      type: dict
      sample: {"parallelcluster:version": 3.16.1}
    configuration:
      description: The configuration that the cluster was last given; none where it cannot be read.
      type: dict
    instances:
      description: The instances, with C(instance_id), C(instance_type), C(node_type), C(queue_name),
        C(private_ip_address) and C(state).
      type: list
      elements: dict
      sample:
        - instance_id: i-0a1b2c3d4e5f60001
          instance_type: trn1.32xlarge
          node_type: ComputeNode
          queue_name: train
          private_ip_address: 192.0.2.11
          state: running
installed_version:
  description: The version of aws-parallelcluster that answered.
  returned: success
  type: str
  sample: 3.16.1
official_images:
  description: The official images.
  returned: when O(official_images=true)
  type: list
  elements: dict
  sample:
    - ami_id: ami-0a1b2c3d4e5f60001
      architecture: x86_64
      name: aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-202601010000
      os: ubuntu2404
      version: 3.16.1
"""

from typing import Any

from ansible_collections.amazon.aws.plugins.module_utils.modules import AnsibleAWSModule
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._pcluster.library import (
    LIBRARY_ARGUMENTS,
    Library,
    library_of,
    snake,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    **LIBRARY_ARGUMENTS,
    "name": {"type": "str"},
    "instances": {"type": "bool", "default": True},
    "official_images": {"type": "bool", "default": False},
    "os": {"type": "str"},
    "architecture": {"type": "str", "choices": ["x86_64", "arm64"]},
}


def describe(library: Library, name: str, summary: dict[str, Any], instances: bool) -> dict[str, Any] | None:
    """All about one cluster; None if there is no such cluster. Of a newer version's, only the ``summary``."""
    state = library.call("cluster_state", cluster_name=name)
    if state is None:
        return None
    known = state["cluster"] is not None
    found = snake(state["cluster"] if known else {**summary, "clusterName": name, "version": state["version"]})
    found["configuration"] = state["configuration"]
    if instances:
        listed = library.all_pages("describe_cluster_instances", "instances", cluster_name=name) if known else []
        found["instances"] = [snake(item) for item in listed]
    return found


def run(library: Library, params: dict[str, Any]) -> dict[str, Any]:
    """The module's result."""
    if params["name"]:
        summaries: list[dict[str, Any]] = [{"clusterName": params["name"]}]
    else:
        summaries = library.all_pages("list_clusters", "clusters")
    described = [describe(library, item["clusterName"], item, params["instances"]) for item in summaries]
    clusters = [item for item in described if item is not None]
    result = {
        "changed": False,
        "clusters": sorted(clusters, key=lambda item: item["cluster_name"]),
        "installed_version": library.call("version"),
    }
    if params["official_images"]:
        images = library.call("list_official_images", os=params["os"], architecture=params["architecture"])["images"]
        result["official_images"] = [snake(item) for item in images]
    return result


def main() -> None:
    module = AnsibleAWSModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        result = run(library_of(module), module.params)
    except TrainiumError as error:
        module.fail_json(msg=f"pcluster_info: {error}.", **error.details)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
