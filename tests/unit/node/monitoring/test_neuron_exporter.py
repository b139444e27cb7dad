"""The launcher of neuron-monitor and its exporter, with programs that stand for both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[4] / "roles/monitoring/files/neuron_exporter.py"
# neuron-monitor writes until it ends, here once its exporter has read a line.
MONITOR = """#!/bin/sh
echo "$*"
read word < {fifo}
exit 3
"""
# As neuron-monitor-prometheus.py: it listens without an address of its own, and goes on after the end of its input.
EXPORTER = """
import json, sys, threading
import prometheus_client
prometheus_client.start_http_server(int(sys.argv[sys.argv.index("--port") + 1]))
print(json.dumps([__name__, sys.argv, sys.stdin.readline()]), flush=True)
open("{fifo}", "w").write("read\\n")
threading.Event().wait()
"""
LIBRARY = """
def start_http_server(port, addr="0.0.0.0"):
    print("listens", addr, port, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "neuron-monitor").write_text(MONITOR.format(fifo=fifo))
    (tmp_path / "neuron-monitor").chmod(0o755)
    (tmp_path / "neuron-monitor-prometheus.py").write_text(EXPORTER.format(fifo=fifo))
    (tmp_path / "prometheus_client.py").write_text(LIBRARY)
    return tmp_path


def launch(folder: Path, *arguments: str) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, "-u", str(LAUNCHER), *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr.strip()


def test_it_listens_at_one_address_and_ends_with_neuron_monitor(folder: Path) -> None:
    code, lines, said = launch(folder, str(folder), "/etc/monitor.json", "192.0.2.1", "8000")
    # As a failure, so that systemd starts both again; the exporter alone would stay without data.
    assert (code, said) == (1, "neuron-monitor has ended with code 3.")
    assert lines[0] == "listens 192.0.2.1 8000"
    # neuron-monitor had its configuration, and the exporter what it said.
    assert json.loads(lines[1]) == [
        "__main__",
        [str(folder / "neuron-monitor-prometheus.py"), "--port", "8000"],
        "-c /etc/monitor.json\n",
    ]


def test_what_is_missing_is_named_with_what_helps(folder: Path) -> None:
    arguments = (str(folder), "/etc/monitor.json", "192.0.2.1", "8000")
    (folder / "neuron-monitor").unlink()
    code, _lines, said = launch(folder, *arguments)
    reason = "cannot be run (No such file or directory): install the package aws-neuronx-tools."
    assert (code, said) == (1, f"{folder}/neuron-monitor {reason}")
    (folder / "prometheus_client.py").unlink()
    code, _lines, said = launch(folder, *arguments)
    assert (code, said) == (1, f"{sys.executable} has no prometheus_client: run the role monitoring again.")


@pytest.mark.parametrize("arguments", [(), ("a", "b", "c"), ("a", "b", "c", "d", "e")])
def test_another_number_of_arguments_gets_the_usage(folder: Path, arguments: tuple[str, ...]) -> None:
    assert launch(folder, *arguments)[::2] == (1, "Usage: neuron_exporter.py FOLDER CONFIGURATION ADDRESS PORT")
