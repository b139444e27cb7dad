# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers of AWS of which only some members are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def narrow(shape: Any, wanted: Mapping[str, Any] | None) -> None:
    """Have botocore parse only the ``wanted`` members of an answer's shape; None means all of a member.

    Lists are looked through. Moments stay text, since to read them takes longer than all else together. A shape belongs
    to one client, so that no other is changed. Where shapes are not as they were, botocore parses everything as before.
    """
    kind = getattr(shape, "type_name", "")
    if kind == "list":
        narrow(shape.member, wanted)
    elif kind == "timestamp":
        shape.type_name = "string"
    members = getattr(shape, "members", None)
    if wanted is None or not isinstance(members, dict) or not set(wanted) <= set(members):
        return
    for name, further in wanted.items():
        narrow(members[name], further)
    shape.members = {name: members[name] for name in wanted}
