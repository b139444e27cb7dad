"""Around the AWS API: the log of every call, faults, latency, and the control API under ``/sandbox-api/``."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
import time
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any

from sandbox.emulator import hosts, state

LOG = logging.getLogger("emulator")
READS = re.compile(r"^(Describe|Get|List|Head|Lookup|Batch[GD]e[ts])")
Start = Callable[..., Any]


def _action(environ: dict[str, Any], body: bytes) -> tuple[str, str, dict[str, Any]]:
    """(service, action, parameters) of a request in any of the AWS protocols."""
    match = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
    service = match.group(1) if match else "unknown"
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        parameters = json.loads(body or b"{}")
        return service, target.rsplit(".", 1)[-1], parameters if isinstance(parameters, dict) else {}
    if "x-www-form-urlencoded" in environ.get("CONTENT_TYPE", ""):
        fields = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
        action = fields.pop("Action", "unknown")
        fields.pop("Version", None)
        return service, action, fields
    parameters = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    return service, f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}", parameters


def _writes(action: str, parameters: dict[str, Any]) -> bool:
    """Whether a call would change the account. A dry run does not."""
    if str(parameters.get("DryRun", "")).lower() == "true":
        return False
    if " " in action:
        return action.split()[0] not in ("GET", "HEAD")
    return not READS.match(action)


class Application:
    """The WSGI application that stands before moto's."""

    def __init__(self, moto: Callable[[dict[str, Any], Start], Iterable[bytes]]) -> None:
        self.moto = moto

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        if environ["PATH_INFO"].startswith("/sandbox-api/"):
            return self.control(environ, body, start)
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"].startswith("/moto-api/"):
            return self.moto(environ, start)
        service, action, parameters = _action(environ, body)
        state.CALLS.append(
            {
                "time": time.time(),
                "service": service,
                "action": action,
                "parameters": parameters,
                "write": _writes(action, parameters),
                "agent": environ.get("HTTP_USER_AGENT", "")[:120],
            }
        )
        if state.LATENCY["seconds"]:
            time.sleep(state.LATENCY["seconds"])
        fault = self.fault(action, parameters)
        if fault:
            return _answer_error(start, int(fault.get("status", 400)), fault["code"], fault.get("message", "injected"))
        return self.guarded(environ, start, service, action)

    def guarded(self, environ: dict[str, Any], start: Start, service: str, action: str) -> Iterable[bytes]:
        """Moto's answer; a page in HTML where it knows no answer becomes an error that an AWS client can read."""
        seen: dict[str, Any] = {}

        def remember(status: str, headers: list[tuple[str, str]], *_rest: Any) -> None:
            seen.update(status=status, headers=headers)

        unknown = f"The sandbox does not know {action} as it was used."
        try:
            chunks = b"".join(self.moto(environ, remember))
        except Exception:
            LOG.exception("%s:%s", service, action)
            return _answer_error(start, 400, "UnsupportedOperation", unknown)
        kind = dict(seen["headers"]).get("Content-Type", "")
        if service == "ec2" and seen["status"].startswith("5") and "html" in kind:
            return _answer_error(start, 400, "UnsupportedOperation", unknown)
        start(seen["status"], seen["headers"])
        return [chunks]

    @staticmethod
    def fault(action: str, parameters: dict[str, Any]) -> dict[str, Any] | None:
        """The fault that meets this call, after its delay; None where it has no error code or none fits."""
        with state.LOCK:
            for fault in state.FAULTS:
                matching = all(str(parameters.get(k)) == str(v) for k, v in (fault.get("match") or {}).items())
                if fault["action"] == action and int(fault.get("times", 1)) > 0 and matching:
                    fault["times"] = int(fault.get("times", 1)) - 1
                    break
            else:
                return None
        time.sleep(float(fault.get("delay") or 0))
        return fault if fault.get("code") else None

    def control(self, environ: dict[str, Any], body: bytes, start: Start) -> Iterable[bytes]:
        """The control API; an unknown path or a body without a needed field is answered with 400."""
        path, method = environ["PATH_INFO"].removeprefix("/sandbox-api/"), environ["REQUEST_METHOD"]
        try:
            answer = _control(path, method, json.loads(body or b"null"))
        except (KeyError, TypeError, ValueError) as error:
            return _answer(start, "400 Bad Request", {"error": f"{method} {path}: {error}"})
        return _answer(start, "200 OK", answer)


def _control(path: str, method: str, body: Any) -> Any:
    if path == "health":
        return {"status": "ok"}
    if path == "hosts":
        return hosts.desired()
    if path == "calls":
        return list(state.CALLS)
    if path == "calls/clear":
        state.CALLS.clear()
    elif path == "clear":
        state.clear()
    elif path == "latency":
        state.LATENCY["seconds"] = float(body["seconds"])
    elif path == "faults":
        if method == "DELETE":
            state.FAULTS.clear()
        elif method == "POST":
            state.FAULTS.append({**body, "action": body["action"]})
        return state.FAULTS
    elif path == "capacity":
        if method == "DELETE":
            state.CAPACITY.clear()
        elif method == "POST":
            state.CAPACITY[(body["instance_type"], body["zone"])] = int(body["count"])
        return [{"instance_type": t, "zone": z, "count": c} for (t, z), c in state.CAPACITY.items()]
    else:
        raise ValueError("no such path")
    return {}


def _answer(start: Start, status: str, value: Any) -> list[bytes]:
    body = json.dumps(value, default=_encode).encode()
    start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _encode(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _answer_error(start: Start, status: int, code: str, message: str) -> list[bytes]:
    """An error in EC2's form."""
    text = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
    body = f"{text}<RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>".encode()
    start(f"{status} Error", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
    return [body]
