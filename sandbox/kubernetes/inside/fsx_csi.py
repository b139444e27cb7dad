"""A stand-in for the node part of the FSx CSI driver: volumes are folders of the machine that the nodes of a VPC share.

Registers with the kubelet by itself, as node-driver-registrar does for the real one. Services and messages are those of
the CSI specification 1.x and of pluginregistration; what is refused is what the driver's NodePublishVolume refuses
(https://github.com/kubernetes-sigs/aws-fsx-csi-driver, pkg/driver/node.go).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.kubernetes.inside import wire
from sandbox.kubernetes.inside.api import Api, ApiError

NAME = "fsx.csi.aws.com"
TAINT = f"{NAME}/agent-not-ready"
KUBELET = Path("/var/lib/kubelet")
ENDPOINT = KUBELET / "plugins" / NAME / "csi.sock"
REGISTRATION = KUBELET / "plugins_registry" / f"{NAME}-reg.sock"
FILESYSTEMS = KUBELET / "plugins" / "sandbox-filesystems"
MOUNTS = Path("/proc/self/mountinfo")


class Publication(NamedTuple):
    """What a NodePublishVolumeRequest asks for."""

    filesystem: str
    target: str
    read_only: bool


class InvalidArgumentError(ValueError):
    """What the driver refuses, in its words."""


def publication(request: bytes) -> Publication:
    """Read a NodePublishVolumeRequest.

    Raises:
        InvalidArgumentError: something is missing.
    """
    context = wire.pairs(request, 8)
    host = context.get("dnsname", "")
    if not host:
        raise InvalidArgumentError("dnsname is not provided")
    targets = wire.texts(request, 4)
    if not targets or not targets[0]:
        raise InvalidArgumentError("Target path not provided")
    read_only = any(number == 6 and bool(value) for number, value in wire.fields(request))
    # A static volume's handle may be any text; the file system is the first part of its name.
    return Publication(host.partition(".")[0], targets[0], read_only)


def is_mounted(target: Path, mounts: str) -> bool:
    """Whether something is mounted at a folder, by ``/proc/self/mountinfo``.

    ``os.path.ismount`` misses a folder that is bound to another of its own file system.
    """
    # proc(5): space, tab, line break and backslash are written as octal numbers.
    escaped = re.sub(r"[ \t\n\\]", lambda sign: f"\\{ord(sign[0]):03o}", str(target))
    return any(line.split(" ")[4] == escaped for line in mounts.splitlines())


def publish(wanted: Publication) -> None:
    """Mount a file system for a Pod."""
    source, target = FILESYSTEMS / wanted.filesystem, Path(wanted.target)
    source.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    if is_mounted(target, MOUNTS.read_text(encoding="utf-8")):
        return
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True)
    if wanted.read_only:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(target)], check=True)


def unpublish(request: bytes) -> None:
    """Take a volume away from a Pod."""
    target = Path(wire.texts(request, 2)[0])
    if is_mounted(target, MOUNTS.read_text(encoding="utf-8")):
        subprocess.run(["umount", str(target)], check=True)
    if target.exists():
        target.rmdir()


def _publish(request: bytes, context: Any) -> bytes:
    import grpc

    try:
        publish(publication(request))
    except InvalidArgumentError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    except (OSError, subprocess.CalledProcessError) as error:
        context.abort(grpc.StatusCode.INTERNAL, f"Could not mount: {error}")
    return b""


def _unpublish(request: bytes, _context: Any) -> bytes:
    unpublish(request)
    return b""


def _services(node: str) -> dict[str, dict[str, Any]]:
    """Service -> method -> what answers it."""
    info = wire.field(1, "CSIPlugin") + wire.field(2, NAME) + wire.field(3, str(ENDPOINT)) + wire.field(4, "1.0.0")

    def say(message: bytes) -> Any:
        return lambda _request, _context: message

    return {
        "pluginregistration.Registration": {"GetInfo": say(info), "NotifyRegistrationStatus": say(b"")},
        "csi.v1.Identity": {
            "GetPluginInfo": say(wire.field(1, NAME) + wire.field(2, "sandbox")),
            "GetPluginCapabilities": say(b""),
            "Probe": say(wire.field(1, wire.field(1, 1))),
        },
        "csi.v1.Node": {
            "NodeGetInfo": say(wire.field(1, node)),
            "NodeGetCapabilities": say(b""),
            "NodePublishVolume": _publish,
            "NodeUnpublishVolume": _unpublish,
        },
    }


def _serve(socket: Path, services: dict[str, dict[str, Any]]) -> Any:
    import grpc

    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(4))
    for service, methods in services.items():
        handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def without(taints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A node's taints without the one that keeps Pods away until the driver is there."""
    return [taint for taint in taints if taint["key"] != TAINT]


def admit_pods(api: Api, node: str) -> None:
    """Take the start-up taint off the node, as the driver does when it is ready."""
    path = f"/api/v1/nodes/{node}"
    taints = api.get(path)["spec"].get("taints") or []
    if without(taints) != taints:
        api.patch(path, {"spec": {"taints": without(taints)}})


def main() -> int:
    if "--mode=controller" in sys.argv or not KUBELET.exists():
        # Static volumes need no controller.
        threading.Event().wait()
    node = os.environ.get("CSI_NODE_NAME", os.uname().nodename)
    services = _services(node)
    registration = {name: methods for name, methods in services.items() if name.startswith("pluginregistration")}
    kept = [_serve(ENDPOINT, {name: services[name] for name in ("csi.v1.Identity", "csi.v1.Node")})]
    kept.append(_serve(REGISTRATION, registration))
    print(f"{NAME} at {ENDPOINT}", flush=True)
    try:
        admit_pods(Api.of_pod(), node)
    except (ApiError, OSError) as error:
        print(f"The taint {TAINT} stays: {error}", flush=True)
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
