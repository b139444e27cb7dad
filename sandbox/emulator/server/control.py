"""Around the AWS API: the log of every call, faults, latency, and the control API under ``/sandbox-api/``."""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from sandbox.emulator import faults, state
from sandbox.emulator.access import policy, regions
from sandbox.emulator.access.permissions import signer
from sandbox.emulator.cloudformation import images, waiting
from sandbox.emulator.ec2 import own_images
from sandbox.emulator.eks import clusters
from sandbox.emulator.launch import lifecycle
from sandbox.emulator.market import prices
from sandbox.emulator.server import calls, guard, hosts, names, streams
from sandbox.emulator.server.lag import LAG
from sandbox.emulator.server.protocol import Start, answer, answer_error, answer_json
from sandbox.emulator.server.weather import WEATHER, cut
from sandbox.emulator.services import ecr, sessions

LOG = logging.getLogger("emulator")

# What stands for https://checkip.amazonaws.com, and the public address of its callers (RFC 5737).
ADDRESS_SERVICE = "/sandbox-api/address"
CALLER = "192.0.2.10"
# What the reconciler of hosts, the resolver and whoever makes control planes look at.
LOOKS = {
    "hosts": hosts.desired,
    "images": own_images.listing,
    "names": names.known,
    "clusters": clusters.listing,
    "repositories": ecr.repositories,
}


class Application:
    """The WSGI application that stands before moto's. Moto is entered by one request at a time.

    ``token`` is what control calls must know, and ``users`` of this machine may ask at all.
    """

    def __init__(
        self, moto: Callable[[dict[str, Any], Start], Iterable[bytes]], token: str, users: Callable[[], set[int]]
    ) -> None:
        self.moto = moto
        self.token = token
        self.users = users

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        # Whoever runs a playbook asks it, without any token.
        if environ["PATH_INFO"] == ADDRESS_SERVICE:
            return answer(start, "200 OK", "text/plain", f"{CALLER}\n".encode())
        refused = guard.refusal(environ, self.token, self.users())
        if refused:
            status, sentence = refused
            LOG.warning("%s %s was refused: %s", environ["REQUEST_METHOD"], environ["PATH_INFO"], sentence)
            return answer_json(start, status, {"error": sentence})
        if environ["PATH_INFO"].startswith("/sandbox-api/"):
            return self.control(environ, body, start)
        if environ["PATH_INFO"].startswith(sessions.PATH):
            return streams.carry(environ, start)
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"].startswith(waiting.PATH):
            return _signal(environ, body, start)
        if environ["PATH_INFO"].startswith("/moto-api/"):
            with state.LOCK:
                return list(self.moto(environ, start))
        entry = calls.record(environ, body)

        def begin(status: str, headers: list[tuple[str, str]], *_rest: Any) -> None:
            entry["status"] = status
            start(status, headers)

        chunks = self.serve(environ, begin, entry)
        calls.finish(entry, entry["status"], chunks[0] if chunks else b"")
        return chunks

    def serve(self, environ: dict[str, Any], start: Start, entry: dict[str, Any]) -> list[bytes]:
        """One call of the AWS API, with latency and fault."""
        time.sleep(state.LATENCY["seconds"])
        fault = faults.meeting(entry) or WEATHER.draw(entry["service"], entry["action"], signer(environ)[0])
        if fault:
            time.sleep(float(fault.get("delay") or 0))
        if fault and fault.get("late"):
            return self.failing_late(environ, start, entry, fault)
        if not fault or not (fault.get("code") or fault.get("body") or fault.get("cut")):
            return self.guarded(environ, start, entry)
        if fault.get("after"):
            # The call does its work, and its answer is lost.
            self.guarded(environ, lambda *_: None, entry)
        if fault.get("cut"):
            start("200 Cut", [])
            return cut(environ)
        if fault.get("body"):
            return answer(start, f"{fault.get('status') or 200} Answer", "text/html", str(fault["body"]).encode())
        message = str(fault.get("message") or "Injected by the sandbox.")
        return answer_error(environ, start, entry["service"], int(fault.get("status") or 400), fault["code"], message)

    def failing_late(
        self, environ: dict[str, Any], start: Start, entry: dict[str, Any], fault: dict[str, Any]
    ) -> list[bytes]:
        """A launch that EC2 grants, and some or all of whose instances do not come to run."""
        count = int(fault.get("count") or entry["parameters"].get("MaxCount") or 1)
        lifecycle.LAUNCH.failures = [fault["late"]] * count
        try:
            return self.guarded(environ, start, entry)
        finally:
            lifecycle.LAUNCH.failures = None

    def guarded(self, environ: dict[str, Any], start: Start, entry: dict[str, Any]) -> list[bytes]:
        """Moto's answer; what moto cannot do becomes an error that an AWS client can read."""
        seen: dict[str, Any] = {}

        def remember(status: str, headers: list[tuple[str, str]], *_rest: Any) -> None:
            seen.update(status=status, headers=headers)

        service, action, body = entry["service"], entry["action"], environ["wsgi.input"].getvalue()
        region = signer(environ)[1]
        refused = regions.refusal(region, service) or policy.refusal(environ, entry, body) or LAG.refusal(entry)
        if refused:
            return answer_error(environ, start, service, *refused)
        if (service, action) == ("imagebuilder", "GET /GetImage"):
            return _image(environ, start)
        if (service, action) == ("pricing", "GetProducts"):
            return _products(environ, start, region, entry["parameters"])
        unknown = f"The sandbox does not know {action} as it was used."
        try:
            with state.LOCK:
                answered = b"".join(self.moto(environ, remember))
        except Exception:
            LOG.exception("%s:%s", service, action)
            return answer_error(environ, start, service, 400, "UnsupportedOperation", unknown)
        kind = dict(seen["headers"]).get("Content-Type", "")
        if "html" in kind and seen["status"][0] in "45" and service != "s3":
            LOG.warning("%s:%s was answered with %s", service, action, seen["status"])
            return answer_error(environ, start, service, 400, "UnsupportedOperation", unknown)
        LAG.made(entry, seen["status"], answered)
        shown = LAG.without(entry, answered)
        headers = [
            (key, str(len(shown)) if key.lower() == "content-length" else value) for key, value in seen["headers"]
        ]
        start(seen["status"], headers)
        return [shown]

    def control(self, environ: dict[str, Any], body: bytes, start: Start) -> list[bytes]:
        """The control API; an unknown path or a body without a needed field is answered with 400."""
        path, method = environ["PATH_INFO"].removeprefix("/sandbox-api/"), environ["REQUEST_METHOD"]
        try:
            result = _control(path, method, json.loads(body or b"null"))
        except KeyError as error:
            return answer_json(start, "400 Bad Request", {"error": f"{method} {path}: the field {error} is missing."})
        except (TypeError, ValueError) as error:
            return answer_json(start, "400 Bad Request", {"error": f"{method} {path}: {error}."})
        return answer_json(start, "200 OK", result)


