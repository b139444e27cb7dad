# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Neuron devices and NeuronCores of the instance types.

Source: DescribeInstanceTypes (NeuronInfo) and the Neuron documentation, 2026-11.
"""

from __future__ import annotations

from typing import NamedTuple


class KnownDevices(NamedTuple):
    """``devices`` Neuron devices; ``cores`` are the numbers of NeuronCores that a sound device can show.

    A Trainium2 device shows 8 physical cores, or 4 logical ones where two are joined (LNC 2).
    """

    devices: int
    cores: tuple[int, ...]


KNOWN_DEVICES: dict[str, KnownDevices] = {
    "trn1.2xlarge": KnownDevices(1, (2,)),
    "trn1.32xlarge": KnownDevices(16, (2,)),
    "trn1n.32xlarge": KnownDevices(16, (2,)),
    "trn2.48xlarge": KnownDevices(16, (8, 4)),
    "trn2u.48xlarge": KnownDevices(16, (8, 4)),
}
