"""A training that shows what it was given, and can fail."""

from __future__ import annotations

import json
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if "--fail" in sys.argv:
    sys.exit("The corpus is empty.")
if dist.get_rank() == 0:
    given = {"argv": sys.argv[1:], "words": os.environ.get("WORDS"), "total": total.item()}
    print("GIVEN", json.dumps(given), flush=True)
    for step in range(1, 4):
        line = f"(0, {step}) step_loss : {4 - step:.4f} learning_rate : 1.00e-03 throughput : 100.00"
        print(f"LOG {time.ctime()} - {line}", flush=True)
dist.destroy_process_group()
