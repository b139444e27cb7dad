# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The only reader of ``fi_info -p efa``. Pure."""

from __future__ import annotations

import re


def domains_of(text: str) -> list[str]:
    """The distinct domains, one for each EFA interface, sorted."""
    return sorted(set(re.findall(r"^\s*domain:\s*(\S+)\s*$", text, re.MULTILINE)))
