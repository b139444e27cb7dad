"""What the kubelet's plugins say on the wire, and the names that the cluster's DNS knows."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sandbox.kubernetes.inside import device_plugin, dns, fsx_csi, idle, wire


def test_fields_are_read_as_they_were_written() -> None:
    long = "x" * 300
    message = wire.field(1, long) + wire.field(2, 1) + wire.field(3, wire.field(1, "key") + wire.field(2, "value"))
    assert list(wire.fields(message))[:2] == [(1, long.encode()), (2, 1)]
    assert wire.pairs(message, 3) == {"key": "value"}
    assert wire.texts(message, 1) == [long]


def test_devices_and_what_a_container_gets() -> None:
    devices = wire.messages(device_plugin.listing(16), 1)
    assert [wire.texts(device, 1)[0] for device in devices] == [str(index) for index in range(16)]
    request = wire.field(1, wire.field(1, "10") + wire.field(1, "9")) + wire.field(1, wire.field(1, "0"))
    containers = wire.messages(device_plugin.allocation("aws.amazon.com/neuron", request), 1)
    assert [wire.pairs(one, 1) for one in containers] == [
        {"AWS_NEURON_VISIBLE_DEVICES": "9,10"},
        {"AWS_NEURON_VISIBLE_DEVICES": "0"},
    ]
    assert wire.messages(device_plugin.allocation("vpc.amazonaws.com/efa", request), 1) == [b"", b""]


def volume(**context: str) -> bytes:
    pairs = b"".join(wire.field(8, wire.field(1, key) + wire.field(2, value)) for key, value in context.items())
    return wire.field(1, "fs-0123") + wire.field(4, "/var/lib/kubelet/pods/p/mount") + pairs


def test_a_volume_is_the_file_system_of_its_name() -> None:
    request = volume(dnsname="fs-0123.fsx.us-west-2.amazonaws.com", mountname="abc")
    assert fsx_csi.publication(request) == ("fs-0123", "/var/lib/kubelet/pods/p/mount", False)
    assert fsx_csi.publication(request + wire.field(6, 1)).read_only


def test_a_volume_without_its_name_is_refused() -> None:
    with pytest.raises(fsx_csi.InvalidArgumentError, match="dnsname is not provided"):
        fsx_csi.publication(volume(mountname="abc"))


def test_a_folder_bound_to_another_of_its_file_system_is_mounted() -> None:
    """The device is that of the folder around it."""
    line = "{} 611 254:0 /pool/fs-0123 /pods/{}/mount rw,relatime shared:9 - ext4 /dev/vda rw"
    mounts = "\n".join([line.format(655, "p"), line.format(656, r"with\040blank")])
    found = [fsx_csi.is_mounted(Path("/pods", pod, "mount"), mounts) for pod in ("p", "with blank", "other")]
    assert found == [True, True, False]


def test_pods_come_when_the_driver_is_there() -> None:
    other = {"key": "aws.amazon.com/neuron", "effect": "NoSchedule"}
    assert fsx_csi.without([{"key": "fsx.csi.aws.com/agent-not-ready", "effect": "NoExecute"}, other]) == [other]


def test_health_checks() -> None:
    assert idle.port(["--csi-address=/csi/csi.sock", "--health-port=9810"]) == 9810
    assert idle.port(["--csi-address=/csi/csi.sock"]) is None


def test_names_of_services_and_pods() -> None:
    metadata = {"name": "bert", "namespace": "default"}
    addresses = [{"ip": "100.64.1.66", "hostname": "bert-0"}, {"ip": "100.64.1.130"}]
    assert dns.of_endpoints({"metadata": metadata, "subsets": [{"addresses": addresses}]}) == {
        "bert.default.svc.cluster.local": ["100.64.1.66", "100.64.1.130"],
        "bert-0.bert.default.svc.cluster.local": ["100.64.1.66"],
        "100-64-1-130.bert.default.svc.cluster.local": ["100.64.1.130"],
    }
    assert dns.of_service({"metadata": metadata, "spec": {"clusterIP": "None"}}) == {}
    assert dns.of_service({"metadata": metadata, "spec": {"clusterIP": "10.100.0.10"}}) == {
        "bert.default.svc.cluster.local": ["10.100.0.10"]
    }


def test_answers_hold_every_address() -> None:
    query = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\4Bert\0" + struct.pack("!HH", 1, 1)
    assert dns.question(query)[:2] == ("bert", 1)
    reply = dns.answer(query, ["100.64.1.66", "100.64.1.130"])
    assert struct.unpack_from("!HHHHHH", reply) == (7, 0x8580, 1, 2, 0, 0)
    assert reply.endswith(bytes([100, 64, 1, 130]))
    assert struct.unpack_from("!H", dns.answer(query, []), 2)[0] & 15 == 3
