"""What the role efa_nodes asks the account before anything is made: the image of the wanted SDK, and the quota."""

from __future__ import annotations

import re

from tests.contract.network.conftest import Controller

LATEST = "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id"


def test_by_default_the_nodes_get_the_image_of_their_sdk(controller: Controller) -> None:
    done = controller.role("efa_nodes", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    (image,) = set(re.findall(r"ImageId: (ami-\w+)", done.stdout))
    (found,) = controller.ec2.describe_images(ImageIds=[image])["Images"]
    assert found["Name"].startswith("Deep Learning Base Neuron AMI (Ubuntu 24.04)")
    assert found["Description"].endswith("Neuron SDK 2.29.1")
    assert "has Neuron SDK" not in done.stdout
    assert controller.api.writes() == []


def test_an_image_with_another_sdk_is_said_and_none_is_refused(controller: Controller) -> None:
    done = controller.role("efa_nodes:account", "-e", f"trainium_image_ssm_parameter={LATEST}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has Neuron SDK 2.33.0 and neuron_sdk_version is 2.29.1: other packages" in " ".join(done.stdout.split())
    (said,) = controller.cases(("efa_nodes:account", {"efa_nodes_sdk_version": "2.27.1"}))
    assert said.startswith("AWS shows no image with Neuron SDK 2.27.1, there are those of 2.29.1, 2.33.0 (Deep")


def test_a_quota_that_is_too_small_is_refused_before_anything_is_made(controller: Controller) -> None:
    controller.api.clear_calls()
    controller.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": 128})
    controller.api.control("POST", "quotas", {"code": "L-6B0D517C", "value": 0})
    image = controller.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    controller.ec2.run_instances(ImageId=image, InstanceType="trn1.2xlarge", MinCount=1, MaxCount=1)
    controller.api.clear_calls()
    spot, fewer, two = controller.cases(
        ("efa_nodes:account", {"efa_nodes_market": "spot", "efa_nodes_count": 1}),
        ("efa_nodes:account", {"efa_nodes_instance_type": "trn1.2xlarge", "efa_nodes_interface_layout": "none"}),
        ("efa_nodes:account", {}),
    )
    assert fewer == ""
    assert "2 x trn1.32xlarge need 256 vCPUs, and the quota 'Running On-Demand Trn instances' of us-west-2" in two
    assert "is 128, of which 8 are in use; ask for 264 at https://console.aws.amazon.com/servicequotas/" in two
    assert "'All Trn Spot Instance Requests' of us-west-2 is 0, of which 0 are in use" in spot
    assert controller.api.writes() == []


def test_the_quota_has_to_do_for_the_nodes_that_a_job_of_parallelcluster_starts(controller: Controller) -> None:
    controller.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": 0})
    pcluster = {"trainium_backend": "pcluster", "trainium_public_ip": "primary"}
    small, said, number, script, least = controller.cases(
        ("parallelcluster:account", pcluster),
        ("parallelcluster:account", {**pcluster, "trainium_training": {"nodes": 1}}),
        ("parallelcluster:account", {**pcluster, "trainium_node_count": 4}),
        ("parallelcluster:account", {**pcluster, "trainium_training": {"script": "train.py"}}),
        ("parallelcluster:account", {**pcluster, "trainium_training": {"min_nodes": 3}}),
    )
    assert "2 x trn1.32xlarge need 256 vCPUs" in small
    assert "1 x trn1.32xlarge need 128 vCPUs" in said
    assert "4 x trn1.32xlarge need 512 vCPUs" in number
    assert "16 x trn1.32xlarge need 2048 vCPUs" in script
    assert "3 x trn1.32xlarge need 384 vCPUs" in least


def test_a_quota_of_addresses_that_is_too_small_is_refused_before_anything_is_made(controller: Controller) -> None:
    controller.api.control("POST", "quotas", {"code": "L-2C3B7624", "value": 512})
    controller.api.control("POST", "quotas", {"code": "L-0263D0A3", "value": 2})
    controller.ec2.allocate_address(Domain="vpc")
    controller.api.clear_calls()
    head, bastion, two, one = controller.cases(
        (
            "efa_nodes:account",
            {"efa_nodes_public_ip": "primary", "efa_nodes_count": 1, "efa_nodes_head_instance_type": "m5.large"},
        ),
        ("efa_nodes:account", {"trainium_bastion": "create"}),
        ("efa_nodes:account", {"efa_nodes_public_ip": "primary"}),
        ("efa_nodes:account", {"efa_nodes_public_ip": "primary", "efa_nodes_count": 1}),
    )
    assert one == ""
    assert "The nodes (2) need 2 Elastic IPs more, and the quota 'EC2-VPC Elastic IPs' of us-west-2 is 2, of" in two
    # One by one they have room.
    assert "The nodes (1) and the head node (1) need 2 Elastic IPs more" in head
    assert "The NAT gateway (1) and the bastion (1) need 2 Elastic IPs more" in bastion
    assert controller.api.writes() == []


def test_who_may_not_see_the_quota_is_told_so(controller: Controller) -> None:
    controller.api.fault("ListServiceQuotas", "AccessDeniedException", times=2)
    done = controller.role("efa_nodes:account")
    assert done.returncode == 0, done.stdout
    text = " ".join((done.stdout + done.stderr).split())
    assert "The quota of trn1.32xlarge was not looked at" in text
    assert "The quota of Elastic IPs was not looked at" in text


def test_an_image_that_is_not_there_is_refused_in_a_sentence(controller: Controller) -> None:
    (said,) = controller.cases(("efa_nodes:account", {"efa_nodes_image_id": "ami-0123456789abcdef0"}))
    assert "ami-0123456789abcdef0" in said
    assert "Traceback" not in said
    assert controller.api.writes() == []
