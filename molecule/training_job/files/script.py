"""A training that shows what it was given, and can fail, last, resume and stop in time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if "--fail" in sys.argv:
    sys.exit("The corpus is empty.")
first = 0
checkpoint = Path(os.environ.get("CHECKPOINT", "/nonexistent/checkpoint"))
if os.environ["TRAINIUM_RESUME"] == "1" and checkpoint.exists():
    first = int(checkpoint.read_text())
# All begin where the first has its checkpoint.
start = torch.tensor([first])
dist.broadcast(start, 0)
first = int(start)
if dist.get_rank() == 0:
    given = {"argv": sys.argv[1:], "words": os.environ.get("WORDS"), "total": total.item()}
    print("GIVEN", json.dumps(given), flush=True)
    if first:
        print(f"training: resumed from step {first}", flush=True)
for step in range(first + 1, int(os.environ.get("STEPS", "3")) + 1):
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        line = f"(0, {step}) step_loss : {4 - step:.4f} learning_rate : 1.00e-03 throughput : 100.00"
        print(f"LOG {time.ctime()} - {line}", flush=True)
        if checkpoint.parent.exists():
            checkpoint.write_text(str(step))
    # What a step of a real training takes.
    time.sleep(float(os.environ.get("SECONDS_A_STEP", "0")))
dist.destroy_process_group()
