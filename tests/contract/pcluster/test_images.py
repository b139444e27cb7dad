"""Official images, and one that is built and deleted, with the real pcluster."""

from __future__ import annotations

import json
from typing import Any


def test_official_images_of_an_operating_system(site: Any) -> None:
    shown = site.pcluster("list-official-images", "--os", "ubuntu2404")["images"]
    assert {(image["os"], image["architecture"], image["version"]) for image in shown} == {
        ("ubuntu2404", "x86_64", "3.16.1"),
        ("ubuntu2404", "arm64", "3.16.1"),
    }


def test_an_image_is_built_and_deleted(site: Any) -> None:
    site.api.control("POST", "waiting", {"delay": 0.3})
    filters = [{"Name": "name", "Values": ["aws-parallelcluster-*ubuntu-2404*x86_64*"]}]
    (parent,) = site.ec2.describe_images(Owners=["amazon"], Filters=filters)["Images"]
    network = {"SubnetId": site.subnet_id, "SecurityGroupIds": [site.group]}
    build = {"InstanceType": "m5.xlarge", "ParentImage": parent["ImageId"], **network}
    path = site.home / "image.yaml"
    path.write_text(json.dumps({"Build": build}), encoding="utf-8")
    given = ("--image-id", "mine", "--image-configuration", str(path), "--suppress-validators", "ALL")
    made = site.pcluster("build-image", *given)["image"]
    assert made["imageBuildStatus"] == "BUILD_IN_PROGRESS"
    # Its stack goes by itself when the image is there.
    site.until(lambda: "stacks" not in site.left())
    shown = site.pcluster("describe-image", "--image-id", "mine")
    assert (shown["imageBuildStatus"], shown["ec2AmiInfo"]["state"]) == ("BUILD_COMPLETE", "AVAILABLE")
    site.pcluster("delete-image", "--image-id", "mine")
    assert site.ec2.describe_images(Owners=["self"])["Images"] == []