def _image(environ: dict[str, Any], start: Start) -> list[bytes]:
    """GetImage of Image Builder, which moto does not have."""
    with state.LOCK:
        found = images.get_image(environ.get("QUERY_STRING", ""))
    if found is None:
        return answer_error(environ, start, "imagebuilder", 404, "ResourceNotFoundException", "There is no such build.")
    return answer_json(start, "200 OK", found)


def _products(environ: dict[str, Any], start: Start, region: str, given: dict[str, Any]) -> list[bytes]:
    """GetProducts of the price list, which moto does not have."""
    try:
        return answer_json(start, "200 OK", prices.get_products(region, given))
    except prices.RefusedError as error:
        return answer_error(environ, start, "pricing", 400, error.code, str(error))


def _signal(environ: dict[str, Any], body: bytes, start: Start) -> list[bytes]:
    """A signal to the handle of a wait condition."""
    token = environ["PATH_INFO"].removeprefix(waiting.PATH)
    try:
        with state.LOCK:
            known = waiting.signal(token, body)
    except ValueError as error:
        return answer_json(start, "400 Bad Request", {"error": f"The signal is not valid: {error}."})
    return answer_json(start, "200 OK" if known else "404 Not Found", {})


def _control(path: str, method: str, body: Any) -> Any:
    if path == "health":
        return {"status": "ok"}
    if path in LOOKS:
        with state.LOCK:
            return LOOKS[path]()
    if path == "cluster":
        with state.LOCK:
            return clusters.activate_by_name(body)
    if path == "calls":
        return list(state.CALLS)
    if path == "calls/clear":
        state.CALLS.clear()
    elif path == "clear":
        state.clear()
        WEATHER.clear()
        LAG.clear()
    elif path in ("latency", "weather", "lag"):
        return _weather(path, method, body)
    elif path == "faults":
        return _faults(method, body)
    elif path == "capacity":
        return _capacity(method, body)
    elif path in ("console", "policies", "shutdown"):
        return _of_one(path, method, body)
    elif path == "waiting":
        if method == "POST":
            state.WAITING.update(state.waiting(body))
        return state.WAITING
    elif path == "quotas":
        if method == "POST":
            state.QUOTAS[body["code"]] = float(body["value"])
        return state.QUOTAS
    else:
        raise ValueError("no such path")
    return {}


def _of_one(path: str, method: str, body: Any) -> dict[str, list[Any]]:
    """What an instance writes to its console, that it shut down, and what an access key may do and had use for."""
    if path == "shutdown":
        lifecycle.shut_down(body["instance_id"])
    elif path == "console":
        state.CONSOLES[body["instance_id"]] = state.CONSOLES.get(body["instance_id"], "") + body["text"]
    elif method == "POST":
        state.POLICIES[body["access_key"]] = list(body["statements"])
    return {key: list(used) for key, used in list(state.USED.items())}


def _faults(method: str, body: Any) -> list[dict[str, Any]]:
    if method == "DELETE":
        state.FAULTS.clear()
    elif method == "POST":
        times, skip = body.get("times"), int(body.get("skip") or 0)
        fault = {**body, "action": body["action"], "times": 1 if times is None else int(times), "skip": skip}
        state.FAULTS.append(fault)
    return state.FAULTS


def _weather(path: str, method: str, body: Any) -> dict[str, Any]:
    """How long calls take, how they fare, and how long EC2 does not show what was made; what was met so far."""
    weather: Any = WEATHER if path == "weather" else LAG
    if path == "latency":
        state.LATENCY["seconds"] = float(body["seconds"])
        return state.LATENCY
    if method == "POST":
        weather.change(body)
    elif method == "DELETE":
        weather.clear()
    return dict(WEATHER.met)


def _capacity(method: str, body: Any) -> list[dict[str, Any]]:
    if method == "DELETE":
        state.CAPACITY.clear()
    elif method == "POST":
        state.CAPACITY[(body["instance_type"], body["zone"])] = int(body["count"])
    return [{"instance_type": t, "zone": z, "count": c} for (t, z), c in state.CAPACITY.items()]
