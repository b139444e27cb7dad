"""Run neuron-monitor and its Prometheus exporter as one service that listens on one address only.

The exporter, neuron-monitor-prometheus.py, listens on all addresses and has no option for it, and it goes on without
data when neuron-monitor has ended. Here it gets its address, and the service ends with neuron-monitor, so that systemd
starts both again.

Usage: neuron_exporter.py FOLDER CONFIGURATION ADDRESS PORT
"""

from __future__ import annotations

import functools
import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path

EXPORTER = "neuron-monitor-prometheus.py"


def end_with(monitor: subprocess.Popen[bytes]) -> None:
    """End this process as soon as neuron-monitor has ended."""
    code = monitor.wait()
    print(f"neuron-monitor has ended with code {code}.", file=sys.stderr, flush=True)
    os._exit(1)


def main(folder: Path, configuration: str, address: str, port: str) -> None:
    try:
        import prometheus_client  # type: ignore[import-not-found]
    except ImportError:
        sys.exit(f"{sys.executable} has no prometheus_client: run the role monitoring again.")
    try:
        monitor = subprocess.Popen(
            [str(folder / "neuron-monitor"), "-c", configuration], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    except OSError as error:
        sys.exit(f"{error.filename} cannot be run ({error.strerror}): install the package aws-neuronx-tools.")
    assert monitor.stdout is not None
    os.dup2(monitor.stdout.fileno(), sys.stdin.fileno())
    threading.Thread(target=end_with, args=[monitor], daemon=True).start()
    prometheus_client.start_http_server = functools.partial(prometheus_client.start_http_server, addr=address)
    sys.argv = [EXPORTER, "--port", port]
    runpy.run_path(str(folder / EXPORTER), run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit((__doc__ or "").strip().splitlines()[-1])
    main(Path(sys.argv[1]), *sys.argv[2:])
