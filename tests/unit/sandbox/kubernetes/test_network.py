"""Addresses of clusters and Pods."""

from __future__ import annotations

import pytest

from sandbox.kubernetes import network


def test_two_control_planes_fit_into_a_vpc() -> None:
    first = network.control_plane("10.0.0.0/16", set())
    assert first == "10.0.0.3"
    assert network.control_plane("10.0.0.0/16", {first}) == "10.0.0.2"
    assert network.control_plane("10.0.0.0/16", {first, "10.0.0.2"}) is None


def test_services() -> None:
    assert network.dns("172.20.0.0/16") == "172.20.0.10"
    assert network.kubernetes_service("10.100.0.0/16") == "10.100.0.1"


@pytest.mark.parametrize(
    ("address", "pods"),
    [("10.0.0.5", "100.64.1.64/26"), ("10.0.0.6", "100.64.1.128/26"), ("10.0.255.254", "100.127.255.128/26")],
)
def test_the_pods_of_a_node_follow_from_its_address(address: str, pods: str) -> None:
    assert network.pods_of(address, "10.0.0.0/16") == pods


@pytest.mark.parametrize(("address", "vpc"), [("10.1.0.5", "10.0.0.0/16"), ("10.0.0.5", "10.0.0.0/8")])
def test_other_addresses_are_refused(address: str, vpc: str) -> None:
    with pytest.raises(ValueError, match="is no address of a VPC"):
        network.pods_of(address, vpc)
