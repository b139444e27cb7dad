"""A stand-in for the device plugins of Neuron and EFA: ``device_plugin PREFIX``, in a Pod of a DaemonSet.

Offers the node's resources that begin with the prefix, by the device plugin API v1beta1
(https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/). The node has written which
those are into the kubelet's folder, which both upstream DaemonSets mount.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sandbox.kubernetes.inside import wire

FOLDER = Path("/var/lib/kubelet/device-plugins")
KUBELET = FOLDER / "kubelet.sock"
DEVICES = FOLDER / "sandbox" / "devices.json"
VERSION = "v1beta1"
# What the plugins set in the containers they give devices to.
VARIABLES = {
    "aws.amazon.com/neuron": "AWS_NEURON_VISIBLE_DEVICES",
    "aws.amazon.com/neuroncore": "NEURON_RT_VISIBLE_CORES",
}


def listing(count: int) -> bytes:
    """A ListAndWatchResponse with that many healthy devices."""
    return b"".join(wire.field(1, wire.field(1, str(index)) + wire.field(2, "Healthy")) for index in range(count))


def allocation(resource: str, request: bytes) -> bytes:
    """The AllocateResponse to an AllocateRequest: the devices of each container in its environment."""
    answer = b""
    for container in wire.messages(request, 1):
        ids = ",".join(sorted(wire.texts(container, 1), key=int))
        name = VARIABLES.get(resource)
        answer += wire.field(1, wire.field(1, wire.field(1, name) + wire.field(2, ids)) if name else b"")
    return answer


def _handlers(resource: str, count: int) -> Any:
    import grpc

    def watch(_request: bytes, context: Any) -> Iterator[bytes]:
        yield listing(count)
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()

    unary = grpc.unary_unary_rpc_method_handler
    methods = {
        "GetDevicePluginOptions": unary(lambda _request, _context: b""),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(watch),
        "Allocate": unary(lambda request, _context: allocation(resource, request)),
        "PreStartContainer": unary(lambda _request, _context: b""),
    }
    return grpc.method_handlers_generic_handler(f"{VERSION}.DevicePlugin", methods)


def _serve(resource: str, count: int) -> Any:
    """Offer a resource and tell the kubelet."""
    import grpc

    name = f"{resource.replace('/', '_')}.sock"
    (FOLDER / name).unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([_handlers(resource, count)])
    server.add_insecure_port(f"unix://{FOLDER / name}")
    server.start()
    with grpc.insecure_channel(f"unix://{KUBELET}") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        request = wire.field(1, VERSION) + wire.field(2, name) + wire.field(3, resource)
        register(request, wait_for_ready=True, timeout=60)
    print(f"{resource}: {count}", flush=True)
    return server


def _kubelet() -> int | None:
    """Which kubelet it is: a new one has a new socket, and knows of no plugin."""
    return KUBELET.stat().st_ino if KUBELET.exists() else None


def main() -> int:
    found = json.loads(DEVICES.read_text(encoding="ascii"))
    offered = {name: count for name, count in found.items() if name.startswith(sys.argv[1])}
    while True:
        known = _kubelet()
        servers = [_serve(name, count) for name, count in offered.items()] if known else []
        while _kubelet() == known:
            time.sleep(0.5)
        for server in servers:
            server.stop(0)


if __name__ == "__main__":
    sys.exit(main())
