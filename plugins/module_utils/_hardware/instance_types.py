# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one table of instance types: network cards, EFA, Neuron devices, NeuronCores. For when EC2 cannot be asked. Pure.

Source: DescribeInstanceTypes (NetworkInfo, NeuronInfo, EfaInfo) and the EC2 and Neuron documentation, 2026-11.
"""

from __future__ import annotations

from typing import NamedTuple


class InstanceType(NamedTuple):
    """What a type has. An UltraServer is several instances, four of trn2u.48xlarge for example, and no type.

    ``cards`` network cards (0: not known, EC2 has to be asked) with ``interfaces_per_card`` interfaces each, ``efa`` of
    the cards with EFA (0: none), ``devices`` Neuron devices. ``cores`` are the numbers of NeuronCores that a sound
    device can show: a Trainium2 or Trainium3 device shows 8 physical cores, or 4 logical ones where two are joined
    (LNC 2, neuron-ls's default there).
    """

    cards: int
    interfaces_per_card: int
    efa: int
    devices: int = 0
    cores: tuple[int, ...] = ()


TYPES: dict[str, InstanceType] = {
    "trn1.2xlarge": InstanceType(1, 4, 0, 1, (2,)),
    "trn1.32xlarge": InstanceType(8, 5, 8, 16, (2,)),
    "trn1n.32xlarge": InstanceType(16, 5, 16, 16, (2,)),
    "trn2.3xlarge": InstanceType(1, 2, 1, 1, (8, 4)),
    "trn2.48xlarge": InstanceType(16, 2, 16, 16, (8, 4)),
    "trn2u.48xlarge": InstanceType(16, 2, 16, 16, (8, 4)),
    # No API model of EC2 has these (botocore 1.44.5). Their names are in Neuron's driver (v4_platform_map in
    # v4/neuron_dhal_v4.c), devices and cores in "Amazon EC2 Trn3 Architecture": servers of Gen1 and of Gen2.
    "trn3.48xlarge": InstanceType(0, 0, 0, 16, (8, 4)),
    "trn3e.24xlarge": InstanceType(0, 0, 0, 4, (8, 4)),
    "inf2.xlarge": InstanceType(1, 4, 0, 1, (2,)),
    "inf2.8xlarge": InstanceType(1, 8, 0, 1, (2,)),
    "inf2.24xlarge": InstanceType(1, 15, 0, 6, (2,)),
    "inf2.48xlarge": InstanceType(1, 15, 0, 12, (2,)),
    "p4d.24xlarge": InstanceType(4, 15, 4),
    "p4de.24xlarge": InstanceType(4, 15, 4),
    "p5.48xlarge": InstanceType(32, 2, 32),
    "p5e.48xlarge": InstanceType(32, 2, 32),
    "p5en.48xlarge": InstanceType(16, 4, 16),
    "p6-b200.48xlarge": InstanceType(8, 4, 8),
    # The primary card has no EFA.
    "p6-b300.48xlarge": InstanceType(17, 4, 16),
}

# No family has EFA on these sizes; p5.4xlarge has it, so the list ends below it.
_SMALL = frozenset({"nano", "micro", "small", "medium", "large", "xlarge", "2xlarge"})
# Graphics families have EFA from 8xlarge on.
_GRAPHICS = frozenset({"g4dn", "g5", "g6", "g6e", "gr6"})
_GRAPHICS_WITH_EFA = frozenset({"8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge", "metal"})
_OTHERS_WITH_EFA = frozenset({"p3dn.24xlarge", "p5.4xlarge", "inf1.24xlarge"})
_NO_EFA_FAMILIES = frozenset({"inf1", "t2", "t3", "t3a", "t4g", "m4", "m5", "m5a", "c4", "c5", "r5"})


def family(instance_type: str) -> str:
    """``trn1`` of ``trn1.32xlarge``."""
    return instance_type.partition(".")[0]


def is_neuron(instance_type: str) -> bool:
    """Whether the type carries Neuron devices, also where the table does not know it."""
    return family(instance_type).startswith(("trn", "inf"))


def has_efa(instance_type: str) -> bool | None:
    """Whether the type has EFA; None where it is not known."""
    known = TYPES.get(instance_type)
    if known:
        return known.efa > 0 if known.cards else None
    if instance_type in _OTHERS_WITH_EFA:
        return True
    group, _dot, size = instance_type.partition(".")
    if group in _GRAPHICS:
        return size in _GRAPHICS_WITH_EFA
    if group in _NO_EFA_FAMILIES or size in _SMALL:
        return False
    return None
