# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What of a text may stand in a report that is attached to an issue. Pure."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from ansible_collections.trainium.cluster.plugins.module_utils._diagnose.masks import masked_lines

# An account, an ARN with one, who has which key, and what decodes to all of them (EC2's UnauthorizedOperation).
_NAMES = re.compile(r"\barn:[^\s,;\"']+|(?<![0-9])[0-9]{12}(?![0-9])|\bA(?:KI|SI|RO|ID|NP|GP|IP)A[A-Z0-9]{12,}\b")
_ENCODED = re.compile(r"(Encoded authorization failure message:)\s*\S+")
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/[^/\s:,;\"']+|(?<![\w./])/root\b")
_LOG = re.compile(r"(all of its words are in )\S*/")
_PUBLIC_NAME = re.compile(r"\bec2-(?:[0-9]{1,3}-){3}[0-9]{1,3}\b[\w.-]*")
_COLONS = re.compile(r"(?<![\w:.])[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*(?![\w:])")
_ADDRESS = re.compile(
    r"(?<![\d.])(?!10\.|127\.|192\.168\.|172\.(?:1[6-9]|2[0-9]|3[01])\.|169\.254\.|0\.0\.0\.0)"
    r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\d|\.\d)"
)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# With an address of IPv6 in brackets, perhaps behind a name and a password, or with what was left of one.
_URL = re.compile(
    r"\bhttps?://(?!\(another host\))(?:[^\s\"'<>\[\])@]{0,256}@)?(?:\[[^\s\[\]\"'<>]{0,64}\])?[^\s\"'<>\])]*",
    re.IGNORECASE,
)
_OWN_HOSTS = re.compile(r"127(?:\.[0-9]+){3}|localhost|(?:[a-z0-9-]+\.)*(?:amazonaws\.com(?:\.cn)?|aws)")
_OWN_BRACKETS = re.compile(r"https?://\[::1\](?::[0-9]{1,5})?(?:[/?#].*)?", re.IGNORECASE | re.DOTALL)


def nameless(text: str) -> str:
    """Text without who it is about: accounts, ARNs, keys, passwords, homes, names and addresses of IPv6.

    Versions of four numbers, which look like addresses, stay.
    """
    known = "\n".join(masked_lines(_ENCODED.sub(r"\1 (left out)", text).split("\n")))
    known = _HOME.sub("(home)", _LOG.sub(r"\1", _NAMES.sub("(ARN or account)", known)))
    return _COLONS.sub(_without_global, _PUBLIC_NAME.sub("(address)", known))


def public(text: str) -> str:
    """The same for what somebody else has written, without public addresses, hosts in addresses and addresses of mail.

    >>> public("User: arn:aws:iam::123456789012:user/ann at 203.0.113.9 and 10.0.0.5")
    'User: (ARN or account) at (address) and 10.0.0.5'
    """
    return _ADDRESS.sub("(address)", _MAIL.sub("(address)", hostless(nameless(text))))


def hostless(text: str) -> str:
    """Text in which of addresses of hosts that are neither AWS's nor this machine's only the scheme is left."""
    return _URL.sub(lambda found: _shown(found.group()), text)


def is_of_aws(address: str) -> bool:
    """Whether an address is one of AWS's own."""
    host = _host(address)
    return "." in host and not host.startswith("127.") and _OWN_HOSTS.fullmatch(host) is not None


def _host(address: str) -> str:
    """The host of an address; '' where brackets are in it, in which older Pythons take any name."""
    try:
        parts = urlsplit(address)
        return "" if "[" in parts.netloc else (parts.hostname or "").lower()
    except ValueError:
        return ""


def _shown(address: str) -> str:
    scheme, _colon, rest = address.partition("://")
    known = _OWN_HOSTS.fullmatch(_host(address)) and "@" not in rest
    return address if known or _OWN_BRACKETS.fullmatch(address) else f"{scheme}://(another host)"


def _without_global(found: re.Match[str]) -> str:
    try:
        address = ipaddress.ip_address(found.group())
    except ValueError:
        # Such as a time.
        return found.group()
    return found.group() if address.is_loopback or address.is_unspecified or address.is_link_local else "(address)"
