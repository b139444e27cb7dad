# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Inventory plugin trainium.cluster.nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
version_added: 0.1.0
short_description: The nodes of a Trainium cluster as an inventory
description:
  - Finds the instances of a cluster by their tag C(trainium:cluster) and makes them hosts with what multi-node
    training needs, such as their rank and the address of rank 0.
  - The groups V(head), V(compute) and V(login) always exist, empty if need be. Further groups are C(cluster_<name>),
    C(type_<instance type>), C(zone_<availability zone>), C(placement_group_<name>), and in a ParallelCluster
    C(queue_<name>) and C(compute_resource_<name>), with every other character than a letter, a digit or C(_) replaced
    by C(_).
  - The group V(compute) holds the instances whose tag C(trainium:role) is V(compute), in the order of their ranks.
    The group V(head) holds the instance whose role is V(head), or else the first compute node. While that is stopped
    the group is empty, since Slurm's queue is on it and no other node takes its place.
  - Instances of AWS ParallelCluster have their role from the tag C(parallelcluster:node-type) instead, and a compute
    node never stands in for the head. Compute nodes are named as in Slurm, such as V(train-dy-trn1-1). Those names are
    read from the cluster's table in DynamoDB, one read for a cluster and its region however many nodes there are, and
    none for a cluster that is no ParallelCluster or has no living compute node.
  - Without the table or the permission C(dynamodb:Scan) for it, the other O(hostnames) serve, and a warning says so.
  - Nodes are ordered by the tag C(trainium:generation), launch index, the time at which the primary interface was
    attached, and instance id, so that nodes added later come last and a stop and start moves none. Without the tag the
    attachment comes before the index. Ranks count those that are pending or running.
  - Each instance is reduced to the fields that matter before it is cached and before it becomes a host, so that
    thousands of nodes with many network interfaces stay cheap.
  - Each host's key is known to ssh by the instance id, so that a new instance at an old address is not refused.
    Its first key is accepted, unless O(ssh_common_args) or C(ssh_args) of the configuration say otherwise.
notes:
  - The host variables are C(ansible_host), C(ansible_ssh_common_args), C(ansible_control_path), C(node_rank) (nodes
    with a rank only), C(master_addr), C(private_address), C(private_dns_name), C(public_address),
    C(efa_interface_count), C(head_state) (that of the head, empty where there is none), C(instance_id),
    C(instance_type), C(instance_state), C(instance_tags), C(image_id), C(availability_zone), C(aws_region),
    C(subnet_id), C(placement_group), C(launch_time), C(cluster_name) and C(node_role).
  - Compute nodes of a ParallelCluster also have C(queue), C(compute_resource), C(slurm_node_name) and
    C(slurm_node_kind), which is V(static), V(dynamic) or, like the name, empty where unknown.
  - A ParallelCluster made without the tag C(trainium:cluster) is found by O(filters), as the examples show; its
    C(cluster_name) is then its own name.
  - The name of the configuration file ends in C(nodes.yml) or C(nodes.yaml).
author:
  - The trainium.cluster founders (@trainium)
