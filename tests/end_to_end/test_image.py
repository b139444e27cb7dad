"""An image of the cluster's own: built once, and nodes from it have all that they need."""

from __future__ import annotations

from typing import Any

from tests.sandbox_driver import Sandbox

SMALL = (
    "-e",
    "trainium_instance_type=trn1.2xlarge",
    "-e",
    "efa_nodes_interface_layout=none",
    "-e",
    "trainium_node_count=1",
)
OWN = (*SMALL, "-e", "trainium_image=own")


def images(sandbox: Sandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sandbox.client("ec2").describe_images(Owners=["self"])["Images"]
    return found


def test_it_is_built_after_a_kill_and_then_never_again(sandbox: Sandbox) -> None:
    assert sandbox.playbook("network", *SMALL).returncode == 0
    sandbox.kill_playbook_when("image", lambda: bool(sandbox.instances("running")), *SMALL)
    run = sandbox.playbook("image", *SMALL)
    assert run.returncode == 0, sandbox.why(run.output)
    (image,) = images(sandbox)
    assert image["BlockDeviceMappings"][0]["Ebs"]["Encrypted"]
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
    again = sandbox.playbook("image", *SMALL)
    assert again.returncode == 0
    assert set(again.changed.values()) == {0}


def test_a_node_of_it_has_everything_and_nothing_of_the_builder(sandbox: Sandbox) -> None:
    run = sandbox.playbook("compute", *OWN)
    assert run.returncode == 0, sandbox.why(run.output)
    (node,) = sandbox.instances()
    assert node["ImageId"] == images(sandbox)[0]["ImageId"]
    look = (
        "head -n 1 /opt/amazon/efa_installed_packages; dpkg-query --show aws-neuronx-dkms slurmd munge | cut -f 1; "
        "ls -d /opt/aws_neuron_venv_pytorch; ls /etc/munge/munge.key 2>&1; wc -l < /home/ubuntu/.ssh/authorized_keys"
    )
    seen = sandbox.on_node(node["PrivateIpAddress"], look).output
    for wanted in ("EFA installer version", "aws-neuronx-dkms", "slurmd", "/opt/aws_neuron_venv_pytorch"):
        assert wanted in seen
    assert "cannot access '/etc/munge/munge.key'" in seen
    assert seen.split()[-1] == "1"
    nodes = sandbox.playbook("nodes", *OWN)
    assert nodes.returncode == 0, sandbox.why(nodes.output)


def test_teardown_leaves_the_image(sandbox: Sandbox) -> None:
    assert sandbox.playbook("teardown", *OWN).returncode == 0
    assert len(images(sandbox)) == 1
    assert sandbox.instances("pending", "running", "stopping", "stopped") == []
