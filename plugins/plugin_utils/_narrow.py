# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers of AWS of which only some members are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# What answers of DescribeInstances have most of, and nobody here reads. None lies in one of its own kind, and no text
# of XML has a "<" in it.
_WHOLE = (b"groupSet", b"privateIpAddressesSet", b"blockDeviceMapping", b"metadataOptions")
_UNREAD = re.compile(
    rb"<(" + b"|".join(_WHOLE) + rb")>.*?</\1>"
    rb"|<(attachmentId|deleteOnTermination|description|macAddress|networkInterfaceId|ownerId|sourceDestCheck|status|vpcId)>"
    rb"[^<]*</\2>",
    re.DOTALL,
)


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


def lighten(response_dict: dict[str, Any], **_more: Any) -> None:
    """Take from an answer of DescribeInstances, before it is parsed, what is only parsed to be dropped: more than half.

    For botocore's event ``before-parse``.
    """
    body = response_dict.get("body")
    # Where one has no end, an answer was cut off, and the pattern would look for it from each beginning anew.
    if isinstance(body, bytes) and all(body.count(b"<%s>" % one) == body.count(b"</%s>" % one) for one in _WHOLE):
        response_dict["body"] = _UNREAD.sub(b"", body)
