# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which operating system an image has, by what it is called. Pure.

Sources: the Neuron DLAMI user guide (``/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id``, "Deep Learning
Base Neuron AMI (Amazon Linux 2023) 20261101"), the names of ParallelCluster's ``Image: Os`` (``alinux2023``), and the
names that Canonical, Debian, Amazon, Red Hat and Rocky give their images and parameters.
"""

from __future__ import annotations

import re

_GAP = r"[^0-9]{0,24}?"
_SYSTEMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Ubuntu", re.compile(rf"ubuntu{_GAP}(?P<year>[1-9][0-9])[.-]?(?P<month>04|10)(?![0-9])")),
    ("Amazon", re.compile(r"(?<![a-z])(?:amazon[ -]linux[ -]|alinux|amzn|al)(?P<major>2023|2)(?![0-9])")),
    ("Debian", re.compile(rf"debian{_GAP}(?P<major>[1-9][0-9]?)(?![0-9])")),
    ("Rocky", re.compile(rf"rocky{_GAP}(?P<major>[89]|10)(?P<minor>\.[0-9]+)?(?![0-9])")),
    ("RedHat", re.compile(r"(?:rhel|red hat enterprise linux)[ -]?(?P<major>[89]|10)(?P<minor>\.[0-9]+)?(?![0-9])")),
)


def system_of(name: str) -> dict[str, str]:
    """``distribution`` and ``distribution_version`` as Ansible's facts name them; nothing where the name does not tell.

    >>> system_of("/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id")
    {'distribution': 'Ubuntu', 'distribution_version': '24.04'}
    """
    for distribution, pattern in _SYSTEMS:
        match = pattern.search(name.lower())
        if match:
            part = match.groupdict()
            version = f"{part['year']}.{part['month']}" if "year" in part else part["major"] + (part.get("minor") or "")
            return {"distribution": distribution, "distribution_version": version}
    return {}
