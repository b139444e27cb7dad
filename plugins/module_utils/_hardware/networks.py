# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Network cards of the instance types for multi-node training, for when DescribeInstanceTypes cannot be asked.

Source: DescribeInstanceTypes and the EC2 and Neuron documentation, 2026-11.
"""

from __future__ import annotations

from typing import NamedTuple


class KnownNetwork(NamedTuple):
    """``cards`` network cards with ``interfaces_per_card`` interfaces each, ``efa`` of the cards with EFA (0: none)."""

    cards: int
    interfaces_per_card: int
    efa: int


KNOWN_NETWORKS: dict[str, KnownNetwork] = {
    "trn1.2xlarge": KnownNetwork(1, 4, 0),
    "trn1.32xlarge": KnownNetwork(8, 5, 8),
    "trn1n.32xlarge": KnownNetwork(16, 5, 16),
    "trn2.48xlarge": KnownNetwork(16, 2, 16),
    "trn2u.48xlarge": KnownNetwork(16, 2, 16),
    "p4d.24xlarge": KnownNetwork(4, 15, 4),
    "p4de.24xlarge": KnownNetwork(4, 15, 4),
    "p5.48xlarge": KnownNetwork(32, 2, 32),
    "p5e.48xlarge": KnownNetwork(32, 2, 32),
    "p5en.48xlarge": KnownNetwork(16, 4, 16),
    "p6-b200.48xlarge": KnownNetwork(8, 4, 8),
    # The primary card has no EFA.
    "p6-b300.48xlarge": KnownNetwork(17, 4, 16),
}
