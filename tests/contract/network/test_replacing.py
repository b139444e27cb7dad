"""Nodes that are out of service: replace.yml asks the head node's Slurm, and puts other instances in their places.

What nodes.yml does on a node needs a host; here it is a play that says that it was run. So is validate.yml, which has
tests of its own.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller
from tests.contract.network.test_leaving import SCONTROL, SINFO
from tests.contract.warm_python import warm_python

PLAY = """\
- name: A phase
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Say so
      ansible.builtin.debug:
        msg: "{name}.yml was run"
"""


class Cluster:
    """Three nodes, an inventory of them as files, and a folder with playbooks whose nodes.yml needs no hosts."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.folder = controller, controller.folder
        ec2 = controller.ec2
        self.image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        marks = {"trainium:cluster": "small", "trainium:set": "small-compute", "trainium:role": "compute"}
        marks.update({"Name": "small-compute", "trainium:generation": "1"})
        tags = [{"Key": key, "Value": value} for key, value in marks.items()]
        launch = {"ImageId": self.image, "InstanceType": "trn1.2xlarge", "MinCount": 3, "MaxCount": 3}
        network = self.network()
        group = ec2.create_security_group(GroupName="all", Description="all", VpcId=network["VpcId"])["GroupId"]
        interface = {"DeviceIndex": 0, "SubnetId": network["SubnetId"], "Groups": [group]}
        marked = [{"ResourceType": "instance", "Tags": tags}]
        ec2.run_instances(**launch, NetworkInterfaces=[interface], TagSpecifications=marked)
        ec2.create_key_pair(KeyName="lab")
        self.variables = {
            **controller.variables,
            "trainium_cluster_name": "small",
            "trainium_instance_type": "trn1.2xlarge",
            "trainium_interface_layout": "efa",
            "efa_nodes_interface_layout": "none",
            "trainium_node_count": 3,
            "trainium_placement_group": False,
            "trainium_security_group_ids": [group],
            "trainium_subnet_ids": [network["SubnetId"]],
            "trainium_key_name": "lab",
            "trainium_image_id": self.image,
            "trainium_lease": False,
            # Of a head node of its own, not of this machine.
            "__efa_nodes_record": str(self.folder / "replaced.json"),
            "__efa_nodes_accepted": str(self.folder / "accepted.json"),
        }
        for program, text in (
            ("sinfo", SINFO),
            ("scontrol", SCONTROL),
            ("sbatch", "#!/bin/sh\n"),
            ("squeue", "#!/bin/sh\n"),
        ):
            (self.folder / program).write_text(text.format(folder=self.folder))
            (self.folder / program).chmod(0o755)
        controller.environment["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        playbooks = self.folder / "playbooks"
        playbooks.mkdir()
        for name in ("replace.yml", "replace_failed.yml", "compute.yml", "group_vars"):
            (playbooks / name).symlink_to(REPOSITORY / "playbooks" / name)
        for name in ("validate", "nodes", "training"):
            (playbooks / f"{name}.yml").write_text(PLAY.format(name=name))
        self.playbook = playbooks / "replace.yml"

    def network(self) -> dict[str, Any]:
        """A subnet in a zone that offers the type."""
        wanted = [{"Name": "instance-type", "Values": ["trn1.2xlarge"]}]
        offered = self.controller.ec2.describe_instance_type_offerings(LocationType="availability-zone", Filters=wanted)
        zones = [item["Location"] for item in offered["InstanceTypeOfferings"]]
        every: list[dict[str, Any]] = self.controller.ec2.describe_subnets()["Subnets"]
        return next(item for item in every if item["AvailabilityZone"] in zones)

    def nodes(self) -> list[dict[str, Any]]:
        """By address, which is by rank as long as nobody was replaced."""
        found = self.controller.ec2.describe_instances(
            Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        )
        every = [item for reservation in found["Reservations"] for item in reservation["Instances"]]
        for item in every:
            self.controller.api.boots(item["InstanceId"])
        return sorted(every, key=lambda item: str(item["PrivateIpAddress"]))

    def inventory(self) -> Path:
        """The nodes n0, n1 and n2 by their addresses, with those that run."""
        local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": warm_python()}
        names = dict(zip(self.addresses, ("n0", "n1", "n2")))
        nodes = {names[item["PrivateIpAddress"]]: {**local, "instance_id": item["InstanceId"]} for item in self.nodes()}
        groups = {
            "head": {"hosts": {"n0": {}}},
            "compute": {"hosts": nodes},
            "cluster_small": {"hosts": {name: {} for name in nodes}},
        }
        path = self.folder / "nodes.json"
        path.write_text(json.dumps({"all": {"children": groups}}))
        return path

    def boot(self, ended: threading.Event) -> None:
        """As instances do, which write to their consoles; compute.yml waits for those that it launched."""
        while not ended.wait(1):
            self.nodes()

    def run(self, name: str = "replace") -> tuple[int, str]:
        """replace.yml or another, and what it says in one line."""
        given = ["--inventory", str(self.inventory()), "-e", json.dumps(self.variables)]
        ended = threading.Event()
        boots = threading.Thread(target=self.boot, args=(ended,))
        boots.start()
        try:
            done = self.controller.run(self.playbook.with_name(f"{name}.yml"), *given)
        finally:
            ended.set()
            boots.join()
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    addresses: tuple[str, ...] = ()


def test_a_drained_node_is_replaced_and_stays_as_it_was_where_that_is_refused(controller: Controller) -> None:
    cluster = Cluster(controller)
    before = cluster.nodes()
    cluster.addresses = tuple(item["PrivateIpAddress"] for item in before)
    ids = [item["InstanceId"] for item in before]
    state = cluster.folder / "state"
    # As the end of site.yml: where nothing is out of service compute.yml does nothing, and the training comes.
    state.write_text("n0|idle\nn1|idle\nn2|allocated\n")
    controller.api.clear_calls()
    code, said = cluster.run("replace_failed")
    assert code == 0, said
    assert "No node is to be replaced." in said
    assert "training.yml was run" in said
    # Nothing of a launch, even of one that is only tried: whose cluster it is is asked, and what is there.
    called = {call["action"] for call in controller.api.calls()}
    assert called <= {"DescribeInstances", "DescribeVpcs", "GetCallerIdentity", "ListAccountAliases"}
    # EC2 refuses what would come: the node stays, drained for what it was drained for.
    state.write_text("n0|idle\nn1|drained|root|(null)|acceptance: no driver\nn2|allocated\n")
    controller.api.fault("TerminateInstances", "UnauthorizedOperation", status=403)
    code, said = cluster.run()
    assert (code, "UnauthorizedOperation" in said) == (2, True), said
    assert state.read_text().splitlines()[1] == "n1|drained|root|(null)|acceptance: no driver"
    assert "nodes.yml was run" not in said
    code, said = cluster.run("replace_failed")
    assert code == 0, said
    assert "nodes.yml was run" in said
    assert "training.yml was run" in said
    after = cluster.nodes()
    assert [item["PrivateIpAddress"] for item in after] == list(cluster.addresses)
    assert [after[number]["InstanceId"] for number in (0, 2)] == [ids[0], ids[2]]
    assert after[1]["InstanceId"] != ids[1]
    assert {"Key": "trainium:generation", "Value": "2"} in after[1]["Tags"]
    assert any(tag["Key"] == "trainium:place" and tag["Value"].startswith("1/1/") for tag in after[1]["Tags"])
    # Until the acceptance, which nodes.yml has, takes it: by this it knows that the instance is another one.
    assert state.read_text().splitlines()[1].endswith(f"trainium: replaces {ids[1]}, was acceptance: no driver")
