# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An all-reduce over gloo, started by torchrun: is the sum right, and how fast is it?

The first rank prints one line of JSON. The bus bandwidth is what each link carries, 2 (n - 1) / n times the size over
the time, so that it can be compared between clusters of any size.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time

import torch
import torch.distributed as dist

WARMUPS, ROUNDS = 2, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=32 << 20)
    options = parser.parse_args()
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    elements = max(1, options.bytes // 4)
    # Small whole numbers, whose sum float32 holds exactly.
    pattern = torch.arange(elements, dtype=torch.int64).remainder(1024).to(torch.float32)
    expected = pattern * ranks + ranks * (ranks - 1) / 2
    correct, fastest = True, float("inf")
    for turn in range(WARMUPS + ROUNDS):
        values = pattern + rank
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(values)
        taken = torch.tensor([time.perf_counter() - start])
        dist.all_reduce(taken, op=dist.ReduceOp.MAX)
        correct = correct and bool(torch.equal(values, expected))
        if turn >= WARMUPS:
            fastest = min(fastest, float(taken))
    right = torch.tensor([int(correct)])
    dist.all_reduce(right, op=dist.ReduceOp.MIN)
    if rank == 0:
        size = elements * 4
        found = {
            "ranks": ranks,
            "bytes": size,
            "microseconds": round(fastest * 1e6, 1),
            "bus_bandwidth": round(2 * (ranks - 1) / ranks * size / fastest / 1e9, 4),
            "correct": bool(right),
        }
        print(json.dumps({"all_reduce": found}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
