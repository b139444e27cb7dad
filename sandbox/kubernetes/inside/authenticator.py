"""What EKS runs beside its apiserver: says who a token belongs to, and what access policies allow that user.

``python3 -m sandbox.kubernetes.inside.authenticator``: a TokenReview and a SubjectAccessReview webhook. Who signed a
token is asked of STS, here the emulator's. A key whose secret is known must have signed it as well: moto checks no
signature.
"""

from __future__ import annotations

import datetime
import hmac
import json
import re
import ssl
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sandbox.kubernetes.inside import access, token
from sandbox.kubernetes.inside.token import TokenError

SEED = Path("/seed")
PORT = 8444


def settings() -> dict[str, Any]:
    """Written by the reconciler: cluster, sts (URL), secrets by access key."""
    found: dict[str, Any] = json.loads((SEED / "authenticator.json").read_text(encoding="utf-8"))
    return found


def entries() -> list[dict[str, Any]]:
    """The access entries as they are now."""
    found: list[dict[str, Any]] = json.loads((SEED / "access-entries.json").read_text(encoding="utf-8"))
    return found


def caller(word: str, known: dict[str, Any]) -> str:
    """The ARN of who signed a token.

    Raises:
        TokenError: it is not accepted.
    """
    hosts = frozenset(known["hosts"])
    call = token.read(word, hosts, datetime.datetime.now(datetime.timezone.utc))
    secret = known["secrets"].get(call.access_key)
    wanted = token.signature(call, known["cluster"], secret) if secret else ""
    if secret and not hmac.compare_digest(wanted, call.parameters["X-Amz-Signature"]):
        raise TokenError("the signature is not that of the key, or the token is for another cluster")
    # Moto finds the service in the header only.
    headers = {token.CLUSTER_HEADER: known["cluster"], "Authorization": call.authorization}
    request = urllib.request.Request(f"{known['sts']}/?{call.query}", headers=headers)  # noqa: S310  # our own URL
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            text = answer.read().decode()
    except OSError as error:
        raise TokenError(f"STS refused the token: {error}") from error
    arn = re.search(r'Arn"?\s*[>:]\s*"?([^<"]+)', text)
    if not arn:
        raise TokenError("STS does not say whose token it is")
    return arn[1]


def review_token(spec: dict[str, Any]) -> dict[str, Any]:
    """The status of a TokenReview."""
    try:
        arn = caller(spec.get("token", ""), settings())
    except TokenError as error:
        return {"authenticated": False, "error": str(error)}
    entry = access.entry_of(arn, entries())
    if entry is None:
        return {"authenticated": False, "error": f"{arn} has no access entry"}
    user = {
        "username": access.username(entry, arn),
        "uid": f"aws-iam-authenticator:{arn}",
        "groups": list(entry.get("groups", [])),
        "extra": {"arn": [entry["principal_arn"]], "canonicalArn": [access.principal(arn)]},
    }
    return {"authenticated": True, "user": user}


def review_access(spec: dict[str, Any]) -> dict[str, Any]:
    """The status of a SubjectAccessReview; what is not allowed here may still be by RBAC, which was asked before."""
    arns = (spec.get("extra") or {}).get("arn") or []
    entry = access.entry_of(arns[0], entries()) if arns else None
    allowed = entry is not None and access.allows(entry, spec)
    return {"allowed": allowed, "reason": "EKS access policy" if allowed else ""}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        review = review_token if asked["kind"] == "TokenReview" else review_access
        answer = {"apiVersion": asked["apiVersion"], "kind": asked["kind"], "status": review(asked["spec"])}
        if asked["kind"] == "TokenReview":
            print(json.dumps(answer["status"]), flush=True)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing of each request."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), _Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(SEED / "pki" / "webhook.crt", SEED / "pki" / "webhook.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
