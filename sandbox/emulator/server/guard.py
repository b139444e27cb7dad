"""Who may ask the emulator: the sandbox's user and root, no page in a browser; control calls need the token as well.

A page that a developer looks at may send requests to this machine. A browser says so in ``Origin``, ``Referer`` or
``Sec-Fetch-*``, which pages cannot change (https://fetch.spec.whatwg.org/#forbidden-request-header), and clients of AWS
send none of them. A page whose own name suddenly leads here (DNS rebinding) sends that name as ``Host``.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Any
from urllib.parse import urlsplit

from sandbox.account.token import HEADER
from sandbox.emulator.server import peer

# Paths of the control API, and of moto's own.
CONTROL = ("/sandbox-api/", "/moto-api/")
# How hosts of the sandbox call this API; a bucket's name may stand before it.
NAMES = ("localhost", "aws-sandbox")
_TOKEN = "HTTP_" + HEADER.upper().replace("-", "_")


def refusal(environ: dict[str, Any], token: str, users: set[int]) -> tuple[str, str] | None:
    """The status and the sentence for a request that is not answered, else None.

    ``users`` of this machine may ask: who asks can have containers started that root runs.
    """
    if peer.user(environ) not in users:
        return "403 Forbidden", "Only the user who started the sandbox is answered, and root."
    if _from_a_page(environ):
        return "403 Forbidden", "Pages in a browser are not answered: use an AWS client, or python -m sandbox."
    if not _is_ours(environ.get("HTTP_HOST", "")):
        return "403 Forbidden", f"There is no {environ['HTTP_HOST']!r} here: ask for 127.0.0.1."
    if environ["PATH_INFO"].startswith(CONTROL) and not hmac.compare_digest(
        environ.get(_TOKEN, "").encode("latin-1", "replace"), token.encode()
    ):
        return "401 Unauthorized", f"Control calls need the header {HEADER} with the word in the sandbox's file token."
    return None


def _from_a_page(environ: dict[str, Any]) -> bool:
    """Whether a browser sent the request for a page, or for somebody who typed the address."""
    if environ.get("HTTP_USER_AGENT", "").startswith("Mozilla/"):
        return True
    return any(name in ("HTTP_ORIGIN", "HTTP_REFERER") or name.startswith("HTTP_SEC_FETCH_") for name in environ)


def _is_ours(host: str) -> bool:
    """Whether a ``Host`` is a name of the sandbox, or an address of this machine or its networks; none is no page's."""
    if not host:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
        address = ipaddress.ip_address(name)
    except ValueError:
        # A name, or nothing that a client would send.
        name = host.rpartition(":")[0] if ":" in host else host
        return any(name.lower() == known or name.lower().endswith(f".{known}") for known in NAMES)
    return address.is_loopback or address.is_private
