"""A cluster that becomes smaller: compute.yml asks the head node's queue which nodes may go."""

from __future__ import annotations

import json
import os

from tests.contract.conftest import REPOSITORY
from tests.contract.network.conftest import Controller
from tests.contract.warm_python import warm_python

SINFO = "#!/bin/sh\nsed '/drained/!s/$/|root|(null)|none/' {folder}/state\n"
SCONTROL = """\
#!/bin/sh
name=${{2#nodename=}}
case "$3" in
  state=resume) state=idle ;;
  *) state="drained|root|(null)|${{4#reason=}}" ;;
esac
sed -i "s/^$name|.*/$name|$state/" {folder}/state
"""


def test_the_idle_node_goes_and_the_busy_one_stays(controller: Controller) -> None:
    image = controller.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    marks = {"trainium:cluster": "small", "trainium:set": "small-compute", "trainium:role": "compute"}
    tags = [{"Key": key, "Value": value} for key, value in {**marks, "Name": "small-compute"}.items()]
    launch = {"ImageId": image, "InstanceType": "trn1.2xlarge", "MinCount": 3, "MaxCount": 3}
    made = controller.ec2.run_instances(**launch, TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])
    ids = [item["InstanceId"] for item in made["Instances"]]
    for identity in ids:
        controller.api.boots(identity)
    local = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": warm_python()}
    nodes = {f"n{number}": {**local, "instance_id": ids[number]} for number in range(3)}
    groups = {
        "head": {"hosts": {"n0": {}}},
        "compute": {"hosts": nodes},
        "cluster_small": {"hosts": {name: {} for name in nodes}},
    }
    inventory = controller.folder / "nodes.json"
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    nothing = "#!/bin/sh\n"
    for program, text in (("sinfo", SINFO), ("scontrol", SCONTROL), ("sbatch", nothing), ("squeue", nothing)):
        (controller.folder / program).write_text(text.format(folder=controller.folder))
        (controller.folder / program).chmod(0o755)
    controller.environment["PATH"] = f"{controller.folder}:{os.environ['PATH']}"
    state = controller.folder / "state"
    variables = {
        **controller.variables,
        "trainium_cluster_name": "small",
        "trainium_instance_type": "trn1.2xlarge",
        "trainium_interface_layout": "efa",
        "efa_nodes_interface_layout": "none",
        "trainium_node_count": 2,
        "trainium_allow_shrink": True,
        "trainium_placement_group": False,
        "efa_nodes_security_group_ids": [item["GroupId"] for item in made["Instances"][0]["SecurityGroups"]],
        "efa_nodes_subnet_ids": [made["Instances"][0]["SubnetId"]],
        "trainium_key_name": "none",
        "trainium_lease": False,
    }
    options = ["--inventory", str(inventory), "-e", json.dumps(variables)]
    state.write_text("n0|idle\nn1|allocated\nn2|allocated\n")
    refused = controller.run(REPOSITORY / "playbooks/compute.yml", *options)
    assert "1 nodes are to leave, and only 0 may: jobs run on n1, n2, and n0 stays" in " ".join(refused.stdout.split())
    state.write_text("n0|idle\nn1|idle\nn2|allocated\n")
    # A run that fails after it has drained the node: it gets jobs again, and the next run drains it anew.
    controller.api.fault("TerminateInstances", "UnauthorizedOperation", status=403)
    failed = controller.run(REPOSITORY / "playbooks/compute.yml", *options)
    assert failed.returncode == 2
    assert "UnauthorizedOperation" in failed.stdout
    assert state.read_text() == "n0|idle\nn1|idle\nn2|allocated\n"
    controller.api.clear_calls()
    done = controller.run(REPOSITORY / "playbooks/compute.yml", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    gone = [call["parameters"] for call in controller.api.calls("TerminateInstances")]
    assert gone == [{"InstanceId.1": ids[1]}]
    assert "n1|drained" in state.read_text()
