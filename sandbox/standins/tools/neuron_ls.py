"""Stand-in for neuron-ls: the simulated devices of the host."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/usr/local/lib/sandbox")
from devices import instance_type, neuron_devices

# As announced for SDK 2.34: another option, and fields beside the devices.
NEW = Path("/etc/simulated/neuron-ls-2.34")


def main() -> int:
    found = neuron_devices()
    if not found:
        print("neuron-ls (simulated): no neuron device found", file=sys.stderr)
        return 1
    old = "-j" in sys.argv[1:] or "--json-output" in sys.argv[1:]
    new = sys.argv[1:] == ["--output-format", "json"]
    if old == NEW.exists() and (old or new):
        print(f"neuron-ls (simulated): unknown option {sys.argv[1]}", file=sys.stderr)
        return 2
    if old:
        print(json.dumps(found, indent=2))
        return 0
    if new:
        print(json.dumps({"instance": {"type": instance_type()}, "ultraserver_nodes": [], "devices": found}, indent=2))
        return 0
    print("simulated devices of the sandbox")
    print(f"{'DEVICE':<8}{'CORES':<8}{'MEMORY':<10}PCI BDF")
    for device in found:
        size = f"{device['memory_size'] // 2**30} GB"
        print(f"{device['neuron_device']:<8}{device['nc_count']:<8}{size:<10}{device['bdf']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
