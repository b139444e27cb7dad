"""Adds up one number of each process, which takes a rendezvous and connections both ways."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"sum={total.item():.0f} master={os.environ['MASTER_ADDR']}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
