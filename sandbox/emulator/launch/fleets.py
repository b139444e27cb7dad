"""CreateFleet of type ``instant`` by the same path as RunInstances; other types are left to stock moto.

Stock moto launches without interfaces and user data, and knows no lack of capacity. Here the overrides are tried one
after the other, by priority where they have one, until the capacity is reached.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random

from sandbox.emulator.launch import run_instances, templates

_create_fleet = EC2Response.create_fleet
Item = dict[str, Any]


def _launch_one(response: EC2Response, config: Item, override: Item, count: int, market: str) -> list[Any]:
    """As many instances as there are, at most ``count``, of one override."""
    named = config["LaunchTemplateSpecification"]
    version = response.ec2_backend._get_template_from_args({"Version": "$Default", **named})
    data = templates.merge(version.data, {})
    request: Item = {"LaunchTemplate": named, "MinCount": 1, "MaxCount": count}
    for key in ("InstanceType", "ImageId", "Placement"):
        if override.get(key):
            request[key] = override[key]
    if override.get("SubnetId"):
        if data.get("NetworkInterfaces"):
            interfaces = [{**nic, "SubnetId": override["SubnetId"]} for nic in data["NetworkInterfaces"]]
            request["NetworkInterfaces"] = interfaces
        else:
            request["SubnetId"] = override["SubnetId"]
    if market == "spot":
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    tags = response._get_param("TagSpecifications", [])
    instance_tags = [item for item in tags if item["ResourceType"] == "instance"]
    if instance_tags:
        request["TagSpecifications"] = instance_tags
    return list(run_instances.run(response.current_account, response.region, request).instances)


def _answer(config: Item, override: Item, market: str) -> Item:
    lifecycle = "spot" if market == "spot" else "on-demand"
    template = {"LaunchTemplateSpecification": config["LaunchTemplateSpecification"], "Overrides": override}
    return {"LaunchTemplateAndOverrides": template, "Lifecycle": lifecycle}


def create_fleet(self: EC2Response) -> Any:
    get = self._get_param
    if get("Type") != "instant":
        return _create_fleet(self)
    self.error_on_dryrun()
    target = get("TargetCapacitySpecification")
    market = target.get("DefaultTargetCapacityType") or "on-demand"
    options = get("SpotOptions" if market == "spot" else "OnDemandOptions", {}) or {}
    missing, made, errors = int(target["TotalTargetCapacity"]), [], []
    pairs = [(config, override) for config in get("LaunchTemplateConfigs", []) for override in _overrides(config)]
    for config, override in pairs:
        if not missing:
            break
        try:
            instances = _launch_one(self, config, override, missing, market)
        except EC2ClientError as error:
            errors.append({**_answer(config, override, market), "ErrorCode": error.code, "ErrorMessage": error.message})
            continue
        missing -= len(instances)
        made.append((config, override, instances))
    least = int(options.get("MinTargetCapacity") or 0)
    launched = [instance for _config, _override, instances in made for instance in instances]
    if len(launched) < least:
        for instance in launched:
            instance.terminate()
        made = []
        if not errors:
            code, text = "InsufficientInstanceCapacity", "There is not enough capacity for MinTargetCapacity."
            errors.append({**_answer(*pairs[0], market), "ErrorCode": code, "ErrorMessage": text})
    identity = f"fleet-{mock_random.uuid4()}"
    answers = [
        {
            **_answer(config, override, market),
            "InstanceIds": [instance.id for instance in instances],
            "InstanceType": instances[0].instance_type,
        }
        for config, override, instances in made
    ]
    for _config, _override, instances in made:
        for instance in instances:
            instance.add_tags({"aws:ec2:fleet-id": identity})
    return ActionResult({"FleetId": identity, "Instances": answers, "Errors": errors})


def _overrides(config: Item) -> list[Item]:
    overrides = config.get("Overrides") or [{}]
    return sorted(overrides, key=lambda override: float(override.get("Priority") or 0))


def install() -> None:
    EC2Response.create_fleet = create_fleet
