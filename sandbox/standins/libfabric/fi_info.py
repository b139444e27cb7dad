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
    for index in range(count):
        print("provider: efa")
        print(f"    fabric: efa-simulated\n    domain: rdmap{index}s0-rdm\n    version: 122.0")
        print("    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA")
    return 0


if __name__ == "__main__":
    sys.exit(main())
