"""Stand-in for libneuronxla, in the place of PJRT's plugin for Neuron: what the tutorial's script asks of it."""

from __future__ import annotations

from collections.abc import Callable


def register_hlo_snapshot_callback(_callback: Callable[[str, int, int], str]) -> None:
    """Snapshots are taken by Neuron's plugin alone."""
