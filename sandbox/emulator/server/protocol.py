"""Answers that the emulator gives by itself, in the form that the caller's service speaks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

Start = Callable[..., Any]

REQUEST_ID = "00000000-0000-0000-0000-000000000000"


def answer(start: Start, status: str, kind: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> list[bytes]:
    """Send a whole answer."""
    start(status, [("Content-Type", kind), ("Content-Length", str(len(body))), *headers])
    return [body]


def answer_json(start: Start, status: str, value: Any) -> list[bytes]:
    """An answer of the control API."""
    return answer(start, status, "application/json", json.dumps(value, default=_encode).encode())


def _encode(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def error(environ: dict[str, Any], service: str, code: str, message: str) -> tuple[str, bytes]:
    """(content type, body) of an AWS error."""
    text = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    if environ.get("HTTP_X_AMZ_TARGET") or "json" in environ.get("CONTENT_TYPE", ""):
        return "application/x-amz-json-1.1", json.dumps({"__type": code, "message": message}).encode()
    if service == "s3":
        return "application/xml", f"<Error>{text}<RequestId>{REQUEST_ID}</RequestId></Error>".encode()
    if service == "ec2":
        body = f"<Response><Errors><Error>{text}</Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
        return "text/xml", body.encode()
    if service == "route53" or "x-www-form-urlencoded" in environ.get("CONTENT_TYPE", ""):
        identity = f"<RequestId>{REQUEST_ID}</RequestId>"
        body = f"<ErrorResponse><Error><Type>Sender</Type>{text}</Error>{identity}</ErrorResponse>"
        return "text/xml", body.encode()
    return "application/json", json.dumps({"code": code, "message": message}).encode()


def answer_error(
    environ: dict[str, Any], start: Start, service: str, status: int, code: str, message: str
) -> list[bytes]:
    """Answer a request with an AWS error."""
    kind, body = error(environ, service, code, message)
    return answer(start, f"{status} Error", kind, body, (("x-amzn-errortype", code), ("x-amzn-requestid", REQUEST_ID)))
