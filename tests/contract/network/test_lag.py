"""Eventual consistency: for a while EC2's descriptions do not know what was just made, and modules fall over it."""

from __future__ import annotations

from tests.contract.network.conftest import Controller, changed


def test_a_network_is_made_although_what_is_made_shows_late(controller: Controller) -> None:
    controller.variables.update(
        trainium_cluster_name="late",
        trainium_backend="pcluster",
        network_address_service=f"{controller.api.url}/sandbox-api/address",
    )
    controller.api.control("POST", "lag", {"seconds": 3, "seed": "1"})
    done = controller.role("network")
    assert changed(done) > 5
    controller.api.control("DELETE", "lag")
    controller.api.clear_calls()
    assert changed(controller.role("network")) == 0
    assert controller.api.writes() == []
    mine = [{"Name": "tag:trainium:cluster", "Values": ["late"]}]
    ec2 = controller.ec2
    assert len(ec2.describe_vpcs(Filters=mine)["Vpcs"]) == 1
    assert len(ec2.describe_internet_gateways(Filters=mine)["InternetGateways"]) == 1
