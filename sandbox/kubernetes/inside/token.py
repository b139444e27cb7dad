"""The token that ``aws eks get-token`` makes: a presigned call of STS, as aws-iam-authenticator reads it. Pure.

See https://github.com/kubernetes-sigs/aws-iam-authenticator, pkg/token/token.go, for what is refused.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
import re
import urllib.parse
from typing import NamedTuple

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
LIFETIME = datetime.timedelta(minutes=15)
# What the query may have besides the signature's own parameters, in lower case.
PARAMETERS = frozenset(
    {"action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-security-token"}
    | {"x-amz-signature", "x-amz-signedheaders", "x-amz-user-agent"}
)


class TokenError(ValueError):
    """Why a token is not accepted."""


class Call(NamedTuple):
    """A presigned GetCallerIdentity."""

    host: str
    query: str
    parameters: dict[str, str]

    @property
    def access_key(self) -> str:
        return self.parameters["X-Amz-Credential"].partition("/")[0]

    @property
    def authorization(self) -> str:
        """The same signature as a header."""
        fields = {name: self.parameters[f"X-Amz-{name}"] for name in ("Credential", "SignedHeaders", "Signature")}
        return "AWS4-HMAC-SHA256 " + ", ".join(f"{name}={value}" for name, value in fields.items())


def read(token: str, hosts: frozenset[str], now: datetime.datetime) -> Call:
    """The call in a token.

    Raises:
        TokenError: it is none, it leads elsewhere than to STS (or ``hosts``), or its time is over.
    """
    if not token.startswith(PREFIX):
        raise TokenError(f"token is missing expected {PREFIX!r} prefix")
    word = token.removeprefix(PREFIX)
    try:
        text = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise TokenError("the token holds no URL") from error
    url = urllib.parse.urlsplit(text)
    if url.netloc not in hosts and not re.fullmatch(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?", url.netloc):
        raise TokenError(f"unexpected hostname {url.netloc!r} in pre-signed URL")
    if url.path not in ("", "/"):
        raise TokenError("unexpected path in pre-signed URL")
    parameters = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    unknown = sorted(name for name in parameters if name.lower() not in PARAMETERS)
    if unknown:
        raise TokenError(f"non-whitelisted query parameter {unknown[0]!r}")
    if parameters.get("Action") != "GetCallerIdentity":
        raise TokenError("unexpected action parameter in pre-signed URL")
    if CLUSTER_HEADER not in parameters.get("X-Amz-SignedHeaders", "").split(";"):
        raise TokenError(f"client did not sign the {CLUSTER_HEADER} header in the pre-signed URL")
    if not {"X-Amz-Credential", "X-Amz-Signature"} <= set(parameters):
        raise TokenError("the pre-signed URL has no signature")
    try:
        signed = datetime.datetime.strptime(parameters.get("X-Amz-Date", ""), "%Y%m%dT%H%M%SZ")
    except ValueError as error:
        raise TokenError("X-Amz-Date parameter must be present in pre-signed URL") from error
    if now - signed.replace(tzinfo=datetime.timezone.utc) > LIFETIME:
        raise TokenError("X-Amz-Date parameter is expired")
    return Call(url.netloc, url.query, parameters)


def signature(call: Call, cluster: str, secret: str) -> str:
    """What the signature must be if ``secret`` made it for a cluster: Signature Version 4 of the call."""
    date, region, service, ending = call.parameters["X-Amz-Credential"].split("/")[1:5]
    pairs = sorted(call.parameters.items())
    query = "&".join(f"{_quote(key)}={_quote(value)}" for key, value in pairs if key != "X-Amz-Signature")
    headers = f"host:{call.host}\n{CLUSTER_HEADER}:{cluster}\n"
    signed = call.parameters["X-Amz-SignedHeaders"]
    request = "\n".join(["GET", "/", query, headers, signed, hashlib.sha256(b"").hexdigest()])
    scope = f"{date}/{region}/{service}/{ending}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", call.parameters["X-Amz-Date"], scope, digest])
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, ending, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def _quote(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~")
