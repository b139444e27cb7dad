"""Stand-in for libfabric's fi_info: the simulated EFA interfaces of the host."""

import sys

sys.path.insert(0, "/usr/local/lib/sandbox")
from devices import efa_interfaces


def main() -> int:
    count = efa_interfaces()
    arguments = sys.argv[1:]
    provider = arguments[arguments.index("-p") + 1] if "-p" in arguments[:-1] else "efa"
    if provider != "efa" or not count:
        print("fi_getinfo: -61 (No data available)", file=sys.stderr)
        return 61
    # As the real one, an interface has an endpoint of each type, in a domain of its own.
    kinds = {"FI_EP_RDM": "rdm", "FI_EP_DGRAM": "dgrm"}
    wanted = arguments[arguments.index("-t") + 1] if "-t" in arguments[:-1] else ""
    for index in range(count):
        for kind, suffix in kinds.items():
            if wanted in ("", kind):
                print("provider: efa")
                print(f"    fabric: efa-simulated\n    domain: rdmap{index}s0-{suffix}\n    version: 122.0")
                print(f"    type: {kind}\n    protocol: FI_PROTO_EFA")
    return 0


if __name__ == "__main__":
    sys.exit(main())
