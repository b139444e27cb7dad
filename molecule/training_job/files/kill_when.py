"""Runs a command and kills it, with all that it has started, when it says something: kill_when.py REGEX COMMAND..."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

said = re.compile(sys.argv[1])
process = subprocess.Popen(
    sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
)
assert process.stdout
for line in process.stdout:
    print(line, end="", flush=True)
    if said.search(line):
        os.killpg(process.pid, signal.SIGKILL)
        sys.exit(0)
sys.exit(f"It ended with {process.wait()} and never said {said.pattern}.")
