"""What a node says of Slurm: the programs' output as it was seen, and what may go wrong with it."""

from __future__ import annotations

import pytest
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.host import (
    hardware_of,
    is_text_key,
    nodes_of,
)
from ansible_collections.trainium.cluster.plugins.module_utils._slurm.hostlist import HostlistError
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("key", "ours"),
    [(b"a" * 128, True), (b"", False), (b"a" * 127, False), (b"a" * 128 + b"\n", False), (bytes(128), False)],
)
def test_is_text_key(key: bytes, ours: bool) -> None:
    assert is_text_key(key) is ours


def test_hardware_of() -> None:
    shown = "NodeName=ip-192-0-2-4 CPUs=2 Boards=1 RealMemory=24105\nUpTime=0-03:49:33\n"
    assert hardware_of(shown) == {"CPUs": "2", "Boards": "1", "RealMemory": "24105"}
    assert hardware_of("slurmd: error: no\n") == {}


def test_nodes_of() -> None:
    configuration = (
        "# NodeName=not[1-2]\nSlurmctldHost=head\nNodeName=DEFAULT CPUs=2\n"
        "NodeName=a[1-2] CPUs=2\n  nodename = b State=UNKNOWN\nNodeName=a2\nPartitionName=p Nodes=ALL\n"
    )
    assert nodes_of(configuration) == ["a1", "a2", "b"]
    assert nodes_of("") == []
    with pytest.raises(HostlistError, match="bracket"):
        nodes_of("NodeName=a[1-2 CPUs=2\n")


@given(st.text())
def test_no_output_breaks_them(text: str) -> None:
    hardware_of(text)
