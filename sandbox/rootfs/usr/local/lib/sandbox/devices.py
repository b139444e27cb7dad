"""The simulated hardware of a host: what the stand-ins for Neuron's and EFA's tools show. Nothing here is hardware.

A number in /etc/simulated/neuron-devices or /etc/simulated/efa-interfaces makes a host faulty: it then has that many.
"""

from __future__ import annotations

from pathlib import Path

# Instance type -> (devices, cores a device, memory a device in bytes).
TYPES = {
    "trn1.2xlarge": (1, 2, 34359738368),
    "trn1.32xlarge": (16, 2, 34359738368),
    "trn1n.32xlarge": (16, 2, 34359738368),
    "trn2.3xlarge": (1, 8, 103079215104),
    "trn2.48xlarge": (16, 8, 103079215104),
    "trn2u.48xlarge": (16, 8, 103079215104),
}


def _text(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def instance_type() -> str:
    return _text("/seed/instance-type")


def neuron_devices() -> list[dict]:
    """One record a device, in the shape of neuron-ls -j; connected_to are the ring neighbours."""
    count, cores, memory = TYPES.get(instance_type(), (0, 0, 0))
    here = int(_text("/etc/simulated/neuron-devices") or count)
    return [
        {
            "neuron_device": index,
            "bdf": f"{index // 2:02x}:1{index % 2}.0",
            "connected_to": sorted({(index - 1) % count, (index + 1) % count} - {index}),
            "nc_count": cores,
            "memory_size": memory,
            "neuron_processes": [],
        }
        for index in range(min(here, count))
    ]


def efa_interfaces() -> int:
    """How many EFA interfaces the API gave the instance, or as many as were left."""
    return int(_text("/etc/simulated/efa-interfaces") or _text("/seed/efa-interfaces") or 0)
