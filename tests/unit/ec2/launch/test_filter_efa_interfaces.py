"""The filter efa_interfaces as Ansible calls it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.trainium.cluster.plugins.filter.ec2 import FilterModule

efa_interfaces = FilterModule().filters()["efa_interfaces"]


def test_a_name_and_a_record() -> None:
    by_name = efa_interfaces("trn1.32xlarge", layout="efa-only", subnet_id="subnet-1", security_groups="sg-1")
    assert len(by_name) == 9
    assert by_name[0] == {
        "NetworkCardIndex": 0,
        "DeviceIndex": 0,
        "InterfaceType": "interface",
        "DeleteOnTermination": True,
        "SubnetId": "subnet-1",
        "Groups": ["sg-1"],
    }
    record = {
        "InstanceType": "c5n.18xlarge",
        "NetworkInfo": {
            "EfaSupported": True,
            "EfaInfo": {"MaximumEfaInterfaces": 1},
            "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 15}],
        },
    }
    assert [item["InterfaceType"] for item in efa_interfaces(record)] == ["efa"]


@pytest.mark.parametrize(
    ("value", "layout", "message"),
    [
        (7, None, "needs an instance type or its record"),
        ("m5.large", None, "not in the table"),
        ("trn1.2xlarge", "efa", "has no EFA"),
        ("trn1.32xlarge", "best", "is not one of efa"),
    ],
)
def test_refusals(value: Any, layout: str | None, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        efa_interfaces(value, layout)