extends_documentation_fragment:
  - ansible.builtin.inventory_cache
  - ansible.builtin.constructed
  - trainium.cluster.aws.plugins
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [trainium.cluster.nodes]
  cluster_name:
    description:
      - The cluster, by the value of the tag C(trainium:cluster). Empty means every cluster, each with its own ranks
        and its own head.
      - A template may use extra variables.
    type: str
    default: ""
    vars:
      - name: trainium_cluster_name
    env:
      - name: TRAINIUM_CLUSTER_NAME
  regions:
    description:
      - The regions to look in. If empty, the region of the environment or of the AWS profile.
      - A template may use extra variables.
    type: list
    elements: str
    default: []
    vars:
      - name: trainium_region
  states:
    description: The states of instances that become hosts.
    type: list
    elements: str
    choices: [pending, running, stopping, stopped, shutting-down, terminated]
    default: [pending, running]
  filters:
    description:
      - Further filters of DescribeInstances, a dictionary of names and values; they are applied by AWS.
      - Filters named here replace those that the plugin would set by the same name.
    type: dict
    default: {}
  hostnames:
    description:
      - What a host is named by, in order of preference; the instance id if nothing else serves or if two instances
        would share a name.
      - Only letters, digits, C(.), C(_) and C(-) make a name, with one of the first two or C(_) at the beginning. A tag
        with another value is passed over, since whoever may tag an instance would choose what a playbook does with it.
        A name that is that of a group, of the controller or another instance's id does not serve either.
      - Each is V(slurm-node-name), V(kubernetes-node-name), V(short-private-dns-name), V(private-dns-name),
        V(private-ip-address), V(ip-address), V(dns-name), V(instance-id) or V(tag:<key>).
      - V(slurm-node-name) is that of a ParallelCluster's compute nodes, V(kubernetes-node-name) that of nodes of EKS
        (by their tag C(eks:cluster-name)), such as V(ip-10-77-16-5.us-west-2.compute.internal); others have none.
        Elsewhere V(short-private-dns-name), such as V(ip-10-77-16-5), is the node's own host name and its name in
        Slurm.
    type: list
    elements: str
    default: [slurm-node-name, kubernetes-node-name, short-private-dns-name, private-ip-address, instance-id]
  address:
    description:
      - The address to connect to. V(private) is that of the primary interface. V(public) is the public one, and the
        private one of nodes without it.
      - V(auto) is V(private) with a O(bastion) and V(public) without.
    type: str
    choices: [auto, public, private]
    default: auto
  bastion:
    description:
      - "A jump host for nodes that are reached by their private address: V(host), V(user@host) or V(user@host:port)."
      - V(head) or V(user@head) means the public address of the cluster's head, which is then itself reached directly.
      - V(create) means the bastion that role P(trainium.cluster.network#role) made, whose tag C(trainium:role) is
        V(bastion). It is no host. ssh logs in to it with O(private_key_file), by the keys in O(known_hosts).
      - Another becomes ssh's C(ProxyJump), its key from the ssh agent or C(~/.ssh/config), as with C(ssh -J).
      - A template may use extra variables.
    type: str
    default: ""
    vars:
      - name: trainium_bastion
  private_key_file:
    description: The private key for O(bastion=create). Empty leaves it to ssh.
    type: str
    default: ""
    vars:
      - name: trainium_ssh_private_key_file
    env:
      - name: ANSIBLE_PRIVATE_KEY_FILE
  connection:
    description:
      - V(ssh) goes to the nodes' addresses, V(ssm) over Session Manager by C(aws) and C(session-manager-plugin), so
        that nodes need neither a public address nor an open port. A template may use extra variables.
      - With V(ssm) C(ansible_host) is the instance id, and C(aws) has the O(profile) or the environment's credentials.
    type: str
    default: ssh
    vars:
      - name: trainium_connection
  known_hosts:
    description:
      - A file of known hosts with the keys that nodes told at their first boot, as the
        playbooks write it. ssh takes no other key of an instance that is in it.
    type: path
    default: ~/.ssh/trainium_known_hosts
    env:
      - name: TRAINIUM_KNOWN_HOSTS
  ssh_common_args:
    description: Arguments of ssh that are kept in front of those that the plugin adds in C(ansible_ssh_common_args).
    type: str
    default: ""
    env:
      - name: ANSIBLE_SSH_COMMON_ARGS
    ini:
      - section: ssh_connection
        key: ssh_common_args
"""

EXAMPLES = r"""
# inventory/nodes.yml: the cluster that -e trainium_cluster_name=... names
plugin: trainium.cluster.nodes
cluster_name: "{{ trainium_cluster_name | default('trainium') }}"
regions:
  - "{{ trainium_region | default('us-west-2') }}"

---
# All clusters of two regions, with groups and variables as with amazon.aws.aws_ec2
plugin: trainium.cluster.nodes
regions: [us-east-1, us-west-2]
filters:
  tag:Team: speech
keyed_groups:
  - key: instance_tags.Team
    prefix: team
compose:
  ansible_user: "'ubuntu'"
groups:
  wide: efa_interface_count >= 16
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/trainium

---
# Nodes in private subnets, by way of a jump host
plugin: trainium.cluster.nodes
cluster_name: bert
bastion: ec2-user@192.0.2.10

---
# A ParallelCluster that was made without this collection, by way of its head node
plugin: trainium.cluster.nodes
filters:
  tag-key: parallelcluster:node-type
  tag:parallelcluster:cluster-name: demo
bastion: ubuntu@head
"""

import hashlib
import json
import os
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible_collections.trainium.cluster.plugins.module_utils._common import tags
from ansible_collections.trainium.cluster.plugins.module_utils._common.errors import TrainiumError
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import host_keys
from ansible_collections.trainium.cluster.plugins.module_utils._ec2 import hosts as planner
from ansible_collections.trainium.cluster.plugins.plugin_utils._guarded import guarded

if TYPE_CHECKING:
    from ansible_collections.trainium.cluster.plugins.plugin_utils._nodes_account import Account

# Options that may be templates; all but the last four are those of amazon.aws's own inventories.
TEMPLATABLE = frozenset(
    {
        *("access_key", "secret_key", "session_token", "profile", "endpoint_url", "assume_role_arn"),
        *("region", "regions", "filters", "bastion", "cluster_name", "connection", "ssh_common_args"),
    }
)


class Templated:
    """Options as amazon.aws asks for them."""

    def __init__(self, templar: Any, options: dict[str, Any]) -> None:
        self.templar, self.options = templar, options

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an option."""
        value = self.options.get(name, default)
        return self.templar.template(value) if value and name in TEMPLATABLE else value


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Options, the cache and the inventory; what the nodes are is decided in the planner.

    The AWS SDK is for a question that no cache answers: importing it takes as long as Ansible itself.
    """

    NAME = "trainium.cluster.nodes"

    def verify_file(self, path: str) -> bool:
        """Whether the file is there and means this plugin by its name."""
        return bool(super().verify_file(path)) and path.endswith(("nodes.yml", "nodes.yaml"))

    def get_options(self, *args: Any) -> Any:
        """All options; those that may be templates are templated when one asks for them."""
        return Templated(self.templar, super().get_options(*args))

    def get_option(self, option: str, hostvars: Any = None) -> Any:
        """One option, templated if it may be a template."""
        return Templated(self.templar, {option: super().get_option(option, hostvars)}).get(option)

    @cached_property
    def _account(self) -> Account:
        from ansible_collections.trainium.cluster.plugins.plugin_utils._nodes_account import Account

        return Account(self)

    def _read_config_data(self, path: str) -> Any:
        # The options of amazon.aws are templated without variables; here extra variables count.
        self.templar.available_variables = self._vars
        return super()._read_config_data(path)

    def get_cache_key(self, path: str) -> str:
        """One entry per question asked, not per file: the answer for another cluster, account or API never serves."""
        asked = [self.get_option(name) for name in ("profile", "access_key", "assume_role_arn", "endpoint_url")]
        asked += [
            os.environ.get(name) for name in (f"AWS_ENDPOINT_URL{service}" for service in ("", "_EC2", "_DYNAMODB"))
        ]
        asked += [self._regions(), self._filters()]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]
        return f"{super().get_cache_key(path)}_{digest}"

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        known_hosts, pinned = str(self.get_option("known_hosts")), {}
        with suppress(FileNotFoundError), open(known_hosts, encoding="utf-8") as file:
            pinned = host_keys.pinned(file.read())
        try:
            options = planner.Options(
                hostnames=self.get_option("hostnames"),
                address=self.get_option("address"),
                bastion=self.get_option("bastion") or "",
                connection=self.get_option("connection"),
                private_key_file=os.path.expanduser(self.get_option("private_key_file") or ""),
                profile=self.get_option("profile") or "",
                ssh_common_args=self.get_option("ssh_common_args") or "",
                known_hosts=known_hosts,
                pinned=pinned,
                states=() if "instance-state-name" in self.get_option("filters") else self.get_option("states"),
            )
            key = self.get_cache_key(path) if self.get_option("cache") else ""
            records = self._cached(key) if cache and key else None
            fresh = records is None
            if records is None:
                records = self._account.records(self._regions(), self._filters())
            found = planner.plan_nodes(records, options)
        except TrainiumError as error:
            raise AnsibleParserError(f"{path}: {error}.") from None
        if not key:
            records = None  # thousands of them, beside the hosts that are made of them
        self._populate(found)
        if key and fresh:
            self._cache[key] = records

    def _cached(self, key: str) -> list[planner.Record] | None:
        with suppress(KeyError):  # there is none, or it is too old
            return list(self._cache[key])
        return None

    def _regions(self) -> list[str]:
        regions = [region for region in self.get_option("regions") if region] or [self._account.region]
        if not regions[0]:
            raise TrainiumError("no AWS region is given; set regions, -e trainium_region=... or AWS_REGION")
        return list(dict.fromkeys(regions))

    def _filters(self) -> dict[str, Any]:
        name = str(self.get_option("cluster_name") or "")
        if any(character in name for character in "*?\\"):
            raise TrainiumError(f"cluster_name is {name!r}; a cluster's name has no wildcards")
        by_cluster = {f"tag:{tags.CLUSTER_TAG}": name} if name else {"tag-key": tags.CLUSTER_TAG}
        # Stopped ones too, since one of them may be the head.
        states = list(dict.fromkeys([*self.get_option("states"), *planner.LIVE_STATES, *planner.RESTING_STATES]))
        return {**by_cluster, "instance-state-name": states, **self.get_option("filters")}

    def _populate(self, found: list[planner.Node]) -> None:
        for group in (planner.HEAD, planner.COMPUTE, planner.LOGIN):
            self.inventory.add_group(group)
        strict, compose = self.get_option("strict"), self.get_option("compose")
        groups, keyed_groups = self.get_option("groups"), self.get_option("keyed_groups")
        for node in found:
            variables = {key: guarded(value) for key, value in node.variables.items()}
            self.inventory.add_host(node.name)
            for group in node.groups:
                self.inventory.add_host(node.name, self.inventory.add_group(group))
            # Not one by one by set_variable, which looks into name and value each time.
            self.inventory.hosts[node.name].vars.update(variables)
            # Each of these costs a template, even where there is nothing to do.
            if compose:
                self._set_composite_vars(compose, variables, node.name, strict=strict)
            if groups:
                self._add_host_to_composed_groups(groups, variables, node.name, strict=strict)
            if keyed_groups:
                self._add_host_to_keyed_groups(keyed_groups, variables, node.name, strict=strict)
