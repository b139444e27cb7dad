"""AWS::ImageBuilder::Image: an image that takes its time to be built, and the state of its build; moto has neither.

The new image is a copy of nothing: it has the architecture of its parent and the tags that the distribution gives it.
When the image is there, ParallelCluster's own function would delete the stack; so does the end of the build here.
"""

from __future__ import annotations

import time
import urllib.parse
from typing import Any

from moto.cloudformation.models import cloudformation_backends
from moto.ec2.models import ec2_backends
from moto.moto_api._internal import mock_random

from sandbox.emulator import state
from sandbox.emulator.cloudformation.waiting import Condition

DISTRIBUTION = "AWS::ImageBuilder::DistributionConfiguration"
# Arn of a build -> its image.
BUILDS: dict[str, Image] = {}


class Image(Condition):
    """Its stack waits for it as for a wait condition."""

    def create(self) -> None:
        self.began, self.done, self.token = time.monotonic(), False, ""
        self.image_id, self.reason = "", ""
        stack = self.context["StackId"].split("/")[1].lower()
        name = f"parallelclusterimage-{stack}"
        self.identity = f"arn:aws:imagebuilder:{self.region}:{self.account}:image/{name}/3.16.1/1"
        BUILDS[self.identity] = self

    def outcome(self) -> tuple[bool, str | None] | None:
        if time.monotonic() - self.began < state.WAITING["delay"]:
            return None
        if state.WAITING["mode"] == "fail":
            self.reason = state.WAITING["reason"]
            return False, f"Resource creation failed: {self.reason}"
        self._register()
        return True, None

    def _distribution(self) -> dict[str, Any]:
        stack = cloudformation_backends[self.account][self.region].get_stack(self.context["StackId"])
        found = [r for r in stack.stack_resources if r.cf_resource_type == DISTRIBUTION]
        distributions = found[0].properties["Distributions"] if found else [{}]
        configuration: dict[str, Any] = distributions[0].get("AmiDistributionConfiguration", {})
        return configuration

    def _register(self) -> None:
        backend, wanted = ec2_backends[self.account][self.region], self._distribution()
        stamp = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
        name = str(wanted.get("Name", f"image-{mock_random.get_random_hex(8)}"))
        name = name.replace("{{ imagebuilder:buildDate }}", stamp)
        image = backend.register_image(name, wanted.get("Description") or name)
        image.owner_id, image.architecture, image.root_device_name = self.account, "x86_64", "/dev/sda1"
        tags = {**wanted.get("AmiTags", {}), "Ec2ImageBuilderArn": self.identity}
        image.add_tags({**tags, "parallelcluster:build_status": "available"})
        self.image_id = image.id

    def remove(self) -> None:
        BUILDS.pop(self.identity, None)

    def shown(self) -> dict[str, Any]:
        """The record of GetImage."""
        status = "AVAILABLE" if self.image_id else "FAILED" if self.reason else "BUILDING"
        images = [{"image": self.image_id, "region": self.region}] if self.image_id else []
        return {
            "arn": self.identity,
            "state": {"status": status, **({"reason": self.reason} if self.reason else {})},
            "outputResources": {"amis": images},
        }


def get_image(query: str) -> dict[str, Any] | None:
    """What GetImage answers for a query string; None where there is no such build."""
    arn = urllib.parse.parse_qs(query).get("imageBuildVersionArn", [""])[0]
    return {"requestId": "sandbox", "image": BUILDS[arn].shown()} if arn in BUILDS else None
