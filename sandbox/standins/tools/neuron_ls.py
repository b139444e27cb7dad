"""Stand-in for neuron-ls: the simulated devices of the host."""

import json
import sys

sys.path.insert(0, "/usr/local/lib/sandbox")
from devices import neuron_devices


def main() -> int:
    found = neuron_devices()
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
