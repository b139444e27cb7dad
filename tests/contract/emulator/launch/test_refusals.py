"""What EC2 refuses is refused, and nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NOWHERE = "0123456789abcdef0"
Item = dict[str, Any]

REFUSED: dict[str, tuple[str, Callable[[Any], Item]]] = {
    "the same card and device twice": (
        "InvalidParameterValue",
        lambda lab: {"NetworkInterfaces": lab.nics() + lab.nics()[1:2]},
    ),
    "a public address and several interfaces": (
        "InvalidParameterCombination",
        lambda lab: {"NetworkInterfaces": lab.nics(AssociatePublicIpAddress=True)},
    ),
    "interfaces and groups of the instance": (
        "InvalidParameterCombination",
        lambda lab: {"SecurityGroupIds": [lab.group]},
    ),
    "interfaces and a subnet of the instance": ("InvalidParameterCombination", lambda lab: {"SubnetId": lab.subnet}),
    "an unknown security group": (
        "InvalidGroup.NotFound",
        lambda lab: {"NetworkInterfaces": lab.nics(Groups=[f"sg-{NOWHERE}"])},
    ),
    "an unknown subnet": (
        "InvalidSubnetID.NotFound",
        lambda lab: {"NetworkInterfaces": lab.nics(SubnetId=f"subnet-{NOWHERE}")},
    ),
    "more cards than the type has": ("InvalidParameterValue", lambda lab: {"NetworkInterfaces": lab.nics(17)}),
    "two EFA on a card": (
        "AttachmentLimitExceeded",
        lambda lab: {"NetworkInterfaces": [*lab.nics(2), {**lab.nics()[1], "DeviceIndex": 2}]},
    ),
    "efa-only as the primary interface": (
        "InvalidParameterValue",
        lambda lab: {"NetworkInterfaces": lab.nics(8, "efa-only")},
    ),
    "no primary interface": ("InvalidParameterValue", lambda lab: {"NetworkInterfaces": lab.nics()[1:]}),
    "an unknown interface type": ("InvalidParameterValue", lambda lab: {"NetworkInterfaces": lab.nics(8, "fast")}),
    "EFA on a type without it": (
        "UnsupportedOperation",
        lambda lab: {"InstanceType": "trn1.2xlarge", "NetworkInterfaces": lab.nics(1)},
    ),
    "a zone without the type": (
        "Unsupported",
        lambda lab: {"NetworkInterfaces": lab.nics(SubnetId=lab.make_subnet("10.66.16.0/20", other_zone(lab)))},
    ),
    "interfaces in two zones": (
        "InvalidParameterCombination",
        lambda lab: {
            "NetworkInterfaces": [
                *lab.nics()[:7],
                {**lab.nics()[7], "SubnetId": lab.make_subnet("10.66.16.0/20", lab.zones[1])},
            ]
        },
    ),
    "a subnet that is too small": (
        "InsufficientFreeAddressesInSubnet",
        lambda lab: {
            "NetworkInterfaces": lab.nics(SubnetId=lab.make_subnet("10.66.16.0/28", lab.zones[0])),
            "MinCount": 2,
            "MaxCount": 2,
        },
    ),
    "one private address for two": (
        "InvalidParameterCombination",
        lambda lab: {"NetworkInterfaces": lab.nics(1, PrivateIpAddress="10.66.0.9"), "MinCount": 2, "MaxCount": 2},
    ),
    "a private address of another network": (
        "InvalidParameterValue",
        lambda lab: {"NetworkInterfaces": lab.nics(1, PrivateIpAddress="10.99.0.9")},
    ),
    "an unknown image": ("InvalidAMIID.NotFound", lambda lab: {"ImageId": f"ami-{NOWHERE}"}),
    "an unknown type": ("InvalidParameterValue", lambda lab: {"InstanceType": "trn9.big"}),
    "an unknown key pair": ("InvalidKeyPair.NotFound", lambda lab: {"KeyName": "nobody"}),
    "an unknown instance profile": ("InvalidParameterValue", lambda lab: {"IamInstanceProfile": {"Name": "nobody"}}),
    "an unknown placement group": (
        "InvalidPlacementGroup.Unknown",
        lambda lab: {"Placement": {"GroupName": "nowhere"}},
    ),
    "an unknown capacity reservation": (
        "InvalidCapacityReservationId.NotFound",
        lambda lab: {
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": f"cr-{NOWHERE}"}
            }
        },
    ),
    "fewer at most than at least": ("InvalidParameterValue", lambda lab: {"MinCount": 2}),
    "a launch that is only tried": ("DryRunOperation", lambda lab: {"DryRun": True}),
}


def other_zone(lab: Any) -> str:
    """A zone that does not offer the type."""
    zones = [zone["ZoneName"] for zone in lab.ec2.describe_availability_zones()["AvailabilityZones"]]
    return str(next(zone for zone in zones if zone not in lab.zones))


@pytest.mark.parametrize("what", REFUSED)
def test_refused_launches_leave_nothing_behind(lab: Any, what: str) -> None:
    code, changes = REFUSED[what]
    request = lab.request(**changes(lab))
    assert lab.code_of(lambda: lab.ec2.run_instances(**request)) == code
    assert lab.shown() == []
    assert lab.ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert lab.ec2.describe_volumes()["Volumes"] == []


def test_a_private_address_is_given_away_once_until_its_instance_has_ended(lab: Any) -> None:
    asked = {"NetworkInterfaces": [{**lab.nics()[0], "PrivateIpAddress": "10.66.0.6"}, *lab.nics()[1:]]}
    (first,) = lab.run(**asked)
    assert first["PrivateIpAddress"] == "10.66.0.6"
    assert lab.code_of(lambda: lab.run(**asked)) == "InvalidIPAddress.InUse"
    lab.ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    lab.ec2.get_waiter("instance_terminated").wait(InstanceIds=[first["InstanceId"]], WaiterConfig={"Delay": 1})
    assert lab.run(**asked)[0]["PrivateIpAddress"] == "10.66.0.6"
