"""Kills a transfer when it has fetched so many bytes: ``STATE BYTES``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

end = time.monotonic() + 60
while True:
    with open(sys.argv[1], encoding="utf-8") as stream:
        state = json.load(stream)
    if state["progress"].get("done", 0) >= int(sys.argv[2]):
        break
    if state.get("ended") or time.monotonic() > end:
        sys.exit(f"The transfer can not be killed in its middle: {state}")
    time.sleep(0.1)
os.kill(state["pid"], signal.SIGKILL)
