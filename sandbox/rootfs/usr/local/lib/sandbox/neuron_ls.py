"""Stand-in for neuron-ls: the devices of the instance type, as its -j option prints them. Nothing here is hardware."""

import json
import sys
from pathlib import Path

# Instance type -> (devices, cores a device, memory a device in bytes).
TYPES = {
    "trn1.2xlarge": (1, 2, 34359738368),
    "trn1.32xlarge": (16, 2, 34359738368),
    "trn1n.32xlarge": (16, 2, 34359738368),
    "trn2.48xlarge": (16, 8, 103079215104),
    "trn2u.48xlarge": (16, 8, 103079215104),
}


def devices() -> list[dict]:
    """One record a device, in the shape of neuron-ls -j; connected_to are the ring neighbours."""
    seed = Path("/seed/instance-type")
    count, cores, memory = TYPES.get(seed.read_text().strip() if seed.exists() else "", (0, 0, 0))
    return [
        {
            "neuron_device": index,
            "bdf": f"{index // 2:02x}:1{index % 2}.0",
            "connected_to": sorted({(index - 1) % count, (index + 1) % count} - {index}),
            "nc_count": cores,
            "memory_size": memory,
            "neuron_processes": [],
        }
        for index in range(count)
    ]


def main() -> int:
    found = devices()
    if not found:
        print("neuron-ls (simulated): no neuron device found", file=sys.stderr)
        return 1
    if "-j" in sys.argv[1:] or "--json-output" in sys.argv[1:]:
        print(json.dumps(found, indent=2))
        return 0
    print("simulated devices of the sandbox")
    print(f"{'DEVICE':<8}{'CORES':<8}{'MEMORY':<10}PCI BDF")
    for device in found:
        size = f"{device['memory_size'] // 2**30} GB"
        print(f"{device['neuron_device']:<8}{device['nc_count']:<8}{size:<10}{device['bdf']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
