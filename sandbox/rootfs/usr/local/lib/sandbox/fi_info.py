"""Stand-in for libfabric's fi_info: the EFA interfaces of the instance, as the API knows them. Nothing is hardware."""

import sys
from pathlib import Path


def main() -> int:
    seed = Path("/seed/efa-interfaces")
    count = int(seed.read_text()) if seed.exists() else 0
    arguments = sys.argv[1:]
    provider = arguments[arguments.index("-p") + 1] if "-p" in arguments[:-1] else "efa"
    if provider != "efa" or not count:
        print("fi_getinfo: -61 (No data available)", file=sys.stderr)
        return 61
    for index in range(count):
        print("provider: efa")
        print(f"    fabric: efa-simulated\n    domain: rdmap{index}s0-rdm\n    version: 122.0")
        print("    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA")
    return 0


if __name__ == "__main__":
    sys.exit(main())
