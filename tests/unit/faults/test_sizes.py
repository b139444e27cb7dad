"""What campaign sizes takes for linear."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.sizes import Cost, uneven


def costs(cpu: Callable[[int], float]) -> dict[int, dict[str, Cost]]:
    return {nodes: {"launch": Cost(1, cpu(nodes), 100, 30)} for nodes in (250, 500, 1000)}


@pytest.mark.parametrize("step", [0.0, 0.02, 0.4])
def test_what_grows_with_the_nodes_is_right(step: float) -> None:
    assert list(uneven(costs(lambda nodes: 12 + step * nodes), 1000)) == []


def test_what_grows_with_their_square_is_told() -> None:
    """Also where most of it is what each run costs."""
    told = ["the CPU time of launch with 250, 500 and 1000 nodes: 13, 17, 32"]
    assert list(uneven(costs(lambda nodes: 12 + 20e-6 * nodes**2), 1000)) == told
    assert list(uneven(costs(lambda nodes: 12 + 0.005 * nodes + 20e-6 * nodes**2), 1000))


def test_calls_and_memory_are_looked_at_as_well() -> None:
    for field, few, some, many in (("calls", 30, 31, 60), ("memory", 100, 104, 140)):
        table = costs(lambda _nodes: 12)
        for nodes, value in ((250, few), (500, some), (1000, many)):
            table[nodes]["launch"] = table[nodes]["launch"]._replace(**{field: value})
        assert len(list(uneven(table, 1000))) == 1


def test_nothing_is_said_of_what_was_not_measured() -> None:
    table = costs(lambda nodes: float(nodes**2))
    del table[250]
    assert list(uneven(table, 1000)) == []
