"""What the role efa_nodes asks the account before anything is made: the image of the wanted SDK, and the quota."""

from __future__ import annotations

import re

from tests.contract.network.conftest import Controller

LATEST = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


def test_by_default_the_nodes_get_the_image_of_their_sdk(controller: Controller) -> None:
    done = controller.role("efa_nodes", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    (image,) = set(re.findall(r'"ImageId": "(ami-\w+)"', done.stdout))
    (found,) = controller.ec2.describe_images(ImageIds=[image])["Images"]
    assert found["Name"].startswith("Deep Learning Base Neuron AMI (Ubuntu 24.04)")
    assert found["Description"].endswith("Neuron SDK 2.31.1")
    assert "has Neuron SDK" not in done.stdout
    assert controller.api.writes() == []


def test_an_image_with_another_sdk_is_said_and_none_is_refused(controller: Controller) -> None:
    done = controller.role("efa_nodes:account", "-e", f"trainium_image_ssm_parameter={LATEST}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has Neuron SDK 2.33.0 and neuron_sdk_version is 2.31.1: other packages" in " ".join(done.stdout.split())
    (said,) = controller.cases(("efa_nodes:account", {"efa_nodes_sdk_version": "2.29.1"}))
    assert said.startswith("AWS shows no image with Neuron SDK 2.29.1, there are those of 2.31.1, 2.33.0 (Deep")
