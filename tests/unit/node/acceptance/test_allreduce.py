"""The all-reduce over gloo as one rank of several runs it, with arithmetic of PyTorch's that a list can do."""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Union

import pytest

PROGRAM = Path(__file__).parents[4] / "roles/acceptance/files/allreduce.py"
Operand = Union["Tensor", float]


class Tensor:
    def __init__(self, values: list[float]) -> None:
        self.values = values

    def _with(self, other: Operand, do: Callable[[float, float], float]) -> Tensor:
        others = other.values if isinstance(other, Tensor) else [other] * len(self.values)
        return Tensor([do(one, two) for one, two in zip(self.values, others)])

    def __add__(self, other: Operand) -> Tensor:
        return self._with(other, lambda one, two: one + two)

    def __mul__(self, other: Operand) -> Tensor:
        return self._with(other, lambda one, two: one * two)

    def remainder(self, by: int) -> Tensor:
        return Tensor([value % by for value in self.values])

    def to(self, kind: str) -> Tensor:
        # Beyond 2 to the power of 24 float32 leaves out whole numbers.
        assert kind == "float32" and max(self.values) * 1000 < 2**24
        return self

    def __float__(self) -> float:
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(self.values[0])


class Cluster:
    """The ranks: each round takes so many seconds here, and the slowest rank so many more."""

    def __init__(self, ranks: int, rank: int, rounds: list[float], slower: float = 0.0) -> None:
        self.ranks, self.rank, self.rounds, self.slower = ranks, rank, list(rounds), slower
        self.now, self.wrong_round, self.others_are_right = 0.0, -1, True
        self.said: list[str] = []
        self.elements = 0

    def all_reduce(self, tensor: Tensor, op: str = "sum") -> None:
        if op == "max":
            tensor.values = [tensor.values[0] + self.slower]
        elif op == "min":
            tensor.values = [min(tensor.values[0], int(self.others_are_right))]
        else:
            # Every rank must have come to it before the clock starts.
            assert self.said[-1] == "barrier"
            self.now += self.rounds.pop(0)
            # Each has added its own number to the same pattern.
            total = sum(other - self.rank for other in range(self.ranks))
            wrong = self.wrong_round == len(self.rounds)
            tensor.values = [value * self.ranks + total + wrong for value in tensor.values]
            self.elements = len(tensor.values)
        self.said.append(op)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(cluster: Cluster, *arguments: str) -> Any:
        torch, dist = ModuleType("torch"), ModuleType("torch.distributed")
        found = {
            "int64": "int64",
            "float32": "float32",
            "distributed": dist,
            "tensor": Tensor,
            "arange": lambda count, dtype: Tensor(list(range(count))),
            "equal": lambda one, two: one.values == two.values,
        }
        functions = {
            "init_process_group": lambda kind, timeout: cluster.said.append(f"{kind} {timeout.total_seconds():.0f}"),
            "barrier": lambda: cluster.said.append("barrier"),
            "destroy_process_group": lambda: cluster.said.append("destroyed"),
            "get_rank": lambda: cluster.rank,
            "get_world_size": lambda: cluster.ranks,
            "all_reduce": cluster.all_reduce,
            "ReduceOp": type("ReduceOp", (), {"MAX": "max", "MIN": "min"}),
        }
        for module, names in ((torch, found), (dist, functions)):
            for name, value in names.items():
                setattr(module, name, value)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "torch.distributed", dist)
        monkeypatch.setattr(time, "perf_counter", lambda: cluster.now)
        monkeypatch.setattr(sys, "argv", [str(PROGRAM), *arguments])
        runpy.run_path(str(PROGRAM), run_name="__main__")
        shown = capsys.readouterr().out
        return json.loads(shown)["all_reduce"] if shown else None

    return call


# Two rounds to get warm, which would be the fastest here, and five that count.
ROUNDS = [0.125, 0.125, 4.0, 3.0, 2.0, 5.0, 6.0]


def test_the_fastest_round_counts_at_the_pace_of_its_slowest_rank(run: Callable[..., Any]) -> None:
    cluster = Cluster(4, 0, ROUNDS, slower=0.5)
    assert run(cluster, "--bytes=8192") == {
        "ranks": 4,
        "bytes": 8192,
        "microseconds": 2.5e6,
        "correct": True,
        # 2 (n - 1) / n times the size over the time, in GB/s.
        "bus_bandwidth": round(2 * 3 / 4 * 8192 / 2.5 / 1e9, 4),
    }
    assert (cluster.elements, cluster.rounds) == (2048, [])
    assert cluster.said[0].split()[0] == "gloo" and 60 <= int(cluster.said[0].split()[1]) <= 120
    assert cluster.said[-1] == "destroyed"


def test_the_bandwidth_is_that_of_a_link(run: Callable[..., Any]) -> None:
    found = run(Cluster(2, 0, [1e-6] * 7), "--bytes=4000")
    assert (found["microseconds"], found["bus_bandwidth"]) == (1.0, 4.0)


@pytest.mark.parametrize(("asked", "size"), [("1", 4), ("4", 4), ("7", 4), ("4099", 4096)])
def test_the_size_is_in_whole_numbers_of_four_bytes(run: Callable[..., Any], asked: str, size: int) -> None:
    assert run(Cluster(2, 0, ROUNDS), f"--bytes={asked}")["bytes"] == size


@pytest.mark.parametrize("turn", range(7))
def test_a_wrong_sum_is_told_in_whatever_round(run: Callable[..., Any], turn: int) -> None:
    cluster = Cluster(3, 0, ROUNDS)
    cluster.wrong_round = turn
    assert run(cluster, "--bytes=4096")["correct"] is False


def test_a_wrong_sum_of_another_rank_is_told_by_the_first(run: Callable[..., Any]) -> None:
    cluster = Cluster(3, 0, ROUNDS)
    cluster.others_are_right = False
    assert run(cluster, "--bytes=4096")["correct"] is False


def test_only_the_first_rank_speaks(run: Callable[..., Any]) -> None:
    cluster = Cluster(3, 1, ROUNDS)
    assert run(cluster, "--bytes=4096") is None
    assert cluster.said[-1] == "destroyed"
    assert cluster.said.count("sum") == len(ROUNDS)
