# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the inventory takes from answers of EC2 before they are parsed. Private to this collection."""

from __future__ import annotations

import re
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


def lighten(response_dict: dict[str, Any], **_more: Any) -> None:
    """Take from an answer of DescribeInstances, before it is parsed, what is only parsed to be dropped: more than half.

    For botocore's event ``before-parse``.
    """
    body = response_dict.get("body")
    # Where one has no end, an answer was cut off, and the pattern would look for it from each beginning anew.
    if isinstance(body, bytes) and all(body.count(b"<%s>" % one) == body.count(b"</%s>" % one) for one in _WHOLE):
        response_dict["body"] = _UNREAD.sub(b"", body)
