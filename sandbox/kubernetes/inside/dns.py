"""The cluster's DNS: services, headless ones, and hostname.subdomain names of Pods; all else is asked of the VPC.

``python3 -m sandbox.kubernetes.inside.dns``. Stands for CoreDNS with the plugins kubernetes and forward, after the
specification of names (https://github.com/kubernetes/dns/blob/master/docs/specification.md): A records only.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from pathlib import Path
from typing import Any

from sandbox.kubernetes.inside.api import Api

ZONE = "cluster.local"
SEED = Path("/seed")
A, ANY, IN = 1, 255, 1
NO_SUCH_NAME = 3
Table = dict[str, list[str]]


def of_service(service: dict[str, Any]) -> Table:
    """The names of a service that has an address of its own."""
    address = service["spec"].get("clusterIP")
    name = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.{ZONE}"
    return {name: [address]} if address and address != "None" else {}


def of_endpoints(endpoints: dict[str, Any]) -> Table:
    """The names of what stands behind a service, each Pod's among them.

    Addresses that are not ready are in Endpoints as ready where the service publishes them (publishNotReadyAddresses).
    """
    name = f"{endpoints['metadata']['name']}.{endpoints['metadata']['namespace']}.svc.{ZONE}"
    found: Table = {}
    for subset in endpoints.get("subsets") or []:
        for address in subset.get("addresses") or []:
            found.setdefault(name, []).append(address["ip"])
            host = address.get("hostname") or address["ip"].replace(".", "-")
            found.setdefault(f"{host}.{name}", []).append(address["ip"])
    return found


class Names:
    """What the apiserver says, kept up to date."""

    def __init__(self) -> None:
        self.services: dict[str, Table] = {}
        self.endpoints: dict[str, Table] = {}

    def follow(self, api: Api, path: str, kept: dict[str, Table], names: Any) -> None:
        for event, found in api.follow(path):
            if event == "LIST":
                kept.clear()
                kept.update({_key(one): names(one) for one in found["items"]})
            elif event == "DELETED":
                kept.pop(_key(found), None)
            else:
                kept[_key(found)] = names(found)

    def find(self, name: str) -> list[str]:
        """The addresses of a name; a service's own address goes before those behind it."""
        for kept in (self.services, self.endpoints):
            addresses = [address for table in list(kept.values()) for address in table.get(name, [])]
            if addresses:
                return addresses
        return []


def _key(found: dict[str, Any]) -> str:
    return f"{found['metadata']['namespace']}/{found['metadata']['name']}"


def question(query: bytes) -> tuple[str, int, int]:
    """Name in lower case, type, and where the question ends.

    Raises:
        ValueError: the message is no question.
    """
    labels, position = [], 12
    while position < len(query) and query[position]:
        length = query[position]
        labels.append(query[position + 1 : position + 1 + length].decode("ascii", "replace"))
        position += length + 1
    if len(query) < position + 5:
        raise ValueError("a message without a question")
    (kind,) = struct.unpack_from("!H", query, position + 1)
    return ".".join(labels).lower(), kind, position + 5


def answer(query: bytes, addresses: list[str]) -> bytes:
    """The reply with the addresses, as many as a message of UDP holds; none means that there is no such name."""
    _name, kind, end = question(query)
    sent = addresses[:28] if kind in (A, ANY) else []
    header = query[:2] + struct.pack("!HHHHH", 0x8580 | (0 if addresses else NO_SUCH_NAME), 1, len(sent), 0, 0)
    records = [struct.pack("!HHHIH", 0xC00C, A, IN, 5, 4) + socket.inet_aton(address) for address in sent]
    return header + query[12:end] + b"".join(records)


def forward(query: bytes, server: str) -> bytes:
    """The VPC resolver's reply."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.settimeout(5)
        asked.sendto(query, (server, 53))
        return asked.recv(4096)


def main() -> None:
    settings = json.loads((SEED / "dns.json").read_text(encoding="utf-8"))
    api = Api.of_kubeconfig(SEED / "pki" / "admin.kubeconfig")
    names = Names()
    for path, kept, rows in (
        ("/api/v1/services", names.services, of_service),
        ("/api/v1/endpoints", names.endpoints, of_endpoints),
    ):
        threading.Thread(target=names.follow, args=(api, path, kept, rows), daemon=True).start()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            query, connection = self.request
            try:
                name = question(query)[0]
                if name.endswith(ZONE):
                    reply = answer(query, names.find(name))
                elif name in settings["hosts"]:
                    reply = answer(query, [settings["hosts"][name]])
                else:
                    reply = forward(query, settings["forward"])
            except (ValueError, OSError):
                return
            connection.sendto(reply, self.client_address)

    socketserver.ThreadingUDPServer.allow_reuse_address = True
    with socketserver.ThreadingUDPServer((settings["address"], 53), Handler) as server:
        server.daemon_threads = True
        server.serve_forever()


if __name__ == "__main__":
    main()
